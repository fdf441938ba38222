"""CT130 to CT139: whether an ONNX file agrees with its configuration.

If a configuration does not list inputs, the backend takes them from the file. It does the same for outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdk_triton._wording import listed
from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile, backend_files, file_rule, is_ort_model, is_pointer
from cdk_triton.checks.derived.configured import ConfiguredModel
from cdk_triton.checks.registry import Problem, rule, rules_about, would_not_load
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.onnx_models.reader.file import OnnxFile, OnnxTensor, onnx_file
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.repository import RepositoryFile
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput, enum_name
from cdk_triton.triton.unreadable import Unreadable

if TYPE_CHECKING:  # the schema's module has the types of more messages than it offers
    from cdk_triton.triton.schema import BatchInput

__all__ = [
    "OnnxModelFile",
    "batch_targets",
    "contradicted_names",
    "contradicted_types",
    "has_ort_name",
    "onnx_models",
    "onnx_rule",
    "pairs",
]


_OF_BATCH_INPUTS = ("TYPE_INT32", "TYPE_FP32")  # CT213 reports any other type in a configuration


@dataclass(frozen=True)
class OnnxModelFile:
    """An ONNX file that can be read, and the configuration that it has to agree with.

    Attributes:
        owner: the model, with its configuration.
        file: the file in the repository.
        onnx: the description of its network.
    """

    owner: ConfiguredModel
    file: RepositoryFile
    onnx: OnnxFile

    @property
    def name(self) -> str:
        """The model's name."""
        return self.owner.name

    @property
    def config(self) -> ModelConfig:
        """The model's configuration."""
        return self.owner.config

    def unloadable(self, found: str, words: str, fix: str, *, joint: str = ", so ") -> Problem:
        """A problem of the file for which the server does not load the model; `words` are the server's."""
        return Problem(self.file.path, would_not_load(self.owner.model, found, words, joint), fix)


@per_check
def onnx_models(context: CheckContext) -> Iterator[OnnxModelFile]:
    """The ONNX files that the server would load, without those that CT130 reports and files of another kind."""
    for each in backend_files(context):
        if each.backend == "onnxruntime" and each.file is not None and not has_ort_name(each.file):
            read = context.contents(onnx_file, each.file)
            if not isinstance(read, Unreadable):
                yield OnnxModelFile(each.owner, each.file, read)


onnx_rule = rules_about(onnx_models)
"""Register a rule about each of these files; the parameters are those of `rule`."""


def has_ort_name(file: RepositoryFile) -> bool:
    """Whether ONNX Runtime reads the file in its own format; the name decides."""
    return file.path.suffix.lower() == ".ort"


@file_rule(
    "CT130",
    Severity.ERROR,
    "an ONNX file cannot be read",
    source=backend("onnxruntime_backend", "src/onnxruntime_loader.cc", 165, 199),
)
def unreadable_file(each: BackendFile) -> Iterator[Problem]:
    """The file is empty or damaged, or the file is not an ONNX model.

    The server does not load the model. ONNX Runtime decides by the file name whether a file is in ONNX Runtime's own
    format (ORT). So the name of a file in this format has to end in `.ort`, and the name of an ONNX file must not.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        weights

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }

    Limits:
        No rule compares a file in the ORT format with the configuration.
    """
    if each.backend != "onnxruntime" or each.file is None:
        return
    reason = "is not in ONNX Runtime's own format: ORT model verification failed"
    if not has_ort_name(each.file):
        read = each.context.contents(onnx_file, each.file)
        if not isinstance(read, Unreadable):
            return
        reason = read.reason
    is_ort = each.context.contents(is_ort_model, each.file)
    if is_pointer(each.context, each.file) or (is_ort and has_ort_name(each.file)):
        return
    fault, _, said = reason.partition(": ")
    yield Problem(
        each.file.path,
        f"the file {fault}, so the server would not load {each.model.name!r}" + (said and f": {said}"),
        "the file has ONNX Runtime's own format: give it a name that ends in .ort, and write that name into "
        "default_model_filename"
        if is_ort
        else "export the model again",
    )


