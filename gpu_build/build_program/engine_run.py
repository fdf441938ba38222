"""Loads a TensorRT plan, runs it once with given inputs, and compares its tensors with `config.pbtxt`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .step import BuildError, Work
from .tensors import Tensor
from .trtexec import Binding, bindings_in, data_dependent_outputs_in, shapes_in

__all__ = ["EngineRun", "check_tensors", "exported_values", "loading", "run_engine"]

# The words of trtexec for types (sampleOptions.cpp, operator<< of DataType) and Triton's.
_TYPES = {
    "TYPE_BOOL": "bool",
    "TYPE_UINT8": "uint8",
    "TYPE_INT8": "int8",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_FP16": "fp16",
    "TYPE_FP32": "fp32",
    "TYPE_BF16": "bf16",
}
_EXPORTED = "outputs.json"
_FIRST_WITH_RAW_FILES = (8, 6)
_FIRST_WITHOUT_TRANSFERS = (11,)
# sampleUtils.cpp, loadFromFile
_SIZE = re.compile(r"Unexpected file size for input file: (\S+?)\. Note: Input binding size is: (\d+) bytes")


class EngineRun(NamedTuple):
    """The results of one run of a TensorRT plan.

    Attributes:
        directory: the directory with the files of the bindings.
        bindings: inputs and outputs, with the dimensions of this run.
        exported: the outputs as JSON, if the trtexec does not write raw files.
        data_dependent: outputs whose shape depends on values: they cannot be compared.
    """

    directory: Path
    bindings: tuple[Binding, ...]
    exported: Path | None
    data_dependent: tuple[str, ...]


def run_engine(
    work: Work,
    name: str,
    trtexec: Sequence[str],
    plan: Path,
    *,
    version: tuple[int, ...],
    inputs: Sequence[Tensor],
    directory: Path,
    profile: int | None,
) -> EngineRun:
    """Load a TensorRT plan and run it once.

    Args:
        work: runs trtexec.
        name: the step's name, which begins an error.
        trtexec: its path, and the options of each run.
        plan: the TensorRT plan.
        version: the version of TensorRT: which options its trtexec has.
        inputs: what goes in; an input that is not here gets trtexec's own random values.
        directory: where trtexec writes.
        profile: the optimisation profile to use, where the plan has several.

    Raises:
        BuildError: the plan cannot be loaded or run, or has different inputs.
    """
    command = [*trtexec, *loading(plan, inputs, profile), "--iterations=1", "--warmUp=0", "--duration=0"]
    # The path's name only: trtexec ends a name at the last colon and an entry at a comma.
    loads = [f"{tensor.name}:{tensor.file.name}" for tensor in inputs if tensor.shape_values is None]
    if loads:
        command.append(f"--loadInputs={','.join(loads)}")
    raw = version >= _FIRST_WITH_RAW_FILES
    command.append("--dumpRawBindingsToFile" if raw else f"--exportOutput={_EXPORTED}")
    if version >= _FIRST_WITHOUT_TRANSFERS:
        # From 11 on nothing is copied back unless it is asked for, and raw files alone do not ask
        # (sampleInference.cpp, needOutput).
        command.append("--includeDataTransfers")
    try:
        lines = work.run(command, what="loading and running the plan once", directory=directory)
    except BuildError as error:
        explained = _wrong_size(name, error, inputs)
        if explained is None:
            raise
        raise explained from error
    return EngineRun(
        directory=directory,
        bindings=tuple(bindings_in(lines) if raw else shapes_in(lines)),
        exported=None if raw else directory / _EXPORTED,
        data_dependent=tuple(data_dependent_outputs_in(lines)),
    )


def loading(plan: Path, inputs: Sequence[Tensor], profile: int | None) -> list[str]:
    """The options with which trtexec loads a plan, for the shapes of these inputs."""
    options = [f"--loadEngine={plan}"]
    if profile is not None:
        options.append(f"--useProfile={profile}")
    shapes = [f"{each.name}:{'x'.join(map(str, each.shape_values or each.dims))}" for each in inputs if each.dims]
    if shapes:
        options.append(f"--shapes={','.join(shapes)}")
    return options


def exported_values(file: Path) -> dict[str, list[float]]:
    """The values of `--exportOutput`, by output; it prints NaN and infinities as C++ does, which is not JSON."""
    text = re.sub(r"(?<=[\[,] )-?nan(?=,| \])", "NaN", file.read_text(encoding="utf-8"))
    text = re.sub(r"(?<=[\[,] )(-?)inf(?=,| \])", r"\1Infinity", text)
    return {entry["name"]: entry["values"] for entry in json.loads(text)}


def check_tensors(
    name: str, expected: Sequence[Mapping[str, Any]], found: Iterable[Binding], *, side: str, complete: bool
) -> None:
    """Compare the inputs or outputs of a TensorRT plan with `config.pbtxt`.

    Args:
        name: the step's name, which begins an error.
        expected: `inputs` or `outputs` of the step; if empty, the server takes what the plan has.
        found: the tensors of the plan.
        side: "input" or "output".
        complete: whether the plan must not have other tensors.

    Raises:
        BuildError: the tensors of the plan differ from those of the step.
    """
    if not expected:
        return
    bindings = {binding.name: binding for binding in found}
    for tensor in expected:
        binding = bindings.pop(tensor["name"], None)
        if binding is None:
            others = ", ".join(map(repr, sorted(bindings))) or "no other"
            raise BuildError(
                f"{name}: config.pbtxt has the {side} {tensor['name']!r}, but the plan does not (it has {others}): "
                "correct config.pbtxt or the names in the ONNX file"
            )
        _check_type(name, side, tensor, binding)
        _check_dims(name, side, tensor, binding)
    if bindings and complete:
        raise BuildError(
            f"{name}: the plan has the {side} {min(bindings)!r}, but config.pbtxt does not: add the {side} to "
            "config.pbtxt"
        )


def _check_type(name: str, side: str, tensor: Mapping[str, Any], binding: Binding) -> None:
    expected = _TYPES.get(tensor["data_type"], tensor["data_type"])
    if binding.data_type is not None and binding.data_type != expected:
        raise BuildError(
            f"{name}: the {side} {binding.name!r} is {binding.data_type} in the plan, but {tensor['data_type']} in "
            "config.pbtxt: correct one of them, because the server compares the types when it loads the model"
        )


def _check_dims(name: str, side: str, tensor: Mapping[str, Any], binding: Binding) -> None:
    expected = tensor["dims"]
    fits = len(expected) == len(binding.dims) and all(
        size in (-1, found) or found == -1 for size, found in zip(expected, binding.dims)
    )
    if not fits:
        raise BuildError(
            f"{name}: the {side} {binding.name!r} has the dimensions {list(binding.dims)} in the plan, but {expected} "
            "in config.pbtxt (with the batch dimension; -1 is any size): correct one of them"
        )


def _wrong_size(name: str, error: BuildError, inputs: Sequence[Tensor]) -> BuildError | None:
    """The error in the words of `config.pbtxt`, or None if it is not about the size of an input."""
    found = next(filter(None, map(_SIZE.search, error.log)), None)
    tensor = next((each for each in inputs if found is not None and each.file.name == found.group(1)), None)
    if found is None or tensor is None:
        return None
    return BuildError(
        f"{name}: the input {tensor.name!r} has {found.group(2)} bytes in the plan, but {tensor.file.stat().st_size} "
        f"bytes in config.pbtxt ({tensor.data_type} of {list(tensor.dims)}), because config.pbtxt has another data "
        "type than the ONNX file: correct one of them",
        error.log,
    )
