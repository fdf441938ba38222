"""The errors of a repository's recipes, and the build that they make, for constructs and `cdk-triton fleet`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cdk_triton.artifacts.build_plan import keyed_ensemble
from cdk_triton.artifacts.recipes.recipe import recipes_of
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.repository import PromisedFiles

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["checked_ensemble", "without_promises"]


def checked_ensemble(repository: ModelRepository, platform: ServingPlatform) -> dict[str, Any]:
    """`errors` of each recipe; without such errors, those between the recipes, or the `ensemble` as plans have it.

    Beside the `ensemble` there is the `source_key` of the repository.
    """
    errors = _broken_promises(repository)
    for recipe in recipes_of(without_promises(repository)):
        try:
            recipe.validate(repository, platform)
        except ConfigurationError as error:
            errors.append(str(error))
    if not errors:
        try:
            ensemble, keys = keyed_ensemble(repository, platform)
        except ConfigurationError as error:
            errors.append(str(error))
        else:
            return {"errors": [], "ensemble": ensemble, "source_key": keys.source}
    return {"errors": errors, "ensemble": None, "source_key": None}


def without_promises(repository: ModelRepository) -> ModelRepository:
    """The repository with the recipes that were given alone."""
    given = tuple(recipe for recipe in repository.recipes if not isinstance(recipe, PromisedFiles))
    return replace(repository, recipes=given)


def _broken_promises(repository: ModelRepository) -> list[str]:
    """An error for each file of `produced` that is missing and that no recipe makes."""
    errors = []
    promises = (each for each in repository.recipes if isinstance(each, PromisedFiles))
    for path in (path for promise in promises for path in promise.produces):
        try:
            recipes_of(replace(repository, recipes=(PromisedFiles((path,)),)))
        except ConfigurationError as error:
            errors.append(str(error))
    return errors
