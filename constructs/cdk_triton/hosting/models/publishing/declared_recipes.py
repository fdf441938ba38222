"""The builds of a publisher: its recipes, its builder, and the arguments of the function that builds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial

from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.artifacts.recipes.documents import DeclaredRecipe, declared_recipe
from cdk_triton.artifacts.recipes.recipe import BuildRecipe
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.images import container_image
from cdk_triton.hosting.models.assets import CloudAssembly
from cdk_triton.hosting.models.builds import build_machine
from cdk_triton.hosting.models.publishing.definition import Builds
from cdk_triton.hosting.models.publishing.grants import Served
from cdk_triton.hosting.models.publishing.recipes import Recipes
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.store.builds.selection import BUILDING, REHEARSING
from cdk_triton.hosting.store.store import TritonArtifactStore
from cdk_triton.triton import ContainerEnvironment

__all__ = ["declared_recipes"]

MAX_BUILDS = 10_000
"""Parallel child executions of a distributed map ("Quotas related to state machine executions")."""


def declared_recipes(
    scope: Construct,
    served: Served,
    recipes: Sequence[BuildRecipe],
    max_builds: int,
    environment: ContainerEnvironment,
    *,
    rehearse: bool,
) -> Recipes | None:
    """Check the recipes of a publisher and choose their builder; None without recipes and rehearsals.

    Raises:
        ConfigurationError: a recipe is not from this library or is declared twice, or the number of builds is out of
            its range; the store belongs to another app, or has no builder with the platform's GPU; or the publisher
            rehearses, and a variable of the container is a token.
    """
    if not 1 <= max_builds <= MAX_BUILDS:
        raise ConfigurationError(
            f"max_builds of the publisher of {path_of(scope)} is {max_builds}: use 1 to {MAX_BUILDS}, and not more "
            "than the quota of the service that builds"
        )
    if not recipes and not rehearse:
        return None
    store, _, platform = served
    if not isinstance(store, TritonArtifactStore):
        has, argument = ("recipes", "recipes") if recipes else ("rehearse=True", "rehearse")
        raise ConfigurationError(
            f"the publisher of {path_of(scope)} has {has}, but cannot call the handler of its store, because the store "
            f"belongs to another app: remove {argument}=, or declare the TritonMultiModel in the app of the store"
        )
    declared = tuple(declared_recipe(recipe) for recipe in recipes)
    _reject_duplicates(scope, declared)
    if rehearse:
        _reject_tokens(scope, environment)
    files = [file for recipe in declared for file in recipe.s3_files.values()]
    builder = store._builder_for(scope, platform, files, BUILDING if recipes else REHEARSING)
    machine = build_machine(builder, platform, CloudAssembly(scope).add_program())
    describe = partial(_publish_description, scope, served)
    return Recipes(declared, machine, max_builds, store._handler_arn, describe, rehearse)


def _reject_tokens(scope: Construct, environment: ContainerEnvironment) -> None:
    for name, value in environment.variables.items():
        if has_token(value):
            raise ConfigurationError(
                f"the publisher of {path_of(scope)} has rehearse=True, but the variable {name} of the container is a "
                "token, which has no value in a rehearsal: give the variable a literal value, or remove rehearse="
            )


def _reject_duplicates(scope: Construct, recipes: Iterable[DeclaredRecipe]) -> None:
    writers: dict[str, DeclaredRecipe] = {}
    for recipe in recipes:
        for path in recipe.produces:
            if path in writers:
                raise ConfigurationError(
                    f"{path} is written by two recipes of the publisher of {path_of(scope)}, {writers[path]} and "
                    f"{recipe}: remove one of them"
                )
            writers[path] = recipe


def _publish_description(scope: Construct, served: Served, description: PublisherDescription) -> Builds:
    """Add the publisher's description to the assets."""
    store, _, platform = served
    published = CloudAssembly(scope).add_plan(json.dumps(description.document(), sort_keys=True, indent=1).encode())
    store._require_assets_of(scope, published.bucket_name)
    image = container_image(scope, platform)
    return Builds(
        max_builds=description.max_builds,
        assets=published.bucket_name,
        description=published.object_key,
        sha256=published.sha256,
        image=image.uri,
    )
