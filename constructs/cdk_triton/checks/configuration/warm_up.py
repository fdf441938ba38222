"""CT220 to CT225: `model_warmup`, the requests that the server makes up before a model is ready."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import completes_batch_size, completes_tensors, known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.named_files import named_file
from cdk_triton.checks.derived.releases import counts_sizes, is_at_least
from cdk_triton.checks.derived.tensors import BYTES_OF
from cdk_triton.checks.derived.warm_ups import (
    WarmUp,
    WarmUpInput,
    warm_up_input_rule,
    warm_up_rule,
    warm_ups,
)
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelInput, enum_name

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelWarmup

_INSTANCE = "src/backend_model_instance.cc"
_REQUEST = "src/infer_request.cc"

_COMPARES_CORRELATION_IDS_SINCE = "25.01"  # branches of core: ValidateCorrelationId of infer_request.cc

_UNTYPED = 4  # bytes of an element without a type: counted so before the type is rejected
_OPEN = "warmup setting expects all variable-size dimensions are specified for input '{}'"

# The backends that count what they are given, whoever made it up.
_COUNT_BATCHES = frozenset({"onnxruntime", "openvino", "python", "pytorch", "tensorflow", "tensorrt"})


@warm_up_input_rule(
    "CT220", Severity.ERROR, "a warm-up input has no data or an open shape", source=core(_INSTANCE, 374, 385)
)
def undetermined_data(each: WarmUpInput) -> Iterator[Problem]:
    """An input of a warm-up has no data, or has a dimension of -1, so the server does not load the model.

    Write one of `zero_data`, `random_data` and `input_data_file`, and the size of every dimension. For `TYPE_STRING`,
    both `zero_data` and `random_data` produce empty strings.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: -1 zero_data: true } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 16 zero_data: true } }
        }
    """
    name, given = each.name, each.given
    if -1 in given.dims:
        found = f"gives the input {name!r} the dims {list(given.dims)}"
        words = _OPEN.format(name)
        fix, field = "write the sizes that callers send most often", "dims"
    elif given.WhichOneof("input_data_type") is None:
        found = f"has no data source for the input {name!r}"
        words = f"warmup setting expects input '{name}' to have input_data_type set"
        fix, field = "write zero_data: true, random_data: true or input_data_file", "zero_data"
    else:
        return
    yield each.unloadable(field, f"{each.warm_up.text} {found}", words, fix)


@warm_up_input_rule("CT221", Severity.ERROR, "a warm-up file is missing or too short", source=core(_INSTANCE, 461, 487))
def data_file(each: WarmUpInput) -> Iterator[Problem]:
    """The `input_data_file` of a warm-up is missing or has too few bytes, so the server does not load the model.

    The server reads the file from the directory `warmup` of the model. If the file is longer than the input, the server
    ignores the remaining bytes. A file for `TYPE_STRING` may have any length, but CT249 checks its elements. If
    `input_data_file` names a directory, the server crashes.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "typical" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 input_data_file: "typical" } }
        }
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests): ...

    Instead:
        # model/warmup/typical
        0123456789abcdef
    """
    given, owner = each.given, each.warm_up.owner
    if given.WhichOneof("input_data_type") != "input_data_file" or -1 in given.dims:
        return
    file = named_file(owner.context, owner.model.directory / "warmup", given.input_data_file)
    needed = math.prod(given.dims) * _bytes_of(given) if given.dims else 0
    reads = f"{each.warm_up.text} reads the input {each.name!r} from {file.spelled!r}, which"
    fix = f"write the {f'{needed} bytes of the tensor' if needed else 'bytes of the tensor'} to a file of that name"
    if file.error:
        words = f"failed to open text file for read {file.spelled}: {file.error}"
        yield each.unloadable("input_data_file", f"{reads} does not exist", words, fix)
    elif file.is_directory:
        message = f"{reads} is a directory, so the server would crash: std::length_error"
        yield owner.problem(each.field("input_data_file"), message, fix)
    elif file.size is not None and file.size < needed:
        words = (
            f"warmup setting expects {needed} bytes, but the data provided from {given.input_data_file}only "
            f"has {file.size} bytes"
        )
        yield each.unloadable("input_data_file", f"{reads} has {file.size} bytes", words, fix)


@rule("CT222", Severity.ERROR, "a warm-up does not fit the inputs of the model", source=core(_REQUEST, 1120, 1182))
def unfit_sample(context: CheckContext) -> Iterator[Problem]:
    """A warm-up lacks an input of the model, or gives an input a data type or shape that the model does not accept.

    The server checks a warm-up as it checks a request, and does not load the model. Write the dims without the batch
    dimension, because the server adds it.

    The correlation id of a warm-up is a number, and nothing can change this. From 25.01 on, the server compares its
    type, so a model whose `CONTROL_SEQUENCE_CORRID` has `TYPE_STRING` cannot have a warm-up.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: [ 1, 4 ] zero_data: true } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }
        }
    """
    suggest = Suggestions()
    for sample in warm_ups(context):
        yield from _unfit_correlation_id(sample)
        given, inputs = sample.message.inputs, sample.owner.config.input
        by_name = {tensor.name: tensor for tensor in reversed(inputs)}
        for name in sorted(given):
            if fault := _fault(sample, name, by_name.get(name)):
                words, fix, field = fault
                yield sample.unloadable(
                    f'inputs["{name}"].{field}',
                    f"{sample.text} gives the input {name!r} the type {enum_name(given[name], 'data_type')} and the "
                    f"dims {list(given[name].dims)}",
                    words,
                    fix,
                )
        missing = [tensor.name for tensor in inputs if not tensor.optional and tensor.name not in given]
        known, listed = sum(name in by_name for name in given), len(inputs)
        required = sum(not tensor.optional for tensor in inputs)
        if not missing or known >= required or required > len(by_name):  # the last is reported by CT210
            continue
        unknown = sorted(name for name in given if name not in by_name)
        meant = suggest.closest(missing[0], unknown)
        if len(missing) == len(unknown) == 1 and not sample.owner.config.HasField("sequence_batching"):
            meant = unknown[0]  # in a model of sequences, it may be a control input
        count = f"{listed} inputs" if required == listed else f"number of inputs between {required} and {listed}"
        yield sample.unloadable(
            "inputs",
            f"{sample.text} lacks the input {missing[0]!r}",
            f"expected {count} but got {known} inputs for model '{sample.owner.name}'",
            f"write {missing[0]!r} instead of {meant!r}" if meant else f"add the input {missing[0]!r} to the warm-up",
        )


@warm_up_rule(
    "CT223", Severity.WARNING, "a warm-up has an input that the model does not have", source=core(_INSTANCE, 494, 523)
)
def unknown_input(sample: WarmUp) -> Iterator[Problem]:
    """The server treats an unknown input as a control input of sequences, and passes it to the backend unchecked.

    The server prints no warning. Remove the input from the warm-up, or correct its name.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }
          inputs { key: "SCALE" value { data_type: TYPE_FP32 dims: 1 zero_data: true } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }
        }
    """
    config, given = sample.owner.config, sample.message.inputs
    missing = any(not tensor.optional and tensor.name not in given for tensor in config.input)
    if missing or completes_tensors(sample.owner, "input"):
        return  # reported by CT222, or not known
    known = {tensor.name for tensor in config.input}
    known |= {control.name for control in config.sequence_batching.control_input}
    known |= {state.input_name for state in config.sequence_batching.state}
    known |= {name for batch_input in config.batch_input for name in batch_input.target_name}
    for name in sorted(set(given) - known):
        yield sample.problem(
            f'inputs["{name}"]',
            f"{sample.text} has the input {name!r}, which is neither an input nor a control input of "
            f"{sample.owner.name!r}, but the server would still pass it to the model",
            "remove the input, or correct its name",
        )


@model_rule("CT224", Severity.WARNING, "a warm-up is never run", source=core(_INSTANCE, 361, 365))
def warm_up_without_batch(each: ConfiguredModel) -> Iterator[Problem]:
    """The server skips a `model_warmup` whose `batch_size` is missing or 0, so the model is not warmed up.

    Only the verbose log contains a message. Write `batch_size: 1`, even if the model does not batch.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup { name: "zeros" inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 1
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }
        }
    """
    for block in each.parts("model_warmup", each.config.model_warmup):
        name = block.message.name
        if block.message.batch_size == 0 and not each.model.is_ensemble:
            yield block.problem(
                "batch_size",
                f"the warm-up {name!r} has the batch size 0, so the server would skip it: Skipping batch 0 warmup "
                f"sample '{name}'",
                "write batch_size: 1, even if the model does not batch",
            )


@warm_up_rule(
    "CT225",
    Severity.ERROR,
    "a warm-up is larger than max_batch_size",
    source=backend("python_backend", "src/python_be.cc", 114, 126),
)
def too_large_batch(sample: WarmUp) -> Iterator[Problem]:
    """The `batch_size` of a warm-up is larger than `max_batch_size`, or larger than 1 for a model without batching.

    The backends for ONNX, OpenVINO, Python, PyTorch, TensorFlow and TensorRT reject such a batch. The server does not
    load a model whose warm-up fails.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 16
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        model_warmup {
          name: "zeros" batch_size: 8
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }
        }
    """
    size, most = sample.message.batch_size, sample.owner.config.max_batch_size
    if size in range(max(most, 1) + 1):
        return
    if known_backend(sample.owner.context, sample.owner.model) not in _COUNT_BATCHES:
        return
    if most == 0 and completes_batch_size(sample.owner):
        return
    yield sample.unloadable(
        "batch_size",
        f"{sample.text} has the batch size {size} and max_batch_size is {most}",
        f"failed to run warmup sample '{sample.message.name}': batch size {size}",
        f"write at most batch_size: {max(most, 1)}",
    )


def _unfit_correlation_id(sample: WarmUp) -> Iterator[Problem]:
    owner = sample.owner
    if owner.context.platform is None or not is_at_least(owner.context.platform, _COMPARES_CORRELATION_IDS_SINCE):
        return
    for control_input in owner.config.sequence_batching.control_input:
        for control in control_input.control:
            is_id = control.kind == control.CONTROL_SEQUENCE_CORRID
            if is_id and enum_name(control, "data_type") == "TYPE_STRING":
                yield sample.unloadable(
                    "batch_size",
                    f"{sample.text} has a number as its correlation id, but the control {control_input.name!r} has the "
                    "type TYPE_STRING",
                    f"sequence batching control '{control_input.name}' data-type is 'UINT64', but model "
                    f"'{owner.name}' expects 'BYTES'",
                    "remove the warm-up, or write data_type: TYPE_UINT64 for the control",
                )


def _fault(sample: WarmUp, name: str, tensor: ModelInput | None) -> tuple[str, str, str] | None:
    """The server's message about an input of a warm-up, the fix, and the field; None if it fits or is reported.

    The model may lack the input. Servers that count sizes look at the size first, and a missing type does not have one.
    """
    given, owner = sample.message.inputs[name], sample.owner
    found = _type(given)
    has_size = found == "STRING" or f"TYPE_{found}" in BYTES_OF
    if counts_sizes(owner.context.platform) and not has_size and -1 not in given.dims:
        right = "TYPE_FP32" if tensor is None else enum_name(tensor, "data_type")
        return _OPEN.format(name), f"write the data type of the input, such as {right}", "data_type"
    if tensor is None:
        return None
    expected = _type(tensor)
    if expected != "INVALID" and found != expected:
        words = (
            f"inference input '{tensor.name}' data-type is '{_shown(found)}', but model '{owner.name}' expects "
            f"'{_shown(expected)}'"
        )
        return words, f"write data_type: {enum_name(tensor, 'data_type')}", "data_type"
    if not tensor.dims or -1 in given.dims:  # completed, or reported by CT220
        return None
    if len(given.dims) == len(tensor.dims) and all(
        known in (-1, dim) for known, dim in zip(tensor.dims, given.dims, strict=True)
    ):
        return None
    is_batched = owner.config.max_batch_size > 0
    known, got = ([-1] * is_batched + list(tensor.dims), [1] * is_batched + list(given.dims))
    words = (
        f"unexpected shape for input '{tensor.name}' for model '{owner.name}'. Expected "
        f"[{','.join(map(str, known))}], got [{','.join(map(str, got))}]"
    )
    batch = ", without the batch dimension" if is_batched else ""
    return words, f"write dims that agree with the input's {list(tensor.dims)}{batch}", "dims"


def _bytes_of(given: ModelWarmup.Input) -> int:
    return _UNTYPED if _type(given) == "INVALID" else BYTES_OF.get(f"TYPE_{_type(given)}", 0)


def _type(tensor: ModelInput | ModelWarmup.Input) -> str:
    return enum_name(tensor, "data_type").removeprefix("TYPE_")


def _shown(data_type: str) -> str:
    """The data type as the server's protocol calls it; there, a number has no name."""
    names = {"INVALID": "<invalid>", "STRING": "BYTES"}
    return names.get(data_type, data_type if data_type[0].isalpha() else names["INVALID"])
