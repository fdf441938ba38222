"""Reads `.npz` files, numpy's archives of arrays by name, of which nothing is unpickled."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["read_npz"]


def read_npz(file: Path, what: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file, by their names. Text is in arrays of numpy's types `S` and `U`.

    Args:
        file: the file.
        what: how messages call it.

    Raises:
        ConfigurationError: the file cannot be read, or contains something other than arrays of numbers or text.
    """
    import numpy as np  # which few apps need

    try:
        if not zipfile.is_zipfile(file):  # numpy would take it for one array, or for a pickle
            raise ValueError("it is not a ZIP file")
        with np.load(file, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        if other := next((name for name, value in arrays.items() if not isinstance(value, np.ndarray)), None):
            raise ValueError(f"{other} is not an array")
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise ConfigurationError(
            f"{what} is not a readable .npz of arrays ({error}): write it with numpy.savez, with an array for each "
            "tensor, and text as numpy.array([...], dtype='S')"
        ) from error
    if not arrays:
        raise ConfigurationError(f"{what} has no array: write one for each tensor with numpy.savez")
    return arrays
