"""The method `initialize` of a Python model, what the server hands to the method, and the errors of the method."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from cdk_triton.python_models.reader.opened_files import OpenedFile
from cdk_triton.python_models.reader.values import Message, Text

__all__ = ["Failure", "Initialize", "Outcome", "Served"]


@dataclass(frozen=True)
class Initialize:
    """The method `initialize` of a model.

    Attributes:
        method: its statement.
        imported: what the module's names are imported as.
        defined: the names that the module binds itself.
        members: the names of methods and properties of its classes.
        is_first: whether no other method of the class runs before it.
    """

    method: ast.FunctionDef
    imported: Mapping[str, str]
    defined: frozenset[str]
    members: frozenset[str]
    is_first: bool


@dataclass(frozen=True)
class Served:
    """A model as the server describes it to `initialize`.

    Attributes:
        name: the model's name, or a text that is not known.
        directory: its directory.
        source: the file with the method.
        config: the configuration.
        misses: whether a file is certainly missing at a path, because it lies elsewhere in the model's directory.
        lacks: whether nothing of the archive has the path, or the name of the file.
    """

    name: str | Text
    directory: PurePosixPath
    source: PurePosixPath
    config: Message
    misses: Callable[[PurePosixPath], bool]
    lacks: Callable[[PurePosixPath], bool]


@dataclass(frozen=True)
class Failure:
    """An error that the method always raises.

    Attributes:
        line: where.
        said: the error, as Python words it.
    """

    line: int
    said: str


@dataclass(frozen=True)
class Outcome:
    """The errors of the method.

    Attributes:
        failure: the first error, or None where none is certain.
        absent: the lines before it that read a file which the archive lacks; only other code may have made the file.
    """

    failure: Failure | None = None
    absent: tuple[OpenedFile, ...] = ()
