"""Golden files: requests and expected answers, as the bodies that a server takes and returns."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdk_triton.artifacts.npz import read_npz
from cdk_triton.client.kserve import Body, read_body, tensor
from cdk_triton.client.payload import decode, encode
from cdk_triton.client.tensors import as_array, datatype_of, encode_tensor
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    import numpy.typing as npt

    Arrays = Mapping[str, npt.NDArray[Any]]

__all__ = ["Golden", "golden_answer", "golden_request", "read_arrays", "read_request", "write_arrays"]

_BINARY: Final = "application/vnd.sagemaker-triton.binary+json;json-header-size="


class Golden(NamedTuple):
    """A body.

    Attributes:
        body: its bytes.
        content_type: its content type.
    """

    body: bytes
    content_type: str


def read_request(file: Path) -> Body:
    """The request in a file: JSON, or `.npz` with an array for each input.

    Raises:
        ConfigurationError: the file cannot be read, or contains no request.
    """
    if not file.exists():
        raise ConfigurationError(f"{file} does not exist: write the request there, or correct `request`")
    if file.suffix != ".npz":
        return read_body(str(file))
    try:
        arrays = {name: as_array(name, array) for name, array in read_arrays(file).items()}
        return Body([tensor(name, datatype_of(name, each), _elements(each)) for name, each in arrays.items()])
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from error


def golden_request(file: Path) -> Golden:
    """The body of the request in a file; the errors are those of `read_request`."""
    asked = read_request(file)
    return Golden(*encode(asked.inputs, asked.options, asked.step))


def golden_answer(file: Path, *, top1: bool = False) -> Golden:
    """The body of the expected answer in a file.

    Args:
        file: the file.
        top1: whether the largest value of each row is compared, which a row with a NaN does not have.

    Raises:
        ConfigurationError: the file cannot be read, contains no answer, or no largest values where they are compared.
    """
    arrays = read_arrays(file) if file.suffix == ".npz" else _outputs(file)
    if not arrays:
        raise ConfigurationError(f"{file} has no outputs: write them with `cdk-triton golden record`")
    for name, array in arrays.items():
        if top1 and array.dtype.kind == "f" and (array != array).any():
            raise ConfigurationError(
                f"{file} has a NaN in the output {name!r}, so top1 has no largest value to compare: record another "
                "answer, or compare with a tolerance"
            )
    encoded = [encode_tensor(name, array, binary=True) for name, array in arrays.items()]
    header = json.dumps({"outputs": [each.entry for each in encoded]}).encode()
    return Golden(b"".join([header, *(each.data or b"" for each in encoded)]), f"{_BINARY}{len(header)}")


def read_arrays(file: Path) -> Arrays:
    """The arrays of an `.npz`, by their names.

    Raises:
        ConfigurationError: the file cannot be read, or contains no arrays of numbers or texts.
    """
    if not file.exists():
        raise ConfigurationError(
            f"{file} does not exist: write the outputs of a server that you trust with `cdk-triton golden record`"
        )
    return read_npz(file, str(file))


def write_arrays(file: Path, arrays: Arrays, origin: str) -> None:
    """Write the outputs of a server as an `.npz`; the file is replaced at once or not at all.

    Args:
        file: the file.
        arrays: the outputs by name. Elements of BYTES become numpy's type `S`.
        origin: where the outputs come from, and when: the comment of the ZIP file, which `unzip -z` prints.

    Raises:
        ConfigurationError: the file cannot be written, or an element of text ends with a NUL, which `S` cannot hold.
    """
    import numpy as np

    plain = {}
    for name, array in arrays.items():
        if array.dtype == object and any(bytes(each).endswith(b"\0") for each in array.flat):
            raise ConfigurationError(
                f"the output {name!r} has a text that ends with a NUL byte, which an .npz cannot hold: request the "
                "other outputs only"
            )
        plain[name] = array.astype("S") if array.dtype == object else array
    partial = file.with_name(f".{file.name}.partial")
    try:
        # As numpy.savez_compressed, whose own arguments some names of outputs would be.
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in plain.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)  # type: ignore[no-untyped-call]
            archive.comment = origin.encode()
        partial.replace(file)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}; name another file") from error
    finally:
        partial.unlink(missing_ok=True)


def _elements(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.astype(object) if array.dtype.kind in "SU" else array


def _outputs(file: Path) -> Arrays:
    try:
        return decode(file.read_bytes(), "application/json", where=str(file)).outputs
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}; name a readable file") from error
    except InvocationError as error:
        raise ConfigurationError(
            f"{file} is not the JSON of an answer: write it with `cdk-triton golden record`, or as .npz"
        ) from error
