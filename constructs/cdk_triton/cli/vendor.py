"""`cdk-triton vendor`: puts packages beside a Python model, for the Python of the image and for this machine's."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cdk_triton.errors import CdkTritonError, ConfigurationError
from cdk_triton.python_models.installed import OWN_PYTHON, PROCESSORS, InstalledPackage, installed_packages

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform

__all__ = ["vendor"]

_OLDEST_GLIBC, _NEWEST_GLIBC = 5, 28  # the minor versions of manylinux1 and of Debian 10; the images have a newer one
_OLD_NAMES: Final = ("manylinux2014", "manylinux2010", "manylinux1")


class InstallError(CdkTritonError):
    """pip or uv has failed."""


def vendor(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIRECTORY", file_okay=False, help="For the packages, such as models/tokenize/1/vendor."
        ),
    ],
    packages: Annotated[list[str], typer.Argument(metavar="PACKAGE", help="As for pip, such as tokenizers==0.23.3.")],
    platform: Annotated[
        str, typer.Option(help="Install for the image of RELEASE/INSTANCE, such as 26.05/ml.g5.xlarge.")
    ],
    no_deps: Annotated[
        bool, typer.Option("--no-deps", help="Install only these packages, not those that they require.")
    ] = False,
) -> None:
    """Install packages beside a Python model for the Python of the image, with uv or pip.

    Packages that do not run with the Python of this machine are also installed for it, outside the repository, and the
    local AWS uses these builds.

    Example: cdk-triton vendor models/tokenize/1/vendor tokenizers==0.23.3 --platform 26.05/ml.g5.xlarge
    """
    from cdk_triton.cli.platform_option import platform_of

    serving = platform_of(platform)
    if serving is None or serving.versions is None:
        raise ConfigurationError(f"--platform is {platform!r}, which names no release: write RELEASE/INSTANCE")
    if not directory.parent.is_dir():
        raise typer.BadParameter(
            f"{directory.parent} is not a directory: name a new directory beside model.py, such as "
            "models/tokenize/1/vendor",
            param_hint="DIRECTORY",
        )
    before = set(installed_packages(directory))
    options = ["--no-deps"] if no_deps else []
    _install(directory, [*options, *packages], for_image=serving)
    installed = [each for each in _without_old_records(directory, before) if each.directory == directory]
    for each in installed:
        typer.echo(f"{directory}: {each.name} {each.version} for Python {serving.versions.python}")
    if importlib.util.find_spec("pytriton") is None:
        return  # the extra `local`, without which no model runs here
    for each in installed:
        if not each.runs_here and _has_own_build(each):
            typer.echo(f"the local AWS: {each.name} {each.version} for Python {OWN_PYTHON}")


def _without_old_records(directory: Path, before: set[InstalledPackage]) -> Iterator[InstalledPackage]:
    """What is installed now; `pip install --target --upgrade` leaves the records of earlier versions behind."""
    packages = list(installed_packages(directory))
    new = {(each.directory, _normalised(each.name)) for each in packages if each not in before}
    for each in packages:
        if each in before and (each.directory, _normalised(each.name)) in new:
            shutil.rmtree(each.information)
        else:
            yield each


def _normalised(name: str) -> str:
    """https://packaging.python.org/en/latest/specifications/name-normalization/."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _has_own_build(package: InstalledPackage) -> bool:
    """Install the same version for this machine; without one, the package is good for the image all the same."""
    if package.own_build.is_dir():
        return True
    package.own_build.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=package.own_build.parent) as temporary:
        build = Path(temporary) / "build"
        try:
            _install(build, ["--no-deps", f"{package.name}=={package.version}"])
        except InstallError as error:
            typer.echo(f"the local AWS cannot load models that import {package.name}: {error}", err=True)
            return False
        build.rename(package.own_build)
    return True


def _install(target: Path, arguments: Sequence[str], *, for_image: ServingPlatform | None = None) -> None:
    uv = shutil.which("uv")
    if uv is not None:
        # First, because pip evaluates the conditions of requirements for the Python that runs it.
        command = ["uv", "pip", "install", "--python", sys.executable, "--link-mode", "copy", *_uv_machine(for_image)]
    elif importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-compile"]
        command += ["--upgrade", *_pip_machine(for_image)]
    else:
        raise InstallError(
            f"there is neither uv on the PATH nor pip in {sys.prefix}: install one of them, such as with "
            f"`{sys.executable} -m ensurepip`"
        )
    command += ["--only-binary", ":all:", "--target", str(target), *arguments]
    typer.echo(shlex.join(command), err=True)
    status = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    (target / ".lock").unlink(missing_ok=True)  # uv's
    if status:
        with suppress(OSError):
            target.rmdir()  # uv creates it first; only an empty directory is removed
        raise InstallError(f"{'pip' if uv is None else 'uv'} exited with status {status}; its reason is printed above")


def _uv_machine(serving: ServingPlatform | None) -> list[str]:
    if serving is None or serving.versions is None:
        return []
    system = f"{PROCESSORS[serving.instance.host]}-manylinux_2_{_NEWEST_GLIBC}"
    return ["--python-version", serving.versions.python, "--python-platform", system]


def _pip_machine(serving: ServingPlatform | None) -> list[str]:
    """Name each platform, because pip accepts only wheels for exactly the given platforms."""
    if serving is None or serving.versions is None:
        return []
    versions = [f"manylinux_2_{minor}" for minor in range(_NEWEST_GLIBC, _OLDEST_GLIBC - 1, -1)]
    names = [f"{name}_{PROCESSORS[serving.instance.host]}" for name in (*versions, *_OLD_NAMES)]
    return ["--python-version", serving.versions.python, *(word for name in names for word in ("--platform", name))]
