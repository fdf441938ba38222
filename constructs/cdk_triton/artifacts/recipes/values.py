"""Checks the arguments of recipes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from cdk_triton._arguments import TEXT, require_type
from cdk_triton._tokens import reject_token
from cdk_triton._wording import did_you_mean, quoted
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.triton import Model, ModelRepository

__all__ = ["literal", "model_of", "one_of", "path_in_model", "whole_number"]


def literal(value: object, label: str) -> str:
    """A text that is known while the app runs.

    Args:
        value: what the user wrote.
        label: what it is, to begin a sentence with: "the bucket of an S3File".

    Raises:
        ConfigurationError: the value is not a text, or contains a CDK token.
    """
    require_type(label, value, TEXT)
    text = str(value)
    reject_token(text, label)
    return text


def whole_number(value: object, label: str, lowest: int, highest: int) -> int:
    """A whole number within bounds, both included.

    Raises:
        ConfigurationError: the value is not a whole number within the bounds.
    """
    reject_token(value, label)
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise ConfigurationError(f"{label} is {value!r} but must be a whole number from {lowest} to {highest}")
    return value


def one_of(value: object, label: str, allowed: Iterable[str]) -> str:
    """Return the value if it is one of the allowed words.

    Raises:
        ConfigurationError: the value is not one of the allowed words.
    """
    words = tuple(allowed)
    if not isinstance(value, str) or value not in words:
        raise ConfigurationError(f"{label} is {value!r} but must be one of {', '.join(map(repr, words))}")
    return value


def path_in_model(model: str, path: str, label: str) -> str:
    """A path in a model's directory, relative to the repository, with `/`.

    Args:
        model: the directory of the model in the repository; "." where the repository is the model.
        path: the path that the user wrote, relative to that directory.
        label: what the path is, as the beginning of a sentence, such as "onnx of TensorRTPlan('bert')".

    Raises:
        ConfigurationError: the path is not a text, contains a CDK token, or leads out of the model's directory.
    """
    literal(model, "the model of a recipe")
    if model in ("", "..") or "/" in model or "\\" in model:
        raise ConfigurationError(
            f"the model of a recipe is {quoted(model)} but must be the name of a model's directory in the repository, "
            "such as 'bert'"
        )
    literal(path, label)
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or path.endswith("/"):
        raise ConfigurationError(
            f"{label} is {quoted(path)} but must be the path of a file in the directory of the model {quoted(model)}, "
            "relative to that directory, with '/' between names and without '..'"
        )
    return PurePosixPath(model, path).as_posix()


def model_of(repository: ModelRepository, model: str, recipe: str) -> Model:
    """The model that a recipe is for.

    Args:
        repository: the repository of the recipe.
        model: the directory of the model; "." where the repository is the model.
        recipe: what the recipe is called: "TensorRTPlan('bert')".

    Raises:
        ConfigurationError: the repository has no such model.
    """
    found = next((each for each in repository.models if each.directory == PurePosixPath(model)), None)
    if found is None:
        known = [each.directory.as_posix() for each in repository.models]
        raise ConfigurationError(
            f"{recipe} is for the model {quoted(model)}{did_you_mean(model, known)}, which the repository "
            f"{repository.root} does not contain: write the name of a directory of a model "
            f"({', '.join(map(repr, known))})"
        )
    return found
