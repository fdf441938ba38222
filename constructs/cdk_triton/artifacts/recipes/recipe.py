"""The interface of every recipe: a declared build whose inputs and outputs are known at synth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.canonical import canonical_json
from cdk_triton.triton.repository import PromisedFiles

if TYPE_CHECKING:
    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["BuildRecipe", "recipes_of"]


@runtime_checkable
class BuildRecipe(Protocol):
    """A declared build that adds files to a repository, in the image that serves it.

    Any object with these members is a recipe. All paths are relative to the repository, with `/`. Messages use a
    recipe's `str()`, such as `TensorRTPlan('bert')`. Each member must return the same value throughout a run of the
    app, because the artifact key and the build plan contain it.

    The build program has only the steps of this library's recipes, so the `step` of your own recipe must return one of
    them.
    """

    @property
    def produces(self) -> tuple[str, ...]:
        """The files that the build writes, such as `bert/1/model.plan`."""

    @property
    def consumes(self) -> tuple[str, ...]:
        """The files that only builds read, from the repository or from another recipe. The archive omits them.

        If one of these files is an ONNX file, the archive omits its external data, too.
        """

    @property
    def s3_files(self) -> Mapping[str, S3File]:
        """Files that come from S3 instead of the repository: path in the repository → object in S3."""

    def parameters(self) -> dict[str, object]:
        """The recipe's part of the artifact key: JSON values that are the same for equal recipes.

        The value `recipe` names the kind of recipe. If the parameters change, the files are rebuilt. If you add a
        parameter to a recipe later, include the parameter only if its value differs from the default. The keys of
        existing archives then stay the same.
        """

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """At synth, reject a repository or a platform that the recipe cannot build for.

        Raises:
            ConfigurationError: the recipe does not fit the repository or the platform.
        """

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        """The step of the build: `recipe`, `name`, and the values that the build program needs for this recipe."""

    def estimated_minutes(self, repository: ModelRepository) -> float:
        """A rough estimate of the build's duration in minutes. Synth warns if a deployment would not wait that long."""


def recipes_of(repository: ModelRepository) -> tuple[BuildRecipe, ...]:
    """The recipes of a repository, sorted, so that the order in which you gave them does not matter.

    A repository without recipes is packed as it is.

    Raises:
        ConfigurationError: a recipe does not have the members of `BuildRecipe`; or `cdk-triton.toml` lists a file that
            does not exist and that no recipe writes.
    """
    recipes = []
    for recipe in repository.recipes:
        if isinstance(recipe, PromisedFiles):
            raise ConfigurationError(
                f"the cdk-triton.toml of {repository.root} lists {recipe.produces[0]}, which the repository does not "
                "contain and no recipe makes: add the recipe, or add the file"
            )
        if not isinstance(recipe, BuildRecipe):
            raise ConfigurationError(
                f"{recipe!r} is not a recipe: use TensorRTPlan, DaliPipeline, CondaEnvironment, WheelEnvironment or "
                "OnnxExport, or write a class with every member of BuildRecipe"
            )
        recipes.append(recipe)
    return tuple(sorted(recipes, key=lambda recipe: canonical_json(recipe.parameters())))
