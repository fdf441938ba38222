"""CT290: whether the options of ONNX Runtime for CUDA have an effect where they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cdk_triton._wording import in_words
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.releases import is_newer_than_schema
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig


@dataclass(frozen=True)
class _Option:
    """An option that the backend takes from `parameters`.

    Attributes:
        default: its value where `parameters` has none, as ONNX Runtime calls it.
        written: words of ONNX Runtime → the text in `parameters`; what is not listed is the same in both.
    """

    default: str
    written: Mapping[str, str]


_OPTIONS = {
    "cudnn_conv_algo_search": _Option("EXHAUSTIVE", {"EXHAUSTIVE": "0", "HEURISTIC": "1", "DEFAULT": "2"}),
    "gpu_mem_limit": _Option(str(2**64 - 1), {}),
    "arena_extend_strategy": _Option("kNextPowerOfTwo", {"kNextPowerOfTwo": "0", "kSameAsRequested": "1"}),
    "do_copy_in_default_stream": _Option("1", {"true": "1", "false": "0"}),
}


@model_rule(
    "CT290",
    Severity.WARNING,
    "an option of the accelerator cuda has no effect",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 747, 883),
)
def replaced_option(each: ConfiguredModel) -> Iterator[Problem]:
    """The ONNX Runtime backend overwrites four options of the accelerator `cuda` with the values from `parameters`.

    The options are `cudnn_conv_algo_search`, `gpu_mem_limit`, `arena_extend_strategy` and `do_copy_in_default_stream`.
    Write them into the model's `parameters`, although the README of the backend calls this form deprecated and
    recommends the accelerator. The backend first reads the accelerator. Then it replaces all four options with the
    values in `parameters`, or with the defaults if `parameters` does not contain them. This happens to every model,
    because the server adds an empty `parameters` to a configuration without `parameters`. Only the verbose log contains
    the options.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        optimization {
          execution_accelerators {
            gpu_execution_accelerator {
              name: "cuda"
              parameters { key: "cudnn_conv_algo_search" value: "HEURISTIC" }
            }
          }
        }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "cudnn_conv_algo_search" value { string_value: "1" } }

    Limits:
        The rule follows the backend's sources from 24.06, the first release with this accelerator, to 26.06. The rule
        has not been tried on a GPU.
    """
    context = each.context
    if is_newer_than_schema(context.platform) or known_backend(context, each.model) != "onnxruntime":
        return
    for field, key, value in _of_cuda(each.config):
        option, given = _OPTIONS[key], each.config.parameters.get(key)
        used = option.default if given is None else given.string_value
        text = option.written.get(value, value)
        if text not in (used, option.written.get(used, used)):
            yield each.problem(
                field,
                f"the accelerator cuda of {each.name!r} has {key} = {value!r}, but the backend uses {used!r}, because "
                "it reads this option only from the model's parameters",
                _instead(key, text),
            )


def _instead(key: str, text: str) -> str:
    """The form that has an effect; `text` is the value as `parameters` writes it."""
    written = _OPTIONS[key].written
    if not written or text in written.values():
        return f'write parameters {{ key: "{key}" value {{ string_value: "{text}" }} }} instead'
    values = in_words(f'"{number}" for {word}' for word, number in written.items())
    return f'write parameters {{ key: "{key}" value {{ string_value: … }} }} instead, with {values}'


def _of_cuda(config: ModelConfig) -> Iterator[tuple[str, str, str]]:
    """The options of the accelerator that the backend replaces: the field, the option and its value."""
    for index, accelerator in enumerate(config.optimization.execution_accelerators.gpu_execution_accelerator):
        if accelerator.name == "cuda":
            place = f"optimization.execution_accelerators.gpu_execution_accelerator[{index}]"
            for key in sorted(_OPTIONS.keys() & accelerator.parameters.keys()):
                yield f'{place}.parameters["{key}"]', key, accelerator.parameters[key]
