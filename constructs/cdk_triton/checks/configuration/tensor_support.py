"""CT207 to CT209, CT216 to CT218 and CT243: inputs and outputs that the model's kind or backend does not support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import SIDES, completes_nothing, completes_tensors, known_backend
from cdk_triton.checks.derived.configured import (
    ConfiguredModel,
    completed_pair,
    configured_or_not,
    has_no_configuration,
)
from cdk_triton.checks.derived.tensors import ConfiguredTensor, tensor_rule
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.pytorch_models.types import TORCH_TYPES
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig, ModelInput, enum_name

_UTILS = "src/model_config_utils.cc"

_NUMBERS = frozenset({"BOOL", "UINT8", "INT8", "INT32", "INT64", "FP16", "FP32"})

_IMAGE_FORMATS = ("FORMAT_NHWC", "FORMAT_NCHW")

# What each backend translates into a type of its framework; the others take them all, or are not known.
_TYPES_OF: Mapping[str, frozenset[str]] = {
    "tensorrt": _NUMBERS | {"BF16"},  # tensorrt_utils.cc, ConvertDataTypeToTrtType
    "openvino": _NUMBERS | {"INT16", "UINT16", "UINT32", "UINT64"},  # openvino_utils.cc
    "pytorch": TORCH_TYPES | {"STRING"},  # and text of one dimension
}

# These do not tell BackendModel whether `optional` is known, so it keeps the default, which is no.
_KNOW_NO_OPTIONAL = frozenset({"dali", "openvino", "pytorch", "tensorflow", "tensorrt"})


@tensor_rule("CT207", Severity.ERROR, "an image format needs three dims", source=core(_UTILS, 1826, 1831))
def format_without_three_dims(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """An input has the `format` `FORMAT_NHWC` or `FORMAT_NCHW`, but its `dims` do not have three entries.

    The server does not load the model. The format gives the order of height (H), width (W) and channels (C), so write
    these three dimensions. The batch dimension (N) is not a part of `dims`.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 1, 3, 224, 224 ] }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ] }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    message = tensor.message
    if not isinstance(message, ModelInput) or enum_name(message, "format") not in _IMAGE_FORMATS:
        return
    if tensor.dims and len(tensor.dims) != 3:
        yield tensor.unloadable(
            "format",
            f"{tensor.text} has the format {enum_name(message, 'format')} and the dims {list(tensor.dims)}",
            f"model input NHWC/NCHW require 3 dims for {tensor.owner.said_name}",
            "write three dims, without the batch dimension, or remove the format",
        )


