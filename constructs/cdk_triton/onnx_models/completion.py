"""The completion of a configuration that names no inputs, or no outputs, by the ONNX Runtime backend.

It does what `ModelState::AutoCompleteConfig` does (onnxruntime_backend, src/onnxruntime.cc, 958 to 1215) with the
tensors of the file. ONNX Runtime may find out more about outputs than the file contains; values
that depend on that stay open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import SIDES, completes_tensors, known_backend
from cdk_triton.onnx_models.reader.file import OnnxFile, OnnxTensor
from cdk_triton.onnx_models.rules.models import OnnxModelFile, onnx_models
from cdk_triton.triton.model import CONFIG_NAME, Model
from cdk_triton.triton.schema import DataType, ModelConfig

__all__ = ["completed"]

_DEFAULT_MAX_BATCH_SIZE = 4  # of the server's --backend-config=default-max-batch-size, in core's backend_config.cc
_NO_TYPE = (None, "BF16")  # ConvertFromOnnxDataType


def completed(context: CheckContext, model: Model) -> ModelConfig | None:
    """A model's configuration as its backend completes it, as far as that is certain.

    An added tensor lacks `dims` or `data_type` if these are not known. The result is None if the model has no
    configuration, or one that cannot be read.
    """
    return _completed(context).get(model.name, model.config)


@per_check
def _completed(context: CheckContext) -> Mapping[str, ModelConfig]:
    by_model: dict[str, list[OnnxModelFile]] = {}
    for each in onnx_models(context):
        by_model.setdefault(each.name, []).append(each)
    return {name: config for name, versions in by_model.items() if (config := _complete(versions)) is not None}


def _complete(versions: list[OnnxModelFile]) -> ModelConfig | None:
    """The completed configuration; None if the backend completes nothing, or something that cannot be known."""
    owner, onnx = versions[0].owner, versions[0].onnx
    model, config = owner.model, owner.config
    sides = [side for side in SIDES if completes_tensors(owner, side)]
    if not sides or known_backend(owner.context, model) != "onnxruntime" or not _is_plain(config):
        return None
    if CONFIG_NAME in model.subdirectories:
        return None  # a directory is not a configuration: reported by CT101
    if len(versions) != len(model.served_versions) or any(_face(each.onnx) != _face(onnx) for each in versions):
        return None  # a version that cannot be read, or versions that differ
    if any(tensor.kind != "tensor" for tensor in (*onnx.inputs, *onnx.outputs)):
        return None  # reported by CT138
    batches = _takes_batches(onnx)
    if config.max_batch_size != 0 and batches is False:
        return None  # reported by CT135
    result = ModelConfig()
    result.CopyFrom(config)
    if config.max_batch_size > 0:
        batches = True  # otherwise it would not be loaded
    elif batches:
        environment = owner.context.environment
        argued = environment.additional_args if environment is not None else ()
        if any("default-max-batch-size" in argument for argument in argued):
            batches = None  # 0 is possible as well
        else:
            result.max_batch_size = _DEFAULT_MAX_BATCH_SIZE
    for side in sides:
        _add(result, side, onnx.inputs if side == "input" else onnx.outputs, batches)
    return result


def _is_plain(config: ModelConfig) -> bool:
    """Whether the configuration changes neither which file is read nor the tensors of the file."""
    return not config.cc_model_filenames and not config.HasField("sequence_batching") and config.max_batch_size >= 0


def _face(onnx: OnnxFile) -> object:
    return onnx.inputs, onnx.outputs


def _takes_batches(onnx: OnnxFile) -> bool | None:
    """Whether the first dimension of every tensor is variable; None if ONNX Runtime may find out something else.

    Inputs are those of the file. For outputs, only numbers and the name of an input's first dimension are certain.
    """
    tensors = (*onnx.inputs, *onnx.outputs)
    if any(tensor.shape is not None and (not tensor.shape or isinstance(tensor.shape[0], int)) for tensor in tensors):
        return False
    names = {tensor.shape[0] for tensor in onnx.inputs if tensor.shape and tensor.shape[0] is not None}
    is_certain = all(tensor.shape is not None for tensor in tensors) and all(
        tensor.shape and tensor.shape[0] in names for tensor in onnx.outputs
    )
    return True if is_certain else None


def _add(config: ModelConfig, side: str, tensors: tuple[OnnxTensor, ...], batches: bool | None) -> None:
    for tensor in tensors:
        added = config.input.add() if side == "input" else config.output.add()
        added.name = tensor.name
        if tensor.data_type not in _NO_TYPE:
            added.data_type = DataType.Value(f"TYPE_{tensor.data_type}")
        if tensor.shape is not None and batches is not None:
            added.dims.extend(_dims(tensor.shape[1:] if batches else tensor.shape))


def _dims(shape: tuple[int | str | None, ...]) -> Iterator[int]:
    """The dimensions as the backend writes them: a scalar has one element."""
    yield from (dim if isinstance(dim, int) else -1 for dim in shape) if shape else (1,)