@rule(
    "CT131",
    Severity.ERROR,
    "a configuration names a tensor that the ONNX file does not have",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 1718, 1737),
)
def unknown_tensor(context: CheckContext) -> Iterator[Problem]:
    """The server does not load a model whose configuration names an input or output that is not in the file.

    If the target of a `batch_input` is not in the file, the server loads the model, but ONNX Runtime rejects every
    request.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "inputs" data_type: TYPE_FP32 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
    """
    suggestions = Suggestions()
    for each in onnx_models(context):
        inputs = {tensor.name for tensor in (*each.onnx.inputs, *each.onnx.defaults)}
        known = {"input": inputs, "output": {tensor.name for tensor in each.onnx.outputs}}
        if _input_counts(each) is not None:
            known.pop("input")  # reported by CT132, as the server does
        for side, names in known.items():
            written: Sequence[ModelInput | ModelOutput] = getattr(each.config, side)
            strange = [tensor.name for tensor in written if tensor.name not in names]
            left, ordered = names - {tensor.name for tensor in written}, sorted(names)
            for index, tensor in enumerate(written):
                if tensor.name in names or not tensor.name:
                    continue
                close = suggestions.closest(tensor.name, ordered)
                if close is None and len(left) == 1 and len(strange) == 1:
                    close = next(iter(left))  # the last of both
                yield each.owner.unloadable(
                    f"{side}[{index}].name",
                    f"{each.file.path} has no {side} {tensor.name!r}",
                    f"unexpected inference {side} '{tensor.name}', allowed {side}s are: {listed(ordered, shown=20)}",
                    f"write {close!r} if that is meant" if close else f"name one of the file's {side}s",
                )
        for target in batch_targets(each) if "input" in known else ():
            if target.tensor is None:
                close = suggestions.closest(target.name, sorted(inputs))
                yield target.rejected(
                    "target_name",
                    f"{each.file.path} has no input {target.name!r}",
                    f"Failed to find input name in the mapping: {target.name}",
                    f"write {close!r} if that is meant" if close else "name one of the file's inputs",
                )


@onnx_rule(
    "CT132",
    Severity.ERROR,
    "a configuration has more or fewer inputs than the ONNX file",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 1690, 1699),
)
def other_number_of_inputs(each: OnnxModelFile) -> Iterator[Problem]:
    """If a configuration lists inputs, it must list every input of the file that has no default value.

    The server compares the number of inputs in the configuration with the number in the file. It counts batch inputs,
    sequence controls and states as inputs, and does not count optional inputs. If the numbers differ, the server does
    not load the model.

    You may omit outputs. The backend does not compute the omitted outputs.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "ids" data_type: TYPE_INT64 dims: -1 }
        output { name: "OUT" data_type: TYPE_INT64 dims: -1 }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (int64[N] ids, int64[N] mask) => (int64[N] OUT) { OUT = Mul(ids, mask) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "ids" data_type: TYPE_INT64 dims: -1 }
        input { name: "mask" data_type: TYPE_INT64 dims: -1 }
        output { name: "OUT" data_type: TYPE_INT64 dims: -1 }
    """
    counts = _input_counts(each)
    if counts is None or _lacks_control(each):
        return
    batches, sequences = each.config.batch_input, each.config.sequence_batching
    written = {tensor.name for tensor in each.config.input}
    written |= {name for batch in batches for name in batch.target_name}
    written |= {control.name for control in sequences.control_input}
    written |= {state.input_name for state in sequences.state}
    known = [tensor.name for tensor in each.onnx.inputs]
    missing = [name for name in known if name not in written]
    unknown = [tensor.name for tensor in each.config.input if tensor.name not in known and not tensor.optional]
    parts = [f"lacks {_list(missing)}"] * bool(missing) + [f"also names {_list(unknown)}"] * bool(unknown)
    yield each.owner.unloadable(
        "input",
        f"{each.file.path} has the inputs {_list(known)}, but the configuration "
        f"{' and '.join(parts) or 'has another number of inputs'}",
        f"unable to load model '{each.name}', configuration expects {counts[0]} inputs, model provides {counts[1]}",
        "name exactly the file's inputs",
        joint="; ",
    )


