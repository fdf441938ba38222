"""What every recipe is: a declared build whose inputs and outputs are known at synth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["BuildRecipe"]


@runtime_checkable
class BuildRecipe(Protocol):
    """A build that adds files to a repository in the image that serves it.

    All paths are relative to the repository, with `/`.
    """

    @property
    def produces(self) -> tuple[str, ...]:
        """The files that it writes: `bert/1/model.plan`."""

    @property
    def consumes(self) -> tuple[str, ...]:
        """The files that only builds read, from the repository or from another recipe; the archive leaves them out."""

    @property
    def s3_files(self) -> Mapping[str, S3File]:
        """Files that come from S3 instead of the repository, by the path that they get."""

    def parameters(self) -> dict[str, object]:
        """What takes part in the artifact key besides the files: JSON values, the same for equal recipes."""

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """Refuse what cannot be built.

        Raises:
            ConfigurationError: it does not fit the repository or the platform.
        """

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        """What the build program is told: `recipe`, `name` and what the program's module of that recipe needs."""

    def estimated_minutes(self, repository: ModelRepository) -> float:
        """A rough estimate of the build's duration."""
