"""`--input NAME[:TYPE]=VALUE`, `--input NAME[:TYPE]=@FILE` and `--random`: from the command line to tensors."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from tritonclient.http import InferInput
from tritonclient.utils import triton_to_np_dtype

from cdk_triton._wording import did_you_mean, listed, quoted
from cdk_triton.cli.requests.signature import InputSpec, Signature
from cdk_triton.client.kserve import tensor
from cdk_triton.client.tensors import DATATYPES
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]

__all__ = ["GivenInput", "given_input", "random_inputs", "require_types", "tensors"]

_SEED = 0
"""Random inputs are the same each time, so answers can be compared."""
_TEXT = "A man is eating food."
_LONGEST_HINT = 80
_UNKNOWN_SIZE = 1
"""The size of a dimension that may have any."""


@dataclass(frozen=True)
class GivenInput:
    """An input as the command line has it.

    Attributes:
        name: the input's name.
        datatype: the input's data type, if the argument contains one.
        file: the file after `@`.
        text: the value, if there is no file.
    """

    name: str
    datatype: str | None
    file: Path | None
    text: str


def given_input(argument: str) -> GivenInput:
    """Read `NAME[:TYPE]=VALUE` or `NAME[:TYPE]=@FILE`.

    Raises:
        ConfigurationError: the argument has another form, or its type does not exist.
    """
    left, equals, value = argument.partition("=")
    name, colon, datatype = left.rpartition(":")
    if not colon:
        name, datatype = left, ""
    if not equals or not name:
        found = "has no name" if equals else "has no value"
        raise ConfigurationError(
            f"the input {quoted(argument)} {found}: write NAME=@FILE, NAME=VALUE or NAME:TYPE=VALUE, such as "
            "IMAGE=@dog.jpg"
        )
    if colon and datatype not in DATATYPES:
        raise ConfigurationError(
            f"the input '{name}' has the type '{datatype}'{did_you_mean(datatype.upper(), DATATYPES)}: write one of "
            f"{', '.join(DATATYPES)}"
        )
    file = Path(value.removeprefix("@")) if value.startswith("@") else None
    return GivenInput(name, datatype or None, file, value)


def tensors(
    given: Sequence[GivenInput],
    signature: Signature | None,
    *,
    random: bool,
    dims: Mapping[str, tuple[int, ...] | None],
) -> list[InferInput]:
    """The tensors of a request.

    Args:
        given: the inputs that are given.
        signature: the inputs of the model; None if they are not known, in which case every input has a type.
        random: whether inputs that are not given get random values.
        dims: without a signature, the dimensions by which values get a missing batch dimension. The server compares
            the rest.

    Raises:
        ConfigurationError: an input is given twice, unknown, missing, without a type, or does not fit.
    """
    names = [each.name for each in given]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigurationError(f"the input '{twice[0]}' is given twice: give it once")
    made = [_made(each, signature, dims.get(each.name)) for each in given]
    if signature is None:
        return made
    missing = [each for each in signature.inputs if each.name not in names and not each.is_optional]
    if missing and not random:
        wanted = listed([f"{each.name} ({each.datatype} {list(each.dims or ())})" for each in missing])
        raise ConfigurationError(f"inputs are missing: {wanted}; give each as --input NAME=@FILE, or add --random")
    return made + random_inputs(missing)


def random_inputs(specs: Sequence[InputSpec]) -> list[InferInput]:
    """A tensor for each input, the same at each call.

    Integers are zeros and ones, because an index into a vocabulary has to be small. A dimension of any size is 1.
    """
    generator = np.random.default_rng(_SEED)
    return [tensor(each.name, each.datatype, _random(each, generator)) for each in specs]


def _random(spec: InputSpec, generator: np.random.Generator) -> Array:
    shape = [_UNKNOWN_SIZE if size < 0 else size for size in spec.dims or (1,)]
    if spec.datatype == "BYTES":
        return np.full(shape, _TEXT.encode(), dtype=object)
    if spec.datatype in ("FP16", "FP32", "FP64", "BF16"):
        return generator.random(shape)
    return generator.integers(0, 2, shape)


def _made(given: GivenInput, signature: Signature | None, dims: tuple[int, ...] | None) -> InferInput:
    spec = None if signature is None else signature.find(given.name)
    datatype = given.datatype or (None if spec is None else spec.datatype)
    dims = dims if spec is None else spec.dims
    if spec is not None and signature is not None:
        _require_type(given, spec, signature)
    array, datatype = _of_file(given, datatype, dims) if given.file is not None else _tensor_of_text(given, datatype)
    shaped = _with_missing_batch(array, dims)
    if spec is not None and dims is not None and not _fits(shaped.shape, dims):
        raise ConfigurationError(
            f"the input '{given.name}' has the shape {list(shaped.shape)}, but the model takes {list(dims)}, in which "
            f"-1 is any size: {_shape_fix(given, shaped, dims)}"
        )
    if signature is not None and signature.max_batch_size and shaped.shape[0] > signature.max_batch_size:
        raise ConfigurationError(
            f"the input '{given.name}' has {shaped.shape[0]} rows, but {signature.source} has the max_batch_size "
            f"{signature.max_batch_size}: send fewer rows"
        )
    return tensor(given.name, datatype, shaped)


def require_types(given: Sequence[GivenInput], signature: Signature) -> None:
    """Reject written types that are not those of the model; inputs that it does not have are left to the server.

    Raises:
        ConfigurationError: a type differs.
    """
    for each in given:
        for spec in signature.inputs:
            if spec.name == each.name:
                _require_type(each, spec, signature)


def _require_type(given: GivenInput, spec: InputSpec, signature: Signature) -> None:
    if given.datatype not in (None, spec.datatype):
        raise ConfigurationError(
            f"the input '{given.name}' is given as {given.datatype}, but {signature.source} has {spec.datatype}: write "
            f"{given.name}:{spec.datatype}=…, or omit the type"
        )


def _with_missing_batch(array: Array, dims: tuple[int, ...] | None) -> Array:
    if dims is not None and array.ndim == len(dims) - 1 and dims[0] == -1 and not _fits(array.shape, dims):
        return array[np.newaxis]
    return array


def _shape_fix(given: GivenInput, array: Array, dims: tuple[int, ...]) -> str:
    """Short values are written in full."""
    is_short = given.file is None and array.size <= _LONGEST_HINT
    # One row for each value where the model takes that, else all values in one row.
    for first in (array.size, 1) if is_short else ():
        shape = (first, *dims[1:]) if dims and dims[0] == -1 else dims
        if shape.count(-1) <= 1 and _holds(shape, array.size):
            nested = array.reshape(shape).tolist()
            text = json.dumps(nested, default=bytes.decode, ensure_ascii=False)
            if len(text) <= _LONGEST_HINT:
                return f"write {given.name}={shlex.quote(text)}"
    return "change the shape of the file or value"


def _holds(shape: Sequence[int], size: int) -> bool:
    fixed = math.prod(each for each in shape if each != -1)
    return fixed > 0 and (size % fixed == 0 if -1 in shape else size == fixed)


def _fits(shape: Sequence[int], dims: Sequence[int]) -> bool:
    return len(shape) == len(dims) and all(dim in (-1, size) for size, dim in zip(shape, dims, strict=True))


def _tensor_of_text(given: GivenInput, datatype: str | None) -> tuple[Array, str]:
    """JSON, or a plain text for BYTES."""
    if datatype is None:
        raise _untyped(given)
    try:
        value = json.loads(given.text)
    except (ValueError, RecursionError) as error:
        if datatype != "BYTES":
            raise _no_numbers(given, datatype, str(error)) from error
        value = given.text
    if datatype == "BYTES":
        items = np.array(value if isinstance(value, list) else [given.text], dtype=object)
        if not all(isinstance(each, str) for each in items.flat):
            raise ConfigurationError(
                f"the input '{given.name}' is BYTES and its list has values that are not text: write "
                f'{given.name}=\'["a", "b"]\', with rows of equal length'
            )
        return _encoded(items), datatype
    for each in _leaves(value):
        if not isinstance(each, int | float):  # bool is an int
            raise _no_numbers(given, datatype, f"it has the value {json.dumps(each)}")
    try:
        return np.atleast_1d(np.array(value)), datatype
    except ValueError as error:
        raise ConfigurationError(f"the input '{given.name}' is not a tensor, its rows differ: {error}") from error


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _no_numbers(given: GivenInput, datatype: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"the input '{given.name}' is {datatype}, but {quoted(given.text)} is not a number or a JSON list of numbers "
        f"({reason}): write {given.name}='[1, 2]', with rows of equal length"
    )


def _of_file(given: GivenInput, datatype: str | None, dims: tuple[int, ...] | None) -> tuple[Array, str]:
    assert given.file is not None
    suffix = given.file.suffix.lower()
    if suffix == ".npy":
        return _of_npy(given, datatype)
    try:
        content = given.file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{given.file} cannot be read: {error.strerror}; give another file") from error
    if suffix == ".txt" and datatype in (None, "BYTES"):
        lines = _encoded(np.array(_lines(given, content), dtype=object))
        # One element for each row of the batch where the model takes one, else all in one row.
        return (lines[:, np.newaxis] if dims is not None and len(dims) == 2 and dims[1] == 1 else lines), "BYTES"
    if datatype is None:
        raise _untyped(given)
    if datatype == "BYTES":
        one = np.empty([1] * (1 if dims is None else max(len(dims), 1)), dtype=object)
        one.flat[0] = content
        return one, datatype
    return _tensor_of_bytes(given, content, datatype, dims), datatype


def _of_npy(given: GivenInput, datatype: str | None) -> tuple[Array, str]:
    assert given.file is not None
    try:
        array = np.load(given.file, allow_pickle=False)
    except OSError as error:
        raise ConfigurationError(f"{given.file} cannot be read: {error.strerror or error}; give another") from error
    except (ValueError, EOFError) as error:
        raise ConfigurationError(
            f"{given.file} is not a .npy file of plain values ({error}): write it with numpy.save, from an array that "
            "has no Python objects"
        ) from error
    if not isinstance(array, np.ndarray):
        raise ConfigurationError(f"{given.file} has several arrays: write one with numpy.save")
    if array.dtype.kind in "US":
        encoded = _encoded(array.astype(object))
        return encoded, datatype or "BYTES"
    if datatype is None:
        from tritonclient.utils import np_to_triton_dtype

        datatype = np_to_triton_dtype(array.dtype)
        if datatype is None:
            raise ConfigurationError(f"{given.file} has the type {array.dtype}, which Triton does not have: convert it")
    return array, datatype


def _tensor_of_bytes(given: GivenInput, content: bytes, datatype: str, dims: tuple[int, ...] | None) -> Array:
    """In Triton's byte order, which is little-endian."""
    dtype = np.dtype(triton_to_np_dtype(datatype)) if datatype != "BF16" else np.dtype(np.uint16)
    if len(content) % dtype.itemsize:
        raise ConfigurationError(
            f"{given.file} has {len(content):,} bytes, which are not whole elements of {datatype}: give a .npy file"
        )
    array: Array = np.frombuffer(content, dtype)
    if datatype == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if dims is None or len(dims) == 1:
        return array
    shape = list(dims)
    if shape[0] == -1 and any(size == -1 for size in shape[1:]):
        shape[0] = 1
    try:
        return array.reshape(shape)
    except ValueError:
        raise ConfigurationError(
            f"{given.file} has {array.size:,} elements of {datatype}, but the input '{given.name}' has the dimensions "
            f"{list(dims)}: give a .npy file, which has a shape"
        ) from None


def _lines(given: GivenInput, content: bytes) -> list[str]:
    try:
        return re.split(r"\r?\n", content.decode("utf-8").removesuffix("\n").removesuffix("\r"))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{given.file} is not UTF-8 text ({error.reason}): give another file") from error


def _encoded(array: Array) -> Array:
    made = np.empty(array.shape, dtype=object)
    for place, value in enumerate(array.flat):
        made.flat[place] = value.encode() if isinstance(value, str) else value
    return made


def _untyped(given: GivenInput) -> ConfigurationError:
    return ConfigurationError(
        f"the type of the input '{given.name}' is not known: write it, as in {given.name}:FP32=…, or give "
        "--repository DIR"
    )
