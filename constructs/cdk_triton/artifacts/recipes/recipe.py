"""What every recipe is: a declared build whose inputs and outputs are known at synth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cdk_triton.artifacts.canonical import canonical_json
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.repository import PromisedFiles

if TYPE_CHECKING:
    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["BuildRecipe", "recipes_of"]


@runtime_checkable
class BuildRecipe(Protocol):
    """A build that adds files to a repository in the image that serves it.

    All paths are relative to the repository, with `/`. `str()` of a recipe is what sentences about it call it:
    `TensorRTPlan('bert')`.
    """

    @property
    def produces(self) -> tuple[str, ...]:
        """The files that it writes: `bert/1/model.plan`."""

    @property
    def consumes(self) -> tuple[str, ...]:
        """The files that only builds read, from the repository or from another recipe; the archive leaves them out.

        The external data of an ONNX file goes with it.
        """

    @property
    def s3_files(self) -> Mapping[str, S3File]:
        """Files that come from S3 instead of the repository, by the path that they get."""

    def parameters(self) -> dict[str, object]:
        """What takes part in the artifact key besides the files: JSON values, the same for equal recipes.

        `recipe` names the kind. A value that a later version of the library adds is left out where it has its default,
        because an upgrade must not build everything again.
        """

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """Refuse what cannot be built.

        Raises:
            ConfigurationError: it does not fit the repository or the platform.
        """

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        """What the build program is told: `recipe`, `name` and what the program's module of that recipe needs."""

    def estimated_minutes(self, repository: ModelRepository) -> float:
        """A rough estimate of the build's duration."""


def recipes_of(repository: ModelRepository) -> tuple[BuildRecipe, ...]:
    """The recipes of a repository in an order of their own, whatever the order in which they were given.

    A repository without any is packed as it is.

    Raises:
        ConfigurationError: one is no recipe that this library can run; or `cdk-triton.toml` promises a file that is not
            there and that no recipe makes.
    """
    recipes = []
    for recipe in repository.recipes:
        if isinstance(recipe, PromisedFiles):
            raise ConfigurationError(
                f"the cdk-triton.toml of {repository.root} promises {recipe.produces[0]}, which is not there, and no "
                "recipe makes it: add the recipe, or put the file there"
            )
        if not isinstance(recipe, BuildRecipe):
            raise ConfigurationError(
                f"{recipe!r} is no recipe that can be built: use TensorRTPlan, DaliPipeline, CondaEnvironment or "
                "OnnxExport"
            )
        recipes.append(recipe)
    return tuple(sorted(recipes, key=lambda recipe: canonical_json(recipe.parameters())))