@tensor_rule("CT208", Severity.ERROR, "a shape tensor outside TensorRT", source=core(_UTILS, 1833, 1837))
def shape_tensor_elsewhere(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """Only a TensorRT plan may have `is_shape_tensor`; the server does not load any other model with this field.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_INT32 dims: 4 is_shape_tensor: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_INT32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    if tensor.message.is_shape_tensor and not _is_plan(tensor):
        yield tensor.unloadable(
            "is_shape_tensor",
            f"{tensor.text} is marked as a shape tensor",
            f"shape tensors are only supported for TensorRT platform for {tensor.owner.said_name}",
            "remove is_shape_tensor",
        )


@tensor_rule("CT209", Severity.ERROR, "a non-linear format that the model cannot have", source=core(_UTILS, 425, 450))
def non_linear_format(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """Only a tensor of a TensorRT plan may have `is_non_linear_format_io`, and the tensor must have three dims.

    In every other case, the server does not load the model. The batch dimension does not count as one of the three.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP16 dims: [ 8, 4, 4 ] is_non_linear_format_io: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP16 dims: [ 8, 4, 4 ] }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    """
    if not tensor.message.is_non_linear_format_io:
        return
    if not _is_plan(tensor):
        words = "Non-linear IO format is only supported for the TensorRT platform"
        fix = "remove is_non_linear_format_io"
    elif tensor.dims and len(tensor.dims) != 3:
        words = f"Non-linear IO format {tensor.repeated} requires 3 dims"
        fix = "write three dims, without the batch dimension, or remove is_non_linear_format_io"
    else:
        return
    yield tensor.unloadable(
        "is_non_linear_format_io",
        f"{tensor.text} has a non-linear format and the dims {list(tensor.dims)}",
        f"{words} for {tensor.owner.said_name}",
        fix,
    )


@tensor_rule(
    "CT216",
    Severity.ERROR,
    "an optional input that the backend does not support",
    source=backend("backend", "src/backend_model.cc", 138, 150),
)
def optional_input(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """Only ensembles, Python models and ONNX models without batching support `optional` inputs.

    The backends for DALI, OpenVINO, PyTorch, TensorFlow and TensorRT do not load a model with an optional input. The
    ONNX Runtime backend does not load such a model if the model batches, or if the optional input is ragged
    (`allow_ragged_batch`). An input of an ONNX file is optional only if the file has an initializer of the same name.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 optional: true }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The rule skips all other backends.
    """
    message = tensor.message
    if not isinstance(message, ModelInput) or not message.optional:
        return
    name = known_backend(tensor.owner.context, tensor.owner.model)
    if name in _KNOW_NO_OPTIONAL:
        words = (
            f"'optional' is set to true for input '{tensor.name}' while the backend model doesn't support optional "
            "input"
        )
    elif name == "onnxruntime" and tensor.owner.config.max_batch_size != 0:
        words = f"optional input '{tensor.name}' is not supported for models that support batching"
    elif name == "onnxruntime" and message.allow_ragged_batch:
        words = f"for ragged input '{tensor.name}', which is not supported for optional input"
    else:
        return
    yield tensor.problem(
        "optional",
        f"{tensor.text} is optional and the backend is {name!r}, which would not load {tensor.owner.name!r}: {words}",
        "remove `optional`, and let callers always send the input",
    )


@tensor_rule(
    "CT217",
    Severity.ERROR,
    "a data type that the backend does not support",
    source=backend("tensorrt_backend", "src/instance_state.cc", 2297, 2308),
)
def unsupported_data_type(tensor: ConfiguredTensor) -> Iterator[Problem]:
    """A tensor has a data type that the backend's framework does not support, so the server does not load the model.

    TensorRT, OpenVINO and PyTorch support BOOL, UINT8, INT8, INT32, INT64, FP16 and FP32. TensorRT also supports BF16.
    OpenVINO also supports INT16, UINT16, UINT32 and UINT64. PyTorch also supports INT16, FP64 and STRING. A STRING
    tensor of PyTorch is a list of strings, so it has only one dimension, including the batch dimension.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_UINT32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_INT64 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The rule accepts INT64 for TensorRT, but TensorRT before version 10 (images before 24.05) does not support it.
        The rule skips all other backends.
    """
    data_type = enum_name(tensor.message, "data_type")
    if data_type == "TYPE_INVALID" or data_type.removeprefix("TYPE_") in _NUMBERS:
        return  # the former is reported by CT202, or completed
    name = known_backend(tensor.owner.context, tensor.owner.model)
    if name not in _TYPES_OF:
        return
    seen, batches = tensor.dims if tensor.reshape is None else tensor.reshape, tensor.owner.config.max_batch_size > 0
    if data_type.removeprefix("TYPE_") not in _TYPES_OF[name]:
        what = f"{tensor.repeated} '{tensor.name}' for model '{tensor.owner.name}'"
        words = f"unsupported datatype {data_type} for {what}"
        fix = f"write a type that {name} supports; if callers send another type, convert it in an earlier step"
    elif data_type == "TYPE_STRING" and len(seen) + batches > 1:
        words = f"Triton only supports 1 dimensional List of String as {tensor.repeated} for '{tensor.name}'"
        fix = "write one dimension, such as dims: [ -1 ]"
        if batches:
            fix = "write dims: [ 1 ] and reshape { shape: [ ] }"
    else:
        return
    yield tensor.problem(
        "data_type",
        f"{tensor.text} is {data_type} with the dims {list(seen)}, and the backend {name!r} would not load "
        f"{tensor.owner.name!r}: {words}",
        fix,
    )


@rule(
    "CT218",
    Severity.ERROR,
    "a PyTorch model's configuration has no inputs or no outputs",
    source=backend("pytorch_backend", "src/pt/model_instance_state.cc", 1360, 1381),
)
def no_tensors(context: CheckContext) -> Iterator[Problem]:
    """The configuration of a PyTorch model lists no input or no output, so the server does not load the model.

    A TorchScript file contains the names of the arguments of `forward`, but not their data types and shapes, so the
    PyTorch backend reads the inputs and outputs from the configuration.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The rule checks only models of the PyTorch backend. The server loads a model of the Python backend without
        inputs. Such a model may need no inputs, or may set them in `auto_complete_config`.
    """
    for each in configured_or_not(context):
        for side in SIDES:
            if getattr(each.config, side) or each.model.is_ensemble or completes_tensors(each, side):
                continue
            if known_backend(context, each.model) != "pytorch":
                continue
            words = "model configuration must contain at least one output, none were specified"
            if side == "input":  # the number is compared first
                words = "configuration expects 0 inputs"
            yield each.problem(
                side,
                f"the configuration names no {side}, and the backend 'pytorch' would not load {each.name!r}: {words}",
                f"write every {side} of the model's forward function, in its order",
            )


@rule(
    "CT243",
    Severity.ERROR,
    "a model has no configuration, and its backend makes none",
    source=core("src/model.cc", 91, 98),
)
def no_configuration(context: CheckContext) -> Iterator[Problem]:
    """A model has no `config.pbtxt`, and its backend does not generate a configuration from the model's files.

    The server does not load the model. The backends `fil`, `identity`, `repeat` and `square` never generate a
    configuration. The TensorFlow backend does not generate one for a graph definition (`model.graphdef`).

    Example:
        # model.identity/1/model.identity

    Instead:
        # model.identity/config.pbtxt
        backend: "identity"
        max_batch_size: 8
        input { name: "INPUT0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 4 }
    """
    for model in context.loaded_models:
        if not has_no_configuration(context, model):
            continue
        each = ConfiguredModel(context, model, ModelConfig())
        if completes_nothing(each):
            name = known_backend(context, model)
            yield each.unloadable(
                "",
                f"the file is missing, and the backend {name!r} does not generate a configuration",
                f"model configuration is not provided for model '{model.name}'",
                "add the file, with the inputs and outputs of the model",
            )


def _is_plan(tensor: ConfiguredTensor) -> bool:
    return completed_pair(tensor.owner.context, tensor.owner.model)[0] == "tensorrt_plan"
