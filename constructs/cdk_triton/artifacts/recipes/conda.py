"""`CondaEnvironment`: a locked environment, packed for the Python backend."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from cdk_triton.artifacts.recipes.conda_lock import EXPLICIT, LockedPackage, read_explicit_lock
from cdk_triton.artifacts.recipes.packed_environments import (
    archive_target,
    check_host,
    check_is_only_copy,
    check_is_used,
    check_numpy,
    needed_python,
)
from cdk_triton.artifacts.recipes.sources import required_text
from cdk_triton.artifacts.recipes.values import model_of, path_in_model
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["CondaEnvironment"]

_SHOWN_PROBLEMS: Final = 5
_YAML = re.compile(r"^(?:name|channels|dependencies|version|metadata|package):", re.MULTILINE)
_CONDA_LOCK_YAML = re.compile(r"^package:", re.MULTILINE)


@dataclass(frozen=True)
class CondaEnvironment:
    """A locked conda environment, packed for the Python models that name it in `EXECUTION_ENV_PATH`.

    The lock file is an explicit conda lock file for linux-64: a line `@EXPLICIT`, then the URL of each package with its
    MD5 or SHA-256. Write it with `conda-lock --kind explicit --platform linux-64 --file environment.yml`, or, in an
    existing environment, with `conda list --explicit --sha256` or `micromamba env export --explicit`. The file must
    contain the Python version of the container, because the process that runs a model is linked to the container's
    Python.

    The build downloads micromamba, pinned by version and SHA-256, creates the environment, and checks every package's
    hash again. It packs the environment with a pinned conda-pack. The archive omits compiled files (`*.pyc`), because
    they contain timestamps.

    Several models can use one packed environment. In the other models, set `EXECUTION_ENV_PATH` to a path such as
    `$$TRITON_MODEL_DIRECTORY/../preprocess/env.tar.gz`, where `preprocess` is the `model` of this recipe.

    Attributes:
        model: the directory of the model that holds the environment.
        lock: the lock file, relative to the model's directory; it does not go into the archive.
        archive: the packed environment, relative to the model's directory.

    Raises:
        ConfigurationError: a path leaves the model's directory, or the archive's name does not end in `.tar.gz`.
    """

    model: str
    lock: str
    archive: str = "env.tar.gz"

    def __post_init__(self) -> None:
        """Reject values that no repository could fix."""
        path_in_model(self.model, self.lock, f"lock of {self}")
        archive_target(self, self.model, self.archive)

    def __str__(self) -> str:
        return f"CondaEnvironment({self.model!r})"

    @property
    def _source(self) -> str:
        """The lock file, relative to the repository."""
        return path_in_model(self.model, self.lock, f"lock of {self}")

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
        return {"recipe": "conda_environment", "lock": self._source, "archive": self._target}

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """See `BuildRecipe.validate`."""
        model_of(repository, self.model, str(self))
        check_host(self, platform)
        packages = self._locked_packages(repository)
        self._check_python(packages, needed_python(platform), platform)
        numpy = [package.version for package in packages if package.name == "numpy"]
        check_numpy(self, self.model, numpy, repository, platform)
        check_is_only_copy(self, self.model, repository, lambda each: each._identity(repository))
        check_is_used(self, self.model, self.archive, repository)

    def _locked_packages(self, repository: ModelRepository) -> tuple[LockedPackage, ...]:
        """In the order of the file.

        Raises:
            ConfigurationError: the lock file is missing or not locked; up to five wrong lines are named.
        """
        text = required_text(repository, self._source, f"the lock file of {self}")
        _reject_other_forms(self._source, text)
        packages, problems = read_explicit_lock(text)
        if problems:
            shown = "; ".join(map(str, problems[:_SHOWN_PROBLEMS]))
            more = f"; and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
            raise ConfigurationError(f"the lock file {self._source} of {self} cannot be used: {shown}{more}")
        return packages

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        """See `BuildRecipe.step`."""
        return {
            "recipe": "conda_environment",
            "name": f"the conda environment of {self.model}",
            "target": self._target,
            "packages": [
                {"url": package.url, "algorithm": package.algorithm, "digest": package.digest}
                for package in self._locked_packages(repository)
            ],
        }

    def estimated_minutes(self, repository: ModelRepository) -> float:
        """See `BuildRecipe.estimated_minutes`: about two seconds to download, link and compress a package."""
        return 1 + len(self._locked_packages(repository)) / 30

    def _check_python(self, packages: tuple[LockedPackage, ...], needed: str | None, platform: ServingPlatform) -> None:
        python = next((package for package in packages if package.name == "python"), None)
        if python is None:
            raise ConfigurationError(
                f"the lock file {self._source} of {self} has no python, which the Python backend needs: "
                f"add python={needed or '3.12'} to the packages, and lock them again"
            )
        found = ".".join(python.version.split(".")[:2])
        if needed is not None and found != needed:
            raise ConfigurationError(
                f"the lock file {self._source} of {self} has Python {found} in line {python.line}, but Python {needed} "
                f"of the container of {platform.release} would not find the packages: lock python={needed}"
            )

    def _identity(self, repository: ModelRepository) -> frozenset[object]:
        """Two environments with the same packages and hashes are equal."""
        return frozenset((package.url, package.digest) for package in self._locked_packages(repository))


def _reject_other_forms(path: str, text: str) -> None:
    if EXPLICIT in text:
        return
    if _CONDA_LOCK_YAML.search(text) and PurePosixPath(path).suffix in (".yml", ".yaml"):
        raise ConfigurationError(
            f"{path} is in conda-lock's own format, but the recipe reads explicit lock files only: write such a file "
            f"with `conda-lock render --kind explicit --platform linux-64 {PurePosixPath(path).name}`, and name this "
            "file"
        )
    if _YAML.search(text) or PurePosixPath(path).suffix in (".yml", ".yaml"):
        raise ConfigurationError(
            f"{path} does not lock packages, so a later build may get other packages: lock them with `conda-lock "
            f"--kind explicit --platform linux-64 --file {PurePosixPath(path).name}`, which writes "
            "conda-linux-64.lock, and name that file"
        )
