"""The checks that recipes of packed environments share: numpy fits, a model uses the archive, no copy is packed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from cdk_triton.artifacts.recipes.values import model_of, path_in_model
from cdk_triton.errors import ConfigurationError
from cdk_triton.python_models.reader.execution_environment import NUMPY_2_SINCE, environment_path
from cdk_triton.triton.releases import is_at_least

if TYPE_CHECKING:
    from cdk_triton.artifacts.recipes.recipe import BuildRecipe
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import Model, ModelRepository

__all__ = ["archive_target", "check_host", "check_is_only_copy", "check_is_used", "check_numpy", "needed_python"]

_MODEL_DATA: Final = "/opt/ml/model"  # where a single-model endpoint finds the repository
_OLD_NUMPY: Final = re.compile(r"[01]\b")
_Recipe = TypeVar("_Recipe", bound="BuildRecipe")


def archive_target(recipe: BuildRecipe, model: str, archive: str) -> str:
    """The packed environment, relative to the repository.

    Raises:
        ConfigurationError: the path leaves the model's directory, or does not end in `.tar.gz`.
    """
    target = path_in_model(model, archive, f"archive of {recipe}")
    if not target.endswith(".tar.gz"):
        raise ConfigurationError(
            f"archive of {recipe} is {archive!r} but must end with .tar.gz, because the build packs a gzipped tar file"
        )
    return target


def check_host(recipe: BuildRecipe, platform: ServingPlatform) -> None:
    """Reject a platform whose processor is not that of the builds, x86-64, for which the packages are compiled.

    Raises:
        ConfigurationError: the platform's instances have a different processor.
    """
    if platform.instance.host != "x86_64":
        raise ConfigurationError(
            f"{recipe} makes an environment for linux-64, but {platform.instance_type} has an Arm host: use an "
            "instance type with an x86-64 host"
        )


def needed_python(platform: ServingPlatform) -> str | None:
    """The Python of the container, such as "3.12"; None if the table of releases does not have it."""
    versions = platform.versions
    return versions.python if versions is not None and "python" not in versions.assumed else None


def check_numpy(
    recipe: BuildRecipe, model: str, versions: Sequence[str], repository: ModelRepository, platform: ServingPlatform
) -> None:
    """Reject numpy 2 for older releases, whose Python backend crashes on text and loses the shape of outputs with it.

    Args:
        recipe: the recipe.
        model: the directory of the recipe's model.
        versions: the locked versions of numpy: more than one if markers choose among them.
        repository: the repository. If the model has its own stub, any numpy is accepted.
        platform: the platform that serves the repository.

    Raises:
        ConfigurationError: the release needs an older numpy.
    """
    if platform.release is None or is_at_least(platform.release, NUMPY_2_SINCE):
        return
    stub = f"{model_of(repository, model, str(recipe)).directory}/triton_python_backend_stub"
    if any(_OLD_NUMPY.match(version) for version in versions) or not versions:
        return
    if any(file.path.as_posix() == stub for file in repository.files):
        return
    raise ConfigurationError(
        f"{recipe} locks numpy {' and '.join(versions)}, but the Python backend of {platform.release} misreads "
        f"arrays of numpy 2: lock numpy<2, or use release {NUMPY_2_SINCE} or newer"
    )


def check_is_used(recipe: BuildRecipe, model: str, archive: str, repository: ModelRepository) -> None:
    """Check that a Python model names the environment.

    Raises:
        ConfigurationError: none does.
    """
    target = path_in_model(model, archive, f"archive of {recipe}")
    if not any(target in _environment_paths(each) for each in repository.models):
        raise ConfigurationError(
            f"{recipe} packs {target}, but no Python model of the repository uses this archive: write parameters "
            f'{{ key: "EXECUTION_ENV_PATH" value {{ string_value: "$$TRITON_MODEL_DIRECTORY/{archive}" }} }} '
            f"into {model_of(repository, model, str(recipe)).config_path}, or remove the recipe"
        )


def check_is_only_copy(
    recipe: _Recipe, model: str, repository: ModelRepository, packages: Callable[[_Recipe], frozenset[object]]
) -> None:
    """Reject a second environment with the same packages.

    An environment takes gigabytes, and the server unpacks each archive separately (python_backend: pb_env.cc).

    Args:
        recipe: one of the repository's recipes.
        model: the directory of the recipe's model.
        repository: the repository.
        packages: the locked packages of a recipe of the same kind.

    Raises:
        ConfigurationError: an earlier recipe packs the same packages.
    """
    for other in repository.recipes:
        if other == recipe:
            return  # the first of several copies is right, the later ones are not
        if isinstance(other, type(recipe)) and packages(recipe) == packages(other):
            raise ConfigurationError(
                f"{recipe} and {other} lock the same packages, so one archive is enough: remove {recipe}, and set "
                f'EXECUTION_ENV_PATH of {model!r} to "$$TRITON_MODEL_DIRECTORY/../{other.produces[0]}"'
            )


def _environment_paths(model: Model) -> set[str]:
    """The environment of a Python model, if it is in the repository."""
    path = environment_path(model, _MODEL_DATA)
    return set() if path is None else {path.as_posix()}
