"""Libraries with TensorRT plugins of the user's own: `TensorRTPlan(plugins=…)`.

A plan that has such plugins can be built and loaded only by a process that has loaded their libraries. trtexec loads
them for the build, and the TensorRT backend when the server starts, by its setting `plugins` (tensorrt_backend:
src/tensorrt.cc, `TRITONBACKEND_Initialize`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cdk_triton._arguments import listed, several
from cdk_triton.artifacts.recipes.values import path_in_model
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.releases import is_at_least

if TYPE_CHECKING:
    from cdk_triton.triton import ContainerEnvironment, Mode, ModelRepository

__all__ = ["check_plugins", "declared_plugins", "plugin_fault", "with_plugins"]

_LOADED_SINCE: Final = "22.09"
"""The first release whose TensorRT backend has the setting: tensorrt_backend 3226cc2 of 19 August 2022."""

_MODELS: Final = "/opt/ml/model"
_SETTING: Final = "--backend-config=tensorrt,plugins="
_HEADER: Final = b"\x7fELF\x02"  # 64 bits; elf(5)
_X86_64: Final = 62
_MACHINE: Final = slice(18, 20)
_LIBRARIES: Final = several(lambda value: isinstance(value, str), "use a list of paths, such as ['libnms.so']")


def declared_plugins(model: str, plugins: object, recipe: str) -> tuple[str, ...]:
    """The paths that the user wrote.

    Args:
        model: the model's directory.
        plugins: what the user wrote: paths relative to that directory.
        recipe: the recipe, to begin a sentence with.

    Raises:
        ConfigurationError: it is no list of paths within the directory of the model, or a path has a character that
            divides the values of the server's setting.
    """
    paths: tuple[str, ...] = listed(f"plugins of {recipe}", plugins, _LIBRARIES)
    for path in paths:
        path_in_model(model, path, f"a path in plugins of {recipe}")
        if any(each in ";," or each.isspace() for each in path):
            raise ConfigurationError(
                f"plugins of {recipe} has {path!r}, but blanks, ';' and ',' divide the values of the server's setting: "
                "rename the file"
            )
    return paths


def check_plugins(recipe: str, paths: Iterable[str], repository: ModelRepository, release: str) -> None:
    """Reject libraries that the server cannot load.

    Args:
        recipe: the recipe, to begin a sentence with.
        paths: the libraries, relative to the repository.
        repository: the repository.
        release: Triton's release.

    Raises:
        ConfigurationError: a file does not exist or is no library of Linux on x86-64, or the release has no such
            setting.
    """
    files = {file.path.as_posix(): file for file in repository.files}
    for path in paths:
        if not is_at_least(release, _LOADED_SINCE):
            raise ConfigurationError(
                f"{recipe} has plugins, which the TensorRT backend of Triton {release} cannot load: use release "
                f"{_LOADED_SINCE} or newer"
            )
        if path not in files:
            raise ConfigurationError(
                f"{recipe} has the plugin library {path}, which the repository does not contain: add the file, or "
                "correct the path"
            )
        with files[path].source.open("rb") as stream:
            header = stream.read(64)
        if not header.startswith(_HEADER) or int.from_bytes(header[_MACHINE], "little") != _X86_64:
            raise ConfigurationError(
                f"{recipe} has the plugin library {path}, which is no shared library of Linux on x86-64: build it in "
                f"the container image of Triton {release}"
            )


def plugin_fault(recipes: Iterable[object], mode: Mode) -> str | None:
    """Why an endpoint of this mode cannot serve plans of these recipes; None if it can."""
    if mode == "single":
        return None
    for recipe in recipes:
        if getattr(recipe, "plugins", ()):
            return (
                f"{recipe} has plugins, but a multi-model endpoint starts its server before it downloads archives, and "
                "the TensorRT backend loads plugins at the start of the server: use TritonModel, or put the libraries "
                f"into an image of your own and name them in additional_args ('{_SETTING}…')"
            )
    return None


def with_plugins(environment: ContainerEnvironment, repository: ModelRepository) -> ContainerEnvironment:
    """The settings of a container that serves a repository from `/opt/ml/model`, and loads the repository's plugins."""
    paths = [path for recipe in repository.recipes for path in getattr(recipe, "plugin_files", ())]
    if not paths:
        return environment
    libraries = [f"{_MODELS}/{path}" for path in dict.fromkeys(paths)]
    given = [each.removeprefix(_SETTING) for each in environment.additional_args if each.startswith(_SETTING)]
    others = [each for each in environment.additional_args if not each.startswith(_SETTING)]
    return replace(environment, additional_args=(*others, _SETTING + ";".join([*given, *libraries])))
