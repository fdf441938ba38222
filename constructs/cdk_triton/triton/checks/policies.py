"""CT280 to CT289: response cache, and whether platform and backend of a model belong together."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.triton.checks._configured import completed_pair, configured, has_argument, knows_aoti
from cdk_triton.triton.checks._sources import core, server
from cdk_triton.triton.checks._spelling import Suggestions
from cdk_triton.triton.checks.engine import Check, Problem, rule
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.repository import Model

_UTILS = "src/model_config_utils.cc"
_PLATFORMS = {
    "onnxruntime": '"onnxruntime_onnx"',
    "pytorch": '"pytorch_libtorch"',
    "tensorflow": '"tensorflow_savedmodel" or "tensorflow_graphdef"',
    "tensorrt": '"tensorrt_plan"',
}
_KNOWN_PLATFORMS = ("ensemble", "onnxruntime_onnx", "pytorch_libtorch", "tensorrt_plan")


@rule("CT280", Severity.ERROR, "the response cache is on for a decoupled model", source=core(_UTILS, 1681, 1689))
def cache_of_decoupled(check: Check) -> Iterator[Problem]:
    """A cache holds one response per request, and a decoupled model may send any number.

    An ensemble is decoupled as soon as one of its steps is, at any depth.

    Example:
        $ cdk-triton validate . --default-model model --additional-model words
        # model/config.pbtxt
        backend: "python"
        # words/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }
        response_cache { enable: true }

    Instead:
        # words/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }
    """
    for model, config in configured(check):
        part = _decoupled_part(check, model) if config.response_cache.enable else None
        if part is not None:
            yield Problem(
                model.config_path,
                f"response_cache is on and {part.name!r} is decoupled, and the server would not load {model.name!r}: "
                f"Response Cache does not currently support model {model.name} with 'decoupled' transaction policy. "
                "Please disable the response cache",
                "leave response_cache out",
                "response_cache.enable",
            )


@rule("CT281", Severity.ERROR, "the response cache is on for a model of sequences", source=core(_UTILS, 1570, 1579))
def cache_of_sequences(check: Check) -> Iterator[Problem]:
    """What a model of sequences answers depends on earlier requests, so that it cannot be cached.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching { }
        response_cache { enable: true }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching { }
    """
    for model, config in configured(check):
        if config.response_cache.enable and config.HasField("sequence_batching"):
            yield Problem(
                model.config_path,
                f"response_cache is on beside sequence_batching, and the server would not load {model.name!r}: "
                f"Response Cache does not currently support model {model.name} with sequence batching scheduler. "
                "Please disable the response cache",
                "leave response_cache out",
                "response_cache.enable",
            )


@rule(
    "CT282",
    Severity.WARNING,
    "the response cache is on and the server has none",
    source=server("docker/sagemaker/serve", 183, 183),
)
def cache_without_cache(check: Check) -> Iterator[Problem]:
    """A response cache needs an argument of the server as well, and SageMaker starts it without.

    The server loads the model without a word and caches nothing. To have a cache, write
    `--cache-config=local,size=104857600` (bytes) into `additional_args` of the container's environment (from 23.07).

    Example:
        # model/config.pbtxt
        backend: "python"
        response_cache { enable: true }

    Instead:
        # model/config.pbtxt
        backend: "python"
    """
    if has_argument(check, "--cache-config") or has_argument(check, "--response-cache-byte-size"):
        return
    for model, config in configured(check):
        if not config.response_cache.enable or config.HasField("sequence_batching"):
            continue  # the latter is refused
        if _decoupled_part(check, model) is None:
            yield Problem(
                model.config_path,
                f"the server that SageMaker starts has no cache, so that it would cache no response of {model.name!r}",
                "leave response_cache out, or add --cache-config=local,size=104857600 to additional_args",
                "response_cache.enable",
            )


@rule("CT283", Severity.ERROR, "the platform of a model is not known", source=core(_UTILS, 1442, 1451))
def unknown_platform(check: Check) -> Iterator[Problem]:
    """Only a few values of `platform` stand for a backend; every other backend is named by `backend`.

    They are `tensorrt_plan`, `onnxruntime_onnx`, `pytorch_libtorch`, `torch_aoti` (from 26.03), `tensorflow_savedmodel`
    and `tensorflow_graphdef` (to 25.02), and `ensemble`. A file's name tells the backend only if it is the usual one,
    such as `model.onnx`.

    Example:
        # model/config.pbtxt
        platform: "python"

    Instead:
        # model/config.pbtxt
        backend: "python"
    """
    suggestions = Suggestions()
    mend = 'name the backend, for example backend: "python"'
    for model, config in configured(check):
        platform, backend = completed_pair(model, config, check.platform)
        if backend or platform == "ensemble" or not (platform or config.default_model_filename):
            continue  # the last: nothing tells the backend, which CT105 reports
        if config.HasField("ensemble_scheduling"):
            continue  # meant as an ensemble: reported by CT311
        found = f"the platform {platform!r} stands for no backend"
        if not platform:
            found = f"the file name {config.default_model_filename!r} stands for no backend, and none is named"
        meant = suggestions.closest(platform, _KNOWN_PLATFORMS, other_than=platform) if platform else None
        yield Problem(
            model.config_path,
            f"{found}, and the server would not load {model.name!r}: unexpected platform type '{platform}' for "
            f"{model.name}",
            mend if meant is None else f'did you mean platform: "{meant}"?',
            "platform" if platform else "backend",
        )


@rule(
    "CT284", Severity.ERROR, "platform and backend of a model do not belong together", source=core(_UTILS, 1466, 1477)
)
def platform_of_another_backend(check: Check) -> Iterator[Problem]:
    """TensorRT, ONNX Runtime, PyTorch and TensorFlow have platforms of their own; best is to write `backend` alone.

    Other backends accept any platform, and ignore it.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        platform: "onnx"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
    """
    for model, config in configured(check):
        platform, backend = completed_pair(model, config, check.platform)
        if backend not in _PLATFORMS or platform == "ensemble" or f'"{platform}"' in _PLATFORMS[backend]:
            continue
        if (platform, backend) == ("torch_aoti", "pytorch") and knows_aoti(check.platform):
            continue
        yield Problem(
            model.config_path,
            f"the platform is {platform!r} and the backend is {backend!r}, and the server would not load "
            f"{model.name!r}: unexpected 'platform' and 'backend' pair, got:{platform}, {backend}",
            f"write platform: {_PLATFORMS[backend]}" + ("" if backend == "tensorflow" else ", or leave platform out"),
            "platform",
        )


@rule("CT285", Severity.ERROR, "an ensemble has a backend", source=core(_UTILS, 1453, 1460))
def ensemble_with_backend(check: Check) -> Iterator[Problem]:
    """The server itself runs an ensemble. A `default_model_filename` such as `model.py` counts as a backend too.

    Example:
        # first/config.pbtxt
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        # whole/config.pbtxt
        platform: "ensemble"
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step {
            model_name: "first"
            model_version: -1
            input_map { key: "x" value: "x" }
            output_map { key: "y" value: "y" }
          }
        }

    Instead:
        # whole/config.pbtxt
        platform: "ensemble"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step {
            model_name: "first"
            model_version: -1
            input_map { key: "x" value: "x" }
            output_map { key: "y" value: "y" }
          }
        }
    """
    for model, config in configured(check):
        platform, backend = completed_pair(model, config, check.platform)
        if platform == "ensemble" and backend:
            yield Problem(
                model.config_path,
                f"the ensemble has the backend {backend!r}, and the server would not load it: Ensemble model "
                f"'{model.name}' must have platform type 'ensemble' and empty backend type",
                "leave out backend" if config.backend else "leave out default_model_filename",
                "backend" if config.backend else "default_model_filename",
            )


def _decoupled_part(check: Check, model: Model) -> Model | None:
    """The model itself if it is decoupled, or the first part of an ensemble that is; None where none is."""
    parts = {model.name: model}
    pending = [model]
    for part in pending:  # grows while we walk
        if part.config is not None and part.config.model_transaction_policy.decoupled:
            return part
        for name in part.graph.model_names:
            step = check.repository.model(name)
            if step is not None and name not in parts:
                parts[name] = step
                pending.append(step)
    return None
