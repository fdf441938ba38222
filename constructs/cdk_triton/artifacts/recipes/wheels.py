"""`WheelEnvironment`: an environment of locked wheels, packed for the Python backend."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from cdk_triton.artifacts.recipes.packed_environments import (
    archive_target,
    check_host,
    check_is_only_copy,
    check_is_used,
    check_numpy,
    needed_python,
)
from cdk_triton.artifacts.recipes.requirements_lock import PinnedPackage, lock_command, pinned_packages
from cdk_triton.artifacts.recipes.sources import required_text
from cdk_triton.artifacts.recipes.values import model_of, path_in_model
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["WheelEnvironment"]

# The first comments of what uv and pip-compile write tell the Python that the versions were chosen for.
_LOCKED_FOR = re.compile(
    r"^#.*?(?:uv pip compile\b.*?--python-version[ =]|pip-compile with Python )(?P<python>3\.\d+)", re.MULTILINE
)


@dataclass(frozen=True)
class WheelEnvironment:
    """Wheels of a Python package index, locked by hash and packed for Python models.

    The requirements file pins every package with its hashes, including the packages that other packages require. For
    releases from 24.11 on, write it with `uv pip compile --generate-hashes --python-version 3.12 --python-platform
    x86_64-manylinux_2_28 requirements.in -o requirements.txt`. For another release, use its Python version. The file
    must contain numpy, because the Python backend imports it.

    The build creates a virtual environment with the image's own Python, and installs the packages with pip. It installs
    only wheels, so no package runs code during the build. pip checks each file's hash, and fails if a required package
    is not pinned or has no wheel for this Python. Compiled files (`*.pyc`) are left out, because they contain
    timestamps.

    Python itself is not packed, because the process that runs a model uses the image's Python. So an environment
    contains nothing but its packages, and works only in images with the same Python version.

    Several models can use one packed environment. In the other models, set `EXECUTION_ENV_PATH` to a path such as
    `$$TRITON_MODEL_DIRECTORY/../generate/env.tar.gz`, where `generate` is the `model` of this recipe.

    Attributes:
        model: the directory of the model that holds the environment.
        requirements: the requirements file, relative to the model's directory; it does not go into the archive.
        archive: the packed environment, relative to the model's directory.

    Raises:
        ConfigurationError: a path leaves the model's directory, or the archive's name does not end in `.tar.gz`.
    """

    model: str
    requirements: str = "requirements.txt"
    archive: str = "env.tar.gz"

    def __post_init__(self) -> None:
        """Reject values that no repository could fix."""
        path_in_model(self.model, self.requirements, f"requirements of {self}")
        archive_target(self, self.model, self.archive)

    def __str__(self) -> str:
        return f"WheelEnvironment({self.model!r})"

    @property
    def _source(self) -> str:
        """The requirements file, relative to the repository."""
        return path_in_model(self.model, self.requirements, f"requirements of {self}")

    @property
    def _target(self) -> str:
        """The packed environment, relative to the repository."""
        return archive_target(self, self.model, self.archive)

    @property
    def produces(self) -> tuple[str, ...]:
        """See `BuildRecipe.produces`."""
        return (self._target,)

    @property
    def consumes(self) -> tuple[str, ...]:
        """See `BuildRecipe.consumes`."""
        return (self._source,)

    @property
    def s3_files(self) -> Mapping[str, S3File]:
        """See `BuildRecipe.s3_files`."""
        return {}

    def parameters(self) -> dict[str, object]:
        """See `BuildRecipe.parameters`."""
        return {"recipe": "wheel_environment", "requirements": self._source, "archive": self._target}

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """See `BuildRecipe.validate`."""
        model_of(repository, self.model, str(self))
        check_host(self, platform)
        self._check_locked_python(repository, platform)
        self._check_numpy(repository, platform)
        check_is_only_copy(self, self.model, repository, lambda each: each._identity(repository))
        check_is_used(self, self.model, self.archive, repository)

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        """See `BuildRecipe.step`."""
        return {
            "recipe": "wheel_environment",
            "name": f"the Python environment of {self.model}",
            "requirements": self._source,
            "target": self._target,
        }

    def estimated_minutes(self, repository: ModelRepository) -> float:
        """See `BuildRecipe.estimated_minutes`: about two seconds to download, install and compress a package."""
        return 1 + len(self._packages(repository)) / 30

    def _text(self, repository: ModelRepository) -> str:
        return required_text(repository, self._source, f"the requirements file of {self}")

    def _packages(self, repository: ModelRepository) -> tuple[PinnedPackage, ...]:
        return pinned_packages(self._text(repository), self._source, str(self), lock_command(self._source))

    def _identity(self, repository: ModelRepository) -> frozenset[object]:
        """Two environments with the same versions of packages are equal."""
        return frozenset((package.name, package.version) for package in self._packages(repository))

    def _check_locked_python(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """Only if the file names the Python that it was locked for."""
        needed = needed_python(platform)
        found = _LOCKED_FOR.search(self._text(repository))
        if found is not None and needed is not None and found["python"] != needed:
            command = lock_command(self._source, "--python-version", needed)
            raise ConfigurationError(
                f"the requirements file {self._source} of {self} was locked for Python {found['python']}, but Python "
                f"{needed} of the container of {platform.release} may need other versions of packages: lock them with "
                f"{command}"
            )

    def _check_numpy(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        locked = [package for package in self._packages(repository) if package.name == "numpy"]
        if not locked:
            path = PurePosixPath(self._source)
            raise ConfigurationError(
                f"the requirements file {self._source} of {self} has no numpy, which the Python backend imports in the "
                f"environment: add numpy to {path.with_suffix('.in').name} and run {lock_command(self._source)}"
            )
        # A URL has no version to look at.
        versions = [package.version for package in locked if package.version is not None]
        check_numpy(self, self.model, versions, repository, platform)
