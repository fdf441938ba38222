"""The builds of a model: whether its recipes fit, which builder runs them, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aws_cdk import Annotations
from constructs import Construct

from cdk_triton.artifacts import estimated_minutes, platform_document
from cdk_triton.artifacts.recipe_checks import checked_ensemble
from cdk_triton.artifacts.repository_cache import cached_answer
from cdk_triton.artifacts.repository_checks import findings_of
from cdk_triton.hosting.naming.findings import report, report_errors
from cdk_triton.hosting.store.builds.builders import Builder
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

__all__ = ["CheckedRecipes", "builder_document", "check_recipes", "warn_about_duration"]

RECIPE_ERROR = "cdk-triton:Recipe"
LONG_BUILD_WARNING = "cdk-triton:LongBuild"
BUILD_TIMEOUT_WARNING = "cdk-triton:BuildTimeout"

DEPLOYMENT_MINUTES = 50
"""How long one deployment waits for a build: `PATIENCE_SECONDS` of the store's handler."""

UPLOAD_MINUTES = 5
"""The build program ends itself so long before the service would, so that what is finished is uploaded."""


class CheckedRecipes(NamedTuple):
    """The result of the checks of a repository's recipes.

    Attributes:
        sound: whether nothing is wrong with them.
        ensemble: what is built, in the form of plans; None where nothing is, or where something is wrong.
    """

    sound: bool
    ensemble: Mapping[str, object] | None


def check_recipes(
    construct: Construct, repository: ModelRepository, platform: ServingPlatform, *, what: str
) -> CheckedRecipes:
    """Attach to a construct what is wrong with the recipes of a repository.

    Args:
        construct: the construct that the repository was given to.
        repository: the repository.
        platform: what it is built for.
        what: the repository, as the user names it; each message begins with it.
    """
    if not repository.recipes:
        return CheckedRecipes(True, None)
    found = cached_answer([repository], ["ensemble", platform], lambda: checked_ensemble(repository, platform))
    report(construct, findings_of(found["findings"]), what=what)
    report_errors(construct, [(RECIPE_ERROR, f"{what}: {error}") for error in found["errors"]])
    return CheckedRecipes(found["ensemble"] is not None, found["ensemble"])


def builder_document(builder: Builder, platform: ServingPlatform, program: str) -> dict[str, object]:
    """The builder in the form of plans; `program` is the object key of the build program among the assets."""
    return {
        "kind": builder._kind,
        "timeout_minutes": builder._timeout_minutes,
        "platform": platform_document(platform),
        "program": {"key": program, "path": "program.pyz"},
        **builder._machine(platform),
    }


def warn_about_duration(construct: Construct, builder: Builder, repositories: Sequence[ModelRepository]) -> None:
    """Warn where building all of these repositories may take longer than a deployment, or than a job, can wait."""
    estimate: float = cached_answer(repositories, ["minutes"], lambda: estimated_minutes(repositories))
    work = f"building {len(repositories)} ensembles" if len(repositories) > 1 else "the build"
    if estimate > DEPLOYMENT_MINUTES:
        Annotations.of(construct).add_warning_v2(
            LONG_BUILD_WARNING,
            f"{work} may take {estimate:.0f} minutes (a rough estimate), but a deployment waits for "
            f"{DEPLOYMENT_MINUTES} minutes. A deployment that has to build everything would fail, and the next "
            "deployment would use the builds that the first one started. Run `cdk-triton artifacts build` before the "
            "deployment, or acknowledge this",
        )
    if estimate > builder._timeout_minutes - UPLOAD_MINUTES:
        Annotations.of(construct).add_warning_v2(
            BUILD_TIMEOUT_WARNING,
            f"{work} may take {estimate:.0f} minutes (a rough estimate), but {type(builder).__name__} ends a job after "
            f"{builder._timeout_minutes} minutes. Then the store keeps the finished plans, and the next deployment "
            "builds the rest. Give the store's builder a longer timeout, or acknowledge this",
        )
