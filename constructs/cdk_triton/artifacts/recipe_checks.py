"""The faults of a repository's recipes, and the build that they make, for constructs and `cdk-triton fleet`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cdk_triton.artifacts.build_plan import keyed_ensemble
from cdk_triton.artifacts.recipes.recipe import recipes_of
from cdk_triton.artifacts.repository_checks import rows_of
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.findings import Finding, Severity
from cdk_triton.triton.repository import PromisedFiles
from cdk_triton.triton.repository_settings import SETTINGS_NAME

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["checked_ensemble", "without_promises"]

BROKEN_PROMISE: Final = "cdk-triton:ProducedFile"


def checked_ensemble(repository: ModelRepository, platform: ServingPlatform) -> dict[str, Any]:
    """The build of a repository, or why it cannot be built, as JSON values.

    Returns:
        `findings`: the files of `produced` that no recipe makes. `errors`: those of each recipe, else those between the
        recipes. `ensemble`: the build, as plans have it, and `source_key`: of the repository; both are null if there is
        a finding or an error.
    """
    findings = rows_of(_broken_promises(repository))
    errors = []
    for recipe in recipes_of(without_promises(repository)):
        try:
            recipe.validate(repository, platform)
        except ConfigurationError as error:
            errors.append(str(error))
    if not findings and not errors:
        try:
            ensemble, keys = keyed_ensemble(repository, platform)
        except ConfigurationError as error:
            errors.append(str(error))
        else:
            return {"findings": [], "errors": [], "ensemble": ensemble, "source_key": keys.source}
    return {"findings": findings, "errors": errors, "ensemble": None, "source_key": None}


def without_promises(repository: ModelRepository) -> ModelRepository:
    """The repository with the recipes that were given alone."""
    given = tuple(recipe for recipe in repository.recipes if not isinstance(recipe, PromisedFiles))
    return replace(repository, recipes=given)


def _broken_promises(repository: ModelRepository) -> list[Finding]:
    """A finding for each file of `produced` that is missing and that no recipe makes."""
    promises = (each for each in repository.recipes if isinstance(each, PromisedFiles))
    return [
        Finding(
            BROKEN_PROMISE,
            Severity.ERROR,
            SETTINGS_NAME,
            "",
            f"the list 'produced' names {path}, but the repository does not have this file, and no recipe makes it",
            "add the recipe, or put the file into the repository",
        )
        for promise in promises
        for path in promise.produces
    ]