def _input_counts(each: OnnxModelFile) -> tuple[int, int] | None:
    """The numbers of inputs in the configuration and in the file; None if they are equal."""
    config = each.config
    if not config.input and not config.batch_input:
        return None  # the backend completes them
    written = sum(not tensor.optional for tensor in config.input) + len(config.batch_input)
    if config.HasField("sequence_batching"):
        written += sum(len(given.control) for given in config.sequence_batching.control_input)
        written += len(config.sequence_batching.state)
    return (written, len(each.onnx.inputs)) if written != len(each.onnx.inputs) else None


def _lacks_control(each: OnnxModelFile) -> bool:
    """Whether a control of its sequences, or a state, is not an input of the file (see CT147 and CT149)."""
    given = {tensor.name for tensor in (*each.onnx.inputs, *each.onnx.defaults)}
    batching = each.config.sequence_batching
    controls = {control.name for control in batching.control_input if control.control}
    return not given.issuperset(controls | {state.input_name for state in batching.state})


def _list(names: list[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


def pairs(each: OnnxModelFile) -> Iterator[tuple[str, int, ModelInput | ModelOutput, OnnxTensor]]:
    """The tensors that are in both: side, index in the configuration, and the tensor of each."""
    sides: tuple[tuple[str, Sequence[ModelInput | ModelOutput], tuple[OnnxTensor, ...]], ...] = (
        ("input", each.config.input, (*each.onnx.inputs, *each.onnx.defaults)),
        ("output", each.config.output, each.onnx.outputs),
    )
    for side, written, tensors in sides:
        by_name = {tensor.name: tensor for tensor in tensors}
        for index, tensor in enumerate(written):
            if tensor.name in by_name:
                yield side, index, tensor, by_name[tensor.name]


@dataclass(frozen=True)
class BatchTarget:
    """An input of the file that the server computes from a batch, because a `batch_input` names it.

    The backend counts these inputs when it loads the model (CT132), and compares nothing else of them with the file.

    Attributes:
        file: the file and its configuration.
        index: the position of the `batch_input`.
        message: the `batch_input`.
        name: the target.
        tensor: the input in the file; None if the file does not have it.
    """

    file: OnnxModelFile
    index: int
    message: BatchInput
    name: str
    tensor: OnnxTensor | None

    def rejected(self, field: str, found: str, words: str, fix: str) -> Problem:
        """A problem of a field for which ONNX Runtime rejects every request; `words` are its own."""
        message = f"{found}, so {self.file.name!r} would answer every request with an error: {words}"
        return self.file.owner.problem(f"batch_input[{self.index}].{field}", message, fix)


def batch_targets(each: OnnxModelFile) -> Iterator[BatchTarget]:
    """The targets of the batch inputs."""
    by_name = {tensor.name: tensor for tensor in (*each.onnx.inputs, *each.onnx.defaults)}
    for index, message in enumerate(each.config.batch_input):
        for name in message.target_name:
            yield BatchTarget(each, index, message, name, by_name.get(name))


def contradicted_names(context: CheckContext) -> Iterator[tuple[str, str, str]]:
    """Model, side and name of each tensor that only the file or the configuration has, where CT131 or CT132 reports."""
    for each in onnx_models(context):
        inputs = {tensor.name for tensor in (*each.onnx.inputs, *each.onnx.defaults)}
        sides = {"input": inputs, "output": {tensor.name for tensor in each.onnx.outputs}}
        for side, names in sides.items():
            written = {tensor.name for tensor in getattr(each.config, side)}
            if written - names or (side == "input" and _input_counts(each) is not None):
                yield from ((each.name, side, name) for name in written ^ names)


def contradicted_types(context: CheckContext) -> Iterator[tuple[str, str]]:
    """Model and field of each type that CT133 reports."""
    for each in onnx_models(context):
        yield from ((each.name, f"{side}[{index}].data_type") for side, index, _, _ in _of_other_type(each))


def _of_other_type(each: OnnxModelFile) -> Iterator[tuple[str, int, ModelInput | ModelOutput, OnnxTensor]]:
    for side, index, tensor, found in pairs(each):
        if found.data_type and enum_name(tensor, "data_type") not in ("TYPE_INVALID", f"TYPE_{found.data_type}"):
            yield side, index, tensor, found


@onnx_rule(
    "CT133",
    Severity.ERROR,
    "a tensor has another type in the ONNX file",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 1739, 1757),
)
def other_type(each: OnnxModelFile) -> Iterator[Problem]:
    """The `data_type` of a tensor in the configuration differs from the type of this tensor in the file.

    The server does not load the model. The most common case is token ids, which are 64-bit integers in the file
    (`TYPE_INT64`).

    If the target of a `batch_input` has another type in the file, the server loads the model, but ONNX Runtime rejects
    every request. The server computes such an input only as `TYPE_INT32` or `TYPE_FP32`, so if the file has 64-bit
    integers, export it again.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_INT32 dims: -1 }
        output { name: "OUT" data_type: TYPE_INT64 dims: -1 }
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (int64[N] IN) => (int64[N] OUT) { OUT = Identity(IN) }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_INT64 dims: -1 }
        output { name: "OUT" data_type: TYPE_INT64 dims: -1 }
    """
    for side, index, tensor, found in _of_other_type(each):
        written, provided = enum_name(tensor, "data_type"), str(found.data_type).replace("STRING", "BYTES")
        yield each.owner.unloadable(
            f"{side}[{index}].data_type",
            f"the data_type is {written}, but TYPE_{found.data_type} in {each.file.path}",
            f"unable to load model '{each.name}', configuration expects datatype {written} for {side} "
            f"'{tensor.name}', model provides TYPE_{provided}",
            f"write data_type: TYPE_{found.data_type}, or export the model with another type",
            joint="; ",
        )
    for target in batch_targets(each):
        kept, computed = target.tensor and target.tensor.data_type, enum_name(target.message, "data_type")
        if kept and computed in _OF_BATCH_INPUTS and computed != f"TYPE_{kept}":
            yield target.rejected(
                "data_type",
                f"the data_type of the batch input {target.name!r} is {computed}, but TYPE_{kept} in {each.file.path}",
                "Unexpected input data type",
                f"write data_type: TYPE_{kept}"
                if f"TYPE_{kept}" in _OF_BATCH_INPUTS
                else "export the model with INT32 or FP32 for this input, because the server computes no other type",
            )


@onnx_rule(
    "CT138",
    Severity.ERROR,
    "an ONNX file has an input or output that is not a tensor",
    source=backend("onnxruntime_backend", "src/onnxruntime_utils.cc", 196, 204),
)
def no_tensor(each: OnnxModelFile) -> Iterator[Problem]:
    """Triton serves only tensors of numbers, booleans and strings, not sequences, maps or sparse tensors.

    The server does not load a file with any other kind of input or output, even if the configuration does not use it. A
    classifier that skl2onnx converts has such an output, unless you convert the classifier with the option
    `zipmap: False`.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N] IN) => (seq(float[N]) OUT) { OUT = SequenceConstruct(IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N] IN) => (float[N] OUT) { OUT = Identity(IN) }
    """
    names = {"sequence": "SEQUENCE", "map": "MAP", "sparse_tensor": "SPARSETENSOR"}
    for tensor in (*each.onnx.inputs, *each.onnx.defaults, *each.onnx.outputs):
        if tensor.kind in names:
            kind = f"ONNX_TYPE_{names[tensor.kind]}"
            yield each.unloadable(
                f"{tensor.name!r} is a {tensor.kind.replace('_', ' ')}",
                f"Unsupported ONNX Type '{kind}' for I/O '{tensor.name}', expected 'ONNX_TYPE_TENSOR'",
                "export the model so that it takes and gives tensors only (skl2onnx: zipmap=False)",
            )
