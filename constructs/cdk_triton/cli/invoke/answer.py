"""An answer for a person, for a program, and as files."""

from __future__ import annotations

import contextlib
import io
import math
import os
import tempfile
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import numpy as np
from tritonclient.utils import np_to_triton_dtype

from cdk_triton.cli.artifacts.text import table
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]

__all__ = ["as_json", "as_text", "write_files"]

_SHOWN = 8
_TEXT_COLUMNS = 60


def as_text(outputs: Mapping[str, Array], *, typed: Container[str] | None = None) -> Iterator[str]:
    """A table with a row for each output, and the beginning of its values.

    Args:
        outputs: the outputs.
        typed: the outputs whose types are those of the model; by default all.
    """
    rows = [(name, str(list(array.shape)), _preview(array)) for name, array in outputs.items()]
    types = [_datatype(array) if typed is None or name in typed else "" for name, array in outputs.items()]
    if not any(types):
        return table(("OUTPUT", "SHAPE", "VALUES"), rows)
    with_types = [(row[0], datatype, *row[1:]) for row, datatype in zip(rows, types, strict=True)]
    return table(("OUTPUT", "TYPE", "SHAPE", "VALUES"), with_types)


def _datatype(array: Array) -> str:
    return "BYTES" if array.dtype == object else str(np_to_triton_dtype(array.dtype))


def _preview(array: Array) -> str:
    shown = [_shown(value) for value in array.flat[:_SHOWN]]
    more = f", … {array.size - _SHOWN:,} more" if array.size > _SHOWN else ""
    return ", ".join(shown) + more


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        text = value.decode(errors="backslashreplace")
        return text if len(text) <= _TEXT_COLUMNS else f"{text[:_TEXT_COLUMNS]}… ({len(value):,} bytes)"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def as_json(outputs: Mapping[str, Array], *, typed: Container[str] | None = None) -> list[dict[str, Any]]:
    """The outputs as KServe writes them; a number that JSON does not have is its name as text.

    Args:
        outputs: the outputs.
        typed: the outputs whose types are those of the model; by default all.
    """
    return [
        {
            "name": name,
            **({"datatype": _datatype(array)} if typed is None or name in typed else {}),
            "shape": list(array.shape),
            "data": [_plain(value) for value in array.flat],
        }
        for name, array in outputs.items()
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    plain = value.item()
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain


def write_files(outputs: Mapping[str, Array], directory: Path, *, force: bool) -> list[Path]:
    """Write each output into a file: `.npy`, or for BYTES `.txt` with a string per line, or `.bin`.

    Either all files are written or none. An existing file stays, except with `force`.

    Raises:
        ConfigurationError: a file is there.
        OSError: the directory cannot be written.
    """
    contents = {
        directory / name: content for output, array in outputs.items() for name, content in _files(output, array)
    }
    if not force and (there := [file for file in contents if file.exists()]):
        raise ConfigurationError(f"{there[0]} is there: add --force, or give another directory")
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".cdk-triton-", dir=directory) as partial:
        for number, content in enumerate(contents.values()):
            (Path(partial) / str(number)).write_bytes(content)
        for number, file in enumerate(contents):
            _moved(Path(partial) / str(number), file, force=force)
    return list(contents)


def _moved(partial: Path, file: Path, *, force: bool) -> None:
    if force:
        partial.replace(file)
        return
    try:
        os.link(partial, file)
    except FileExistsError:
        raise ConfigurationError(f"{file} is there: add --force, or give another directory") from None


def _files(output: str, array: Array) -> Iterator[tuple[str, bytes]]:
    name = quote(output, safe="") or "output"
    if array.dtype != object:
        yield f"{name}.npy", _npy(array)
        return
    elements = [bytes(each) for each in array.flat]
    with contextlib.suppress(UnicodeDecodeError):
        texts = [each.decode() for each in elements]
        if not any("\n" in text or "\r" in text for text in texts):
            yield f"{name}.txt", "".join(f"{text}\n" for text in texts).encode()
            return
    for number, element in enumerate(elements):
        yield f"{name}.bin" if len(elements) == 1 else f"{name}.{number}.bin", element


def _npy(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
