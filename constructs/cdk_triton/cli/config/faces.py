"""Reads the tensors of a model from its network, its source or its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import typer

from cdk_triton.cli.config.labels import Labels, with_labels
from cdk_triton.cli.config.values import Face, Guess, Tensor
from cdk_triton.errors import RepositoryError
from cdk_triton.onnx_models.reader.file import OnnxFile, OnnxTensor, onnx_file
from cdk_triton.python_models.reader.source import PythonSource, python_source
from cdk_triton.triton.model import CONFIG_NAME
from cdk_triton.triton.model_config import parse_model_config
from cdk_triton.triton.schema import ModelInput, ModelOutput, enum_name
from cdk_triton.triton.unreadable import Unreadable
from cdk_triton.triton.versions import is_version_name

__all__ = ["BATCH", "HINT", "face_of"]

HINT = "MODEL"
BATCH = 8
_PYTHON = (3, 10)  # of most of SageMaker's images; what is read here is the same in every version
_UNSERVED = (None, "BF16")
"""The types that `ConvertFromOnnxDataType` of the ONNX Runtime backend lists as "not supported", or does not list.

Source: https://github.com/triton-inference-server/onnxruntime_backend/blob/0c223c86d84631536b37d2cff6cc96bc6ea992e0/src/onnxruntime_utils.cc
"""


def face_of(path: Path) -> Face:
    """Read a model: a network, a Python model, or the directory of either.

    Raises:
        BadParameter: the path is not a network, a Python model or a directory of a model, or cannot be read.
    """
    directory = _model_directory(path)
    if directory is not None and (directory / CONFIG_NAME).is_file():
        return _face_of_configuration(directory)
    file = _newest_model_file(path) if path.is_dir() else path
    name = file.stem if file.stem != "model" else (directory or file.resolve().parent).resolve().name
    if not file.exists():
        raise _unusable(f"{file} does not exist; name a network (.onnx), a Python model (.py) or a model's directory")
    if file.suffix == ".py":
        return _of_python(file, name)
    return _of_network(file, name, with_labels(file, directory))


def _unusable(sentence: str) -> typer.BadParameter:
    return typer.BadParameter(sentence, param_hint=HINT)


def _model_directory(path: Path) -> Path | None:
    """The path itself, or the directory above that of a version."""
    if path.is_dir():
        return path
    parent = path.resolve().parent
    if is_version_name(parent.name):
        return path.parent.parent if path.parent.name else parent.parent
    return None


def _newest_model_file(directory: Path) -> Path:
    versions = sorted((each for each in directory.iterdir() if is_version_name(each.name)), key=lambda at: int(at.name))
    found = [each / name for each in reversed(versions) for name in ("model.onnx", "model.py")]
    file = next((each for each in found if each.is_file()), None)
    if file is None:
        raise _unusable(
            f"{directory} has neither {CONFIG_NAME} nor a version with model.onnx or model.py; write its "
            f"{CONFIG_NAME}, or name the file of an ONNX or Python model"
        )
    return file


def _face_of_configuration(directory: Path) -> Face:
    try:
        config = parse_model_config((directory / CONFIG_NAME).read_bytes(), path=str(directory / CONFIG_NAME))
    except RepositoryError as error:
        raise _unusable(str(error)) from error
    name = directory.resolve().name
    if not (config.input and config.output):
        raise _unusable(f"{directory / CONFIG_NAME} names no inputs or no outputs; write them, or remove the file")
    return Face(
        name,
        config.backend or config.platform,
        config.max_batch_size,
        tuple(map(_written, config.input)),
        tuple(map(_written, config.output)),
        {file.relative_to(directory).as_posix(): file for file in _files(directory)},
        written=True,
    )


def _files(directory: Path) -> Iterator[Path]:
    return (each for each in sorted(directory.rglob("*")) if each.is_file() and "__pycache__" not in each.parts)


def _written(tensor: ModelInput | ModelOutput) -> Tensor:
    dims = tuple(tensor.dims) or None
    return Tensor(tensor.name, enum_name(tensor, "data_type").removeprefix("TYPE_"), dims)


_EXPORT_TENSORS: Final = "export the model so that it takes and gives tensors only (skl2onnx: zipmap=False)"


def _of_network(file: Path, name: str, labels: Labels) -> Face:
    network = onnx_file(file)
    if isinstance(network, Unreadable):
        if file.suffix.lower() != ".onnx":
            raise _unusable(
                f"{file} is neither a network (.onnx) nor a Python model (.py); of a model of another backend, name "
                f"the directory, with its {CONFIG_NAME} and this file in the directory of a version"
            )
        cut = ", or the file is cut off" if network.reason.startswith("is not an ONNX file") else ""
        raise _unusable(f"{file} {network.reason}{cut}; name a complete network in the ONNX format")
    files = {"1/model.onnx": file, **_external_data(file, network)}
    tensors = (*network.inputs, *network.outputs)
    for tensor in tensors:
        if tensor.kind != "tensor":
            kind = tensor.kind.replace("_", " ")
            raise _unusable(f"{file} has {tensor.name!r}, a {kind} that Triton does not serve; {_EXPORT_TENSORS}")
        if tensor.data_type in _UNSERVED:
            raise _unusable(
                f"{file} has the tensor {tensor.name!r} of {tensor.data_type or 'a type'}, which the ONNX Runtime "
                "backend does not serve; export it as FP16 or FP32"
            )
    batches, reason = _batches_and_reason(tensors)
    guesses = [Guess("max_batch_size", reason)]
    for side, given in (("input", network.inputs), ("output", network.outputs)):
        guesses += [
            Guess(f"{side}[{index}].dims", "the network does not declare how many dimensions it has; write them")
            for index, tensor in enumerate(given)
            if tensor.shape is None
        ]
    outputs, label_files = labels.placed([_tensor(each, batches) for each in network.outputs])
    return Face(
        name,
        "onnxruntime",
        BATCH if batches else 0,
        tuple(_tensor(each, batches) for each in network.inputs),
        outputs,
        {**files, **label_files},
        guesses=(*guesses, *labels.guesses(outputs)),
    )


def _external_data(file: Path, network: OnnxFile) -> dict[str, Path]:
    found = {}
    for each in network.external_data:
        path = file.parent / each.location
        if not path.is_file() or path.stat().st_size < each.end:
            fault = "is too short" if path.is_file() else "is missing"
            raise _unusable(
                f"the file {path} of the weights {each.tensor!r} of {file} {fault}; put it beside the network"
            )
        found[f"1/{each.location}"] = path
    return found


def _batches_and_reason(tensors: Sequence[OnnxTensor]) -> tuple[bool, str]:
    fixed = [each.name for each in tensors if each.shape is not None and not (each.shape and _is_open(each.shape[0]))]
    if fixed:
        return False, f"the first dimension of {fixed[0]!r} is fixed, so the tensors have no batch dimension"
    return True, (
        f"the first dimension of each tensor is open, so it is used as the batch dimension; {BATCH} is a first value. "
        "If it is another dimension, write 0, and -1 in front of each dims"
    )


def _is_open(dim: int | str | None) -> bool:
    return not isinstance(dim, int)


def _tensor(given: OnnxTensor, batches: bool) -> Tensor:
    if given.shape is None:
        return Tensor(given.name, given.data_type)
    shape = given.shape[1:] if batches else given.shape
    return Tensor(given.name, given.data_type, tuple(each if isinstance(each, int) else -1 for each in shape))


def _of_python(file: Path, name: str) -> Face:
    source = python_source(_PYTHON)(file)
    if not isinstance(source, PythonSource) or source.model is None:
        raise _unusable(f"{file} defines no class TritonPythonModel that can be read; name a Python model of Triton's")
    completed = {(each.method, each.given["name"]): each.given for each in source.completions if _adds(each.given)}
    sizes = [each.given for each in source.completions if each.method == "set_max_batch_size"]
    sides = {}
    for method, named in (("add_input", source.tensors.read), ("add_output", source.tensors.made or ())):
        added = [_completed(given) for (of, _), given in completed.items() if of == method]
        sides[method] = tuple(added) or tuple(Tensor(each) for each in dict.fromkeys(found.name for found in named))
        if not sides[method]:
            what = "inputs" if method == "add_input" else "outputs"
            raise _unusable(
                f"{file} does not name its {what} where a program can read them; write the model's {CONFIG_NAME} by "
                "hand, and name the model's directory"
            )
    size = sizes[0] if sizes and isinstance(sizes[0], int) else None
    return Face(name, "python", size, sides["add_input"], sides["add_output"], {"1/model.py": file})


def _adds(given: object) -> bool:
    return isinstance(given, dict) and isinstance(given.get("name"), str)


def _completed(given: Mapping[str, object]) -> Tensor:
    dims, data_type = given.get("dims"), given.get("data_type")
    known = tuple(each for each in dims if isinstance(each, int)) if isinstance(dims, list | tuple) else None
    return Tensor(str(given["name"]), str(data_type).removeprefix("TYPE_") if data_type else None, known)
