"""Reads the file of a tree model, whatever format it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cdk_triton.tree_models.reader.checkpoint import checkpoint
from cdk_triton.tree_models.reader.contents import format_of, pickle_in, pickling_library
from cdk_triton.tree_models.reader.forest import FileError, Forest, Format
from cdk_triton.tree_models.reader.lightgbm import lightgbm
from cdk_triton.tree_models.reader.xgboost import xgboost_binary, xgboost_json, xgboost_ubj

__all__ = ["MAX_BYTES", "Damaged", "Pickle", "TooLarge", "forest_file"]

MAX_BYTES = 64 * 2**20
"""A larger file is not read: JSON takes several times its size in memory."""

_HEAD = 65_536  # a pickle names the module of its first object at once
_READERS: Mapping[Format, Callable[[bytes], Forest]] = {
    "xgboost": xgboost_binary,
    "xgboost_json": xgboost_json,
    "xgboost_ubj": xgboost_ubj,
    "lightgbm": lightgbm,
    "treelite_checkpoint": checkpoint,
}


@dataclass(frozen=True)
class Damaged:
    """A file that is no model.

    Attributes:
        format: the format that its first bytes show; None for any other content.
        reason: the rest of a sentence that begins with "the file".
    """

    format: Format | None
    reason: str


@dataclass(frozen=True)
class Pickle:
    """An object of Python, which the backend does not read.

    Attributes:
        library: the library of the object; "" if it is unknown.
    """

    library: str


@dataclass(frozen=True)
class TooLarge:
    """A file with more than `MAX_BYTES`.

    Attributes:
        format: the format that its first bytes show; None for any other content.
    """

    format: Format | None


def forest_file(path: Path) -> Forest | Damaged | Pickle | TooLarge:
    """Read the file of a tree model, or find out what else it is."""
    found: Format | None = None
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            if not head:
                return Damaged(None, "is empty")
            if (pickled := pickle_in(head)) is not None:
                return Pickle(pickling_library(pickled))
            found = format_of(head)
            if path.stat().st_size > MAX_BYTES:
                return TooLarge(found)
            if found is None:
                return Damaged(None, "is not a tree model in a format that the backend 'fil' reads")
            return _READERS[found](head + file.read())
    except FileError as error:
        return Damaged(found, str(error))
    except (ValueError, MemoryError):
        return Damaged(found, "contains values that no library writes")
    except OSError as error:
        return Damaged(None, f"cannot be read: {error.strerror}")
