"""`cdk-triton.toml`: facts about a repository that its models do not contain, for every reader of the repository.

The file is at the top of the repository and not in its archive:

    produced = ["bert/1/model.plan"]

    image_modules = ["torch", "PIL"]

    [acknowledge]
    CT111 = "the placeholder is written by our build"

`produced` names files that the recipes of a CDK app add. `cdk-triton validate` and other readers that do not run the
app assume that they exist. A deployment needs the recipes themselves.

`image_modules` names Python modules that an image of your own has, as `import` writes them.

`[rehearsal]` lists golden requests; see `rehearsal`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from cdk_triton._wording import did_you_mean
from cdk_triton.errors import RepositoryError
from cdk_triton.triton.rehearsal import Rehearsal, rehearsal_in

__all__ = ["SETTINGS_NAME", "RepositorySettings", "read_settings"]

SETTINGS_NAME = "cdk-triton.toml"

_KEYS = ("acknowledge", "image_modules", "produced", "rehearsal")
_DEEPEST: Final = 100


@dataclass(frozen=True)
class RepositorySettings:
    """The settings in the file.

    Attributes:
        file: the path of the file, which may be missing.
        acknowledge: code of a warning → the reason to acknowledge it. Codes and reasons are not checked here.
        produced: files that builds add, relative to the repository, with `/`.
        image_modules: the Python modules that the image has in addition to those of SageMaker's image; None if the file
            does not list them.
        rehearsal: the golden requests; None if the file lists none.
    """

    file: Path
    acknowledge: Mapping[str, Any] = field(default_factory=dict)
    produced: tuple[str, ...] = ()
    image_modules: tuple[str, ...] | None = None
    rehearsal: Rehearsal | None = None


def read_settings(root: Path) -> RepositorySettings:
    """The settings of a repository; empty where it has no file.

    Raises:
        RepositoryError: the file cannot be read, or has an unknown setting or a wrong value.
    """
    file = root / SETTINGS_NAME
    settings = _parsed(file)
    for key in settings:
        if key not in _KEYS:
            if re.fullmatch(r"CT\d{3}|X[A-Z]*\d{2,}", key):
                raise RepositoryError(f"{file} has {key} outside a table; write this key below [acknowledge]")
            raise RepositoryError(
                f"{file} has an unknown key {key!r}{did_you_mean(key, _KEYS)}; write the table [acknowledge] or "
                "[rehearsal], or the list 'produced' or 'image_modules'"
            )
    return RepositorySettings(
        file,
        _table(file, settings.get("acknowledge", {})),
        _files(file, settings.get("produced", [])),
        _modules(file, settings.get("image_modules")),
        rehearsal_in(file, settings.get("rehearsal")),
    )


def _parsed(file: Path) -> Mapping[str, Any]:
    if file.exists() and not (file.is_file() or file.is_dir()):  # reading a pipe would wait for ever
        raise RepositoryError(f"{file} is neither a file nor a directory; remove it from the repository")
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise RepositoryError(f"{file} cannot be read: {error.strerror}; make it a readable file") from error
    except UnicodeDecodeError as error:
        raise RepositoryError(f"{file} is not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    import tomllib  # few repositories have the file

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RepositoryError(f"{file} is not TOML: {error}; correct the file, or remove it") from error
    except ValueError as error:  # of Python itself
        raise RepositoryError(f"{file} has a number with too many digits; correct the file, or remove it") from error
    except RecursionError as error:
        raise _nested(file) from error
    if _is_too_deep(found):  # by dotted keys, which the parser reads without recursion
        raise _nested(file)
    return found


def _is_too_deep(found: Mapping[str, Any]) -> bool:
    """Too deep for a message to quote."""
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [value for values in inner for value in values]
    return bool(level)


def _nested(file: Path) -> RepositoryError:
    return RepositoryError(f"{file} nests tables or lists too deeply; correct the file, or remove it")


def _table(file: Path, table: object) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise RepositoryError(
            f"{file} has acknowledge = {table!r}, which is not a table; write [acknowledge], and in the lines below it "
            'CODE = "reason"'
        )
    return table


def _files(file: Path, listed: object) -> tuple[str, ...]:
    paths = listed if isinstance(listed, list) else [listed]
    for path in paths:
        if not isinstance(path, str) or not _is_inside(path):
            raise RepositoryError(
                f"the list 'produced' in {file} contains {path!r}, which is not a path of a file within a model; write "
                'produced = ["MODEL/1/FILE"]'
            )
    return tuple(paths)


def _modules(file: Path, listed: object) -> tuple[str, ...] | None:
    if listed is None:
        return None
    names = listed if isinstance(listed, list) else [listed]
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise RepositoryError(
                f"{file} has {name!r} in image_modules, which is not the name of a module; write it as import does, "
                'without submodules: image_modules = ["torch", "PIL"]'
            )
    return tuple(names)


def _is_inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts and len(pure.parts) > 1 and path == pure.as_posix()
