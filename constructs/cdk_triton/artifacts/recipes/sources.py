"""Reads files of a repository that recipes need while the app runs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from cdk_triton._wording import did_you_mean
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository

__all__ = ["parsed_python", "required_text"]


def required_text(repository: ModelRepository, path: str, label: str) -> str:
    """The text of a file of the repository.

    Args:
        repository: the repository.
        path: relative to it, with `/`.
        label: what the file is, to begin a sentence with: "the lock file of CondaEnvironment('preprocess')".

    Raises:
        ConfigurationError: the file is missing, cannot be read, or is not UTF-8.
    """
    files = {file.path.as_posix(): file.source for file in repository.files}
    if path not in files:
        raise ConfigurationError(
            f"{label} is missing: {repository.root} does not contain {path}{did_you_mean(path, files)}; add the file, "
            "or name another file"
        )
    source = files[path]
    try:
        return source.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{label} cannot be read: {source}: {error.strerror}; make it readable") from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"{label}, {path}, is not UTF-8 text: save it as UTF-8") from None


def parsed_python(text: str, path: str) -> ast.Module:
    """Parse a Python file.

    Args:
        text: the content of the file.
        path: the file, relative to the repository.

    Raises:
        ConfigurationError: the text is not Python.
    """
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise ConfigurationError(f"{path}, line {error.lineno}: {error.msg}; correct the line") from None
    except ValueError as error:  # a NUL
        raise ConfigurationError(f"{path}: {error}; write it as Python source") from None
