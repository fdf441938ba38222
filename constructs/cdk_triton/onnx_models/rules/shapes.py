"""CT134 to CT136: whether the shapes in an ONNX file agree with its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.registry import Problem, rule, would_not_load
from cdk_triton.checks.sources import backend
from cdk_triton.onnx_models.reader.file import OnnxTensor
from cdk_triton.onnx_models.rules.models import OnnxModelFile, batch_targets, onnx_models, onnx_rule, pairs
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelInput, ModelOutput, enum_name

__all__ = ["contradicted_shapes"]

_COMPARE = backend("onnxruntime_backend", "src/onnxruntime_utils.cc", 466, 540)

Shape = tuple[int | str | None, ...]


@dataclass(frozen=True)
class _Pair:
    """A tensor of the configuration that the file has as well, where the backend compares the two.

    Attributes:
        side: `input` or `output`.
        tensor: as the configuration has it.
        path: the field that is compared.
        written: its dimensions there.
        shape: its dimensions in the file.
        batches: whether the backend takes the file's first dimension for the batch.
    """

    side: str
    tensor: ModelInput | ModelOutput
    path: str
    written: tuple[int, ...]
    shape: Shape
    batches: bool

    @property
    def full(self) -> tuple[int, ...]:
        """The dimensions that the backend compares with the file."""
        return (-1, *self.written) if self.batches else self.written

    @property
    def differs(self) -> bool:
        """Whether they differ for certain, whatever ONNX Runtime finds out about what the file leaves open."""
        return any(dim != 1 for dim in self.written) if not self.shape else not _fits(self.full, self.shape)

    @property
    def is_off_by_batch(self) -> bool:
        """Whether they differ by the dimension of the batch alone."""
        if not self.shape or isinstance(self.shape[0], int) or not self.differs:
            return False
        return _fits(self.written, self.shape) if self.batches else _fits((-1, *self.written), self.shape)

    @property
    def wanted(self) -> str:
        """The value to write instead of the dimensions."""
        own = self.shape[1:] if self.batches else self.shape
        kept = self.written if self.side == "input" and len(self.written) == len(own) else (-1,) * len(own)
        dims = [dim if isinstance(dim, int) else said for dim, said in zip(own, kept, strict=True)]
        if not self.shape or not dims:
            return "dims: [ 1 ] reshape { shape: [ ] }" if self.shape else "dims: [ 1 ]"
        text = f"[ {', '.join(map(str, dims))} ]"
        return f"reshape {{ shape: {text} }}" if self.tensor.HasField("reshape") else f"dims: {text}"


def _fits(written: Sequence[int], shape: Shape) -> bool:
    if len(written) != len(shape):
        return False
    return all(said == own for said, own in zip(written, shape, strict=True) if isinstance(own, int))


@per_check
def _compared(context: CheckContext) -> Iterator[tuple[OnnxModelFile, tuple[_Pair, ...]]]:
    return ((each, tuple(_pairs(each))) for each in onnx_models(context))


def _pairs(each: OnnxModelFile) -> Iterator[_Pair]:
    batches = _batches(each)
    computed = {name for output in each.config.batch_output for name in output.target_name}
    for side, index, tensor, found in pairs(each):
        written = _written(tensor)
        if batches is None or written is None or found.shape is None or _lacks_batch(each, found):
            continue
        if side == "output" and tensor.name in computed:
            continue  # its shape is what the batch makes of it
        field = f"{side}[{index}].{'reshape.shape' if tensor.HasField('reshape') else 'dims'}"
        yield _Pair(side, tensor, field, written, found.shape, batches)


def _batches(each: OnnxModelFile) -> bool | None:
    """Whether the first dimension is the batch; None if the configuration is rejected, or completed from the file."""
    config = each.config
    if config.max_batch_size != 0:
        return config.max_batch_size > 0 or None
    if config.output and (config.input or config.batch_input):
        return False
    # The backend sets max_batch_size where the first dimension of every tensor is variable.
    tensors = (*each.onnx.inputs, *each.onnx.outputs)
    return None if all(tensor.shape and not isinstance(tensor.shape[0], int) for tensor in tensors) else False


def contradicted_shapes(context: CheckContext) -> Iterator[tuple[str, str]]:
    """Model and field of each shape that CT134 reports."""
    return ((each.name, pair.path) for each, compared in _compared(context) for pair in compared if pair.differs)


@rule("CT134", Severity.ERROR, "a tensor has another shape in the ONNX file", source=_COMPARE)
def other_shape(context: CheckContext) -> Iterator[Problem]:
    """The dims of a tensor in the configuration do not match the shape of this tensor in the file.

    The server does not load the model. With `max_batch_size` above 0, the shape in the file needs one more dimension
    than the configuration, and this batch dimension comes first. If a dimension of an input is variable in the file,
    the configuration may contain any number for this dimension.

    The target of a `batch_input` has one dimension, or two with the kind `BATCH_ITEM_SHAPE`. If the file has another
    number of dimensions, the server loads the model, but ONNX Runtime rejects every request.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 1, 4 ] }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Limits:
        CT136 reports an output dimension that is variable in the file, because ONNX Runtime may infer the size of this
        dimension. The rule skips a model if the backend would set `max_batch_size`. This is the case if the
        configuration omits inputs or outputs, and the first dimension of every tensor in the file is variable.
    """
    for each, compared in _compared(context):
        differing = [pair for pair in compared if pair.differs]
        batch = [pair for pair in differing if pair.is_off_by_batch]
        if batch:
            yield _shape_problem(each, batch, _fix_of_batch(each, batch))
        for pair in differing:
            if not pair.is_off_by_batch:
                yield _shape_problem(each, [pair], f"write {pair.wanted}, or export the model with another shape")
        for target in batch_targets(each):
            kind, shape = enum_name(target.message, "kind"), None if target.tensor is None else target.tensor.shape
            rank, dimensions = (2, "two dimensions") if kind == "BATCH_ITEM_SHAPE" else (1, "one dimension")
            if shape is not None and kind.startswith("BATCH_") and len(shape) != rank:
                yield target.rejected(
                    "target_name",
                    f"the server computes the batch input {target.name!r} with {dimensions}, but "
                    f"{each.file.path} has the shape {_named(shape)}",
                    f"Invalid rank for input: {target.name} Got: {rank} Expected: {len(shape)}",
                    f"export the model with {dimensions} for this input",
                )


def _shape_problem(each: OnnxModelFile, found: Sequence[_Pair], fix: str) -> Problem:
    """One problem for tensors that differ for the same reason."""
    first, others = found[0], [repr(pair.tensor.name) for pair in found[1:]]
    own = "reshape" if first.tensor.HasField("reshape") else "dims"
    added = " (max_batch_size adds the batch dimension)" if first.batches and first.shape else ""
    likewise = f" (likewise {', '.join(others)})" * bool(others)
    return each.owner.unloadable(
        first.path,
        f"the {first.side} {first.tensor.name!r} has the {own} {_text(first.written, ', ')}{added}, but the shape "
        f"{_named(first.shape)} in {each.file.path}{likewise}",
        _said(each, first),
        fix,
        joint="; ",
    )


def _fix_of_batch(each: OnnxModelFile, found: Sequence[_Pair]) -> str:
    if found[0].batches:
        return "remove the first dimension, because max_batch_size adds the batch dimension"
    tensors = (*each.onnx.inputs, *each.onnx.outputs)
    takes_batches = all(tensor.shape and not isinstance(tensor.shape[0], int) for tensor in tensors)
    front = f"write {found[0].wanted}" if len(found) == 1 else "put -1 in front of the dims"
    return f"set max_batch_size, or {front}" if takes_batches else front


@onnx_rule("CT135", Severity.ERROR, "an ONNX model that takes batches has a fixed first dimension", source=_COMPARE)
def fixed_batch(each: OnnxModelFile) -> Iterator[Problem]:
    """With `max_batch_size` above 0, the first dimension of every tensor in the file must be variable.

    Otherwise, the server does not load the model. Exporters fix every dimension by default. To make the first dimension
    variable, use `dynamic_axes` or `dynamic_shapes` of `torch.onnx.export`. If the model does not support batches, set
    `max_batch_size: 0`.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[1, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }
    """
    batched = f"max_batch_size is {each.config.max_batch_size}, but the first dimension"
    if each.config.max_batch_size > 0 and not (each.config.input and each.config.output):
        tensors = (*each.onnx.inputs, *each.onnx.outputs)
        names = [tensor.name for tensor in tensors if tensor.shape == () or _lacks_batch(each, tensor)]
        if names:
            yield each.owner.unloadable(
                "max_batch_size",
                f"{batched} of {', '.join(map(repr, names))} in {each.file.path} is not variable",
                f"autofill failed for model '{each.name}': model does not support batching while non-zero "
                "max_batch_size is specified",
                "export the model with a variable first dimension, or remove max_batch_size",
                joint="; ",
            )
        return
    for _, _, tensor, found in pairs(each):
        if _lacks_batch(each, found) and found.shape is not None and _written(tensor) is not None:
            words = (
                f"model '{each.name}', tensor '{tensor.name}': for the model to support batching the shape should have "
                "at least 1 dimension and the first dimension must be -1; but shape expected by the model is "
                f"{_text(found.shape)}"
            )
            yield Problem(
                each.file.path,
                would_not_load(each.owner.model, f"{batched} is not variable", words, joint="; "),
                "export the model with a variable first dimension, or set max_batch_size: 0",
                tensor.name,
            )


@rule(
    "CT136",
    Severity.WARNING,
    "a configuration fixes an output dimension that is variable in the ONNX file",
    source=_COMPARE,
)
def fixed_output(context: CheckContext) -> Iterator[Problem]:
    """If an output dimension is variable in the file, the configuration must contain -1 for this dimension.

    The server compares the dimensions of outputs exactly, so it does not load a model with another number. ONNX Runtime
    sometimes infers the size of a variable dimension. In this case, the configuration may contain this size.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[4] IN) => (float[unknown] OUT) <bool[4] keep = {1, 0, 1, 1}> { OUT = Compress(IN, keep) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
    """
    for each, compared in _compared(context):
        for pair in compared:
            if pair.side == "input" or not pair.shape or pair.differs:
                continue
            if any(said not in (own, -1) for own, said in zip(pair.shape, pair.full, strict=True)):
                yield each.owner.problem(
                    pair.path,
                    f"the shape is {_text(pair.full)}, but {_text(pair.shape)} in {each.file.path}; unless ONNX "
                    f"Runtime infers the size, the server would not load {each.name!r}: model '{each.name}', tensor "
                    f"'{pair.tensor.name}': the model expects {len(pair.full)} dimensions",
                    "write -1 for each dimension that is variable in the file, or export the model with the fixed size",
                )


def _written(tensor: ModelInput | ModelOutput) -> tuple[int, ...] | None:
    """The dimensions that the backend compares; None if the core rejects them, or the backend compares other values."""
    if isinstance(tensor, ModelInput) and tensor.allow_ragged_batch:
        return None
    if not tensor.dims or any(dim == 0 or dim < -1 for dim in (*tensor.dims, *tensor.reshape.shape)):
        return None
    return tuple(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)


def _lacks_batch(each: OnnxModelFile, found: OnnxTensor) -> bool:
    return each.config.max_batch_size > 0 and bool(found.shape) and isinstance((found.shape or (None,))[0], int)


def _said(each: OnnxModelFile, pair: _Pair) -> str:
    """The server's message about shapes that differ."""
    if not pair.shape:
        return (
            f"unable to load model '{each.name}', scalar tensor '{pair.tensor.name}', should only provide 1 in the "
            "model configuration when the model doesn't support batching. Model configuration provided: "
            f"{_text(pair.written)}."
        )
    complete = f"(shape {_text(pair.full)})"
    if pair.batches:
        complete = (
            "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making "
            f"complete shape {_text(pair.full)})"
        )
    return (
        f"model '{each.name}', tensor '{pair.tensor.name}': the model expects {len(pair.shape)} dimensions (shape "
        f"{_text(pair.shape)}) but the model configuration specifies {len(pair.full)} dimensions {complete}"
    )


def _text(shape: Shape, comma: str = ",") -> str:
    """A shape as the server writes it."""
    return f"[{comma.join(str(dim) if isinstance(dim, int) else '-1' for dim in shape)}]"


def _named(shape: Shape) -> str:
    """A shape as the file has it."""
    return f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]"
