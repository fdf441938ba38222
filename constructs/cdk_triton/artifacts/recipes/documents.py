"""Recipes as JSON, for a publisher: its command makes the recipes again, and its functions compute keys with them.

::

    {"recipe": "TensorRTPlan",                     the class
     "arguments": {"model": "bert", …},            those that differ from the default; a value of this library is
                                                   {"S3File": {"bucket": …}}, and a mapping {"mapping": {…}}
     "parameters": {…},                            the part of the artifact key
     "s3_files": [{"bucket": …, "key": …, "sha256": …}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, asdict, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, get_args

from cdk_triton._tokens import reject_token
from cdk_triton._wording import in_words
from cdk_triton.artifacts.recipes.conda import CondaEnvironment
from cdk_triton.artifacts.recipes.dali import DaliPipeline
from cdk_triton.artifacts.recipes.onnx_export import OnnxExport
from cdk_triton.artifacts.recipes.parity import Parity
from cdk_triton.artifacts.recipes.plugins import plugin_fault
from cdk_triton.artifacts.recipes.s3_file import S3File
from cdk_triton.artifacts.recipes.tensorrt import TensorRTPlan
from cdk_triton.artifacts.recipes.wheels import WheelEnvironment
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.canonical import canonical_json
from cdk_triton.tensorrt_models.recipe import ProfileShapes

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
from cdk_triton.triton.rehearsal import Tolerance

__all__ = ["DeclaredRecipe", "declared_recipe", "parse_recipe", "recipe_document", "recipes_for"]

DeclaredRecipe = TensorRTPlan | DaliPipeline | CondaEnvironment | WheelEnvironment | OnnxExport
"""The recipes that a publisher may declare. A user's own class is not available where the command runs."""

_RECIPES: Final[tuple[type[DeclaredRecipe], ...]] = get_args(DeclaredRecipe)
_VALUES: Final = (S3File, Parity, Tolerance, ProfileShapes)
_MAPPING: Final = "mapping"
_CLASSES: Final[Mapping[str, Any]] = {each.__name__: each for each in (*_RECIPES, *_VALUES)}


def declared_recipe(recipe: object) -> DeclaredRecipe:
    """Check that a publisher may declare a recipe, and return the recipe.

    Raises:
        ConfigurationError: the recipe is not one of this library's, contains a CDK token, or has plugins, which a
            multi-model endpoint cannot load.
    """
    if not isinstance(recipe, _RECIPES):
        names = in_words(each.__name__ for each in _RECIPES)
        raise ConfigurationError(
            f"a publisher cannot have the recipe {recipe!r}, because `cdk-triton fleet` runs without your app: use "
            f"{names}"
        )
    reject_token(canonical_json(recipe.parameters()), f"the recipe {recipe}")
    if (fault := plugin_fault([recipe], "multi")) is not None:
        raise ConfigurationError(fault)
    return recipe


def recipe_document(recipe: DeclaredRecipe) -> dict[str, Any]:
    """A recipe as JSON."""
    s3_files = [asdict(file) for _, file in sorted(recipe.s3_files.items())]
    return {**_described(recipe), "parameters": recipe.parameters(), "s3_files": s3_files}


def parse_recipe(document: Mapping[str, Any]) -> DeclaredRecipe:
    """Make the recipe that `recipe_document` wrote.

    Raises:
        ConfigurationError: this version of the library does not have such a recipe, or computes different keys with it.
        LookupError, TypeError: the document is not one that `recipe_document` writes.
    """
    recipe: DeclaredRecipe = _made(document["recipe"], document["arguments"])
    if recipe.parameters() != document["parameters"]:
        raise ConfigurationError(f"this version computes other parameters for {recipe}")
    return recipe


def recipes_for(repository: ModelRepository, declared: Iterable[DeclaredRecipe]) -> list[DeclaredRecipe]:
    """The recipes whose models a repository has."""
    models = {model.directory for model in repository.models}
    return [recipe for recipe in declared if PurePosixPath(recipe.model) in models]


def _described(value: DeclaredRecipe | S3File | Parity | Tolerance | ProfileShapes) -> dict[str, Any]:
    given = {each.name: getattr(value, each.name) for each in fields(value)}
    defaults = {each.name: _default(each) for each in fields(value)}
    changed = {name: _plain(each) for name, each in given.items() if each != defaults[name]}
    return {"recipe": type(value).__name__, "arguments": changed}


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _plain(value: Any) -> Any:
    if isinstance(value, _VALUES):
        return {type(value).__name__: _described(value)["arguments"]}
    if isinstance(value, Mapping):
        return {_MAPPING: {name: _plain(each) for name, each in value.items()}}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _made(name: str, arguments: Mapping[str, Any]) -> Any:
    return _CLASSES[name](**{key: _value(each) for key, each in arguments.items()})


def _value(document: Any) -> Any:
    if isinstance(document, Mapping):
        ((name, content),) = document.items()
        return {key: _value(each) for key, each in content.items()} if name == _MAPPING else _made(name, content)
    return tuple(_value(each) for each in document) if isinstance(document, list) else document
