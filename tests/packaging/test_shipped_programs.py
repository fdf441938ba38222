"""The programs that the library ships to where they run: what the handlers need there, and that their hashes are one.

A hash that depended on where the library is installed would deploy the handlers again, and publish the build program
again, for another workstation or for CI.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.packaging.conftest import Environment, installed_entries, with_requirements

SHIPPED = ("constructs", "gpu_build", "lambda")

SYNTHESIS = """
import sys
from pathlib import Path
import aws_cdk as cdk
import cdk_triton
from cdk_triton.artifacts.program import write_program
assert Path(cdk_triton.__file__).is_relative_to(sys.argv[1]), cdk_triton.__file__
app = cdk.App(outdir="cdk.out", builtin_cloud_formation_validation=False)
cdk_triton.TritonArtifactStore(cdk.Stack(app, "Stack"), "Store")
app.synth()
write_program(Path("program.pyz"))
"""

IMPORT = """
import importlib, pkgutil, sys
handlers, libraries = sys.argv[1:]
sys.path += [handlers, libraries]
for package in ("artifacts", "protocol"):
    for module in pkgutil.walk_packages([f"{handlers}/{package}"], f"{package}."):
        importlib.import_module(module.name)
print(*(name for name in sys.modules if name.partition(".")[0] == "cdk_triton"))
print(*(module.__file__ for name, module in sys.modules.items() if name.startswith(("artifacts", "protocol"))))
"""


def synthesised(run: Any, command: Sequence[str | Path], place: Path, directory: Path) -> dict[str, str]:
    """The name and the hash of the content of each program after a synthesis by the library of a place."""
    directory.mkdir()
    done = run(*command, "-c", SYNTHESIS, place, cwd=directory)
    assert done.returncode == 0, done.stderr
    (handlers,) = (directory / "cdk.out").glob("asset.*/artifacts")
    files = sorted(path for path in handlers.parent.rglob("*") if path.is_file())
    content = hashlib.sha256()
    for path in files:
        content.update(f"{path.relative_to(handlers.parent)}\0".encode() + path.read_bytes())
    program = hashlib.sha256((directory / "program.pyz").read_bytes())
    return {handlers.parent.name: content.hexdigest(), "program.pyz": program.hexdigest()}


def by_checkout(checkout: Path, directory: Path) -> dict[str, str]:
    def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(checkout / "constructs")}
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    return synthesised(run, [sys.executable], checkout, directory)


def by_environment(environment: Environment, directory: Path) -> dict[str, str]:
    return synthesised(environment.run, ["python"], environment.directory, directory)


@pytest.mark.slow
def test_the_hashes_do_not_depend_on_where_the_library_is(
    distributions: Any, environment: Any, root: Path, tmp_path: Path
) -> None:
    for name in SHIPPED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / name, tmp_path / "copy" / name, symlinks=True, ignore=ignored, copy_function=shutil.copy)
    (tmp_path / "sdist").mkdir()
    subprocess.run(["tar", "-xf", distributions.sdist], cwd=tmp_path / "sdist", check=True)
    (unpacked,) = (tmp_path / "sdist").iterdir()

    expected = by_checkout(root, tmp_path / "by-checkout")

    assert by_checkout(tmp_path / "copy", tmp_path / "by-copy") == expected
    assert by_checkout(unpacked, tmp_path / "by-sdist") == expected
    assert by_environment(environment, tmp_path / "by-wheel") == expected


@pytest.mark.slow
def test_the_handlers_need_the_standard_library_and_boto3(root: Path, tmp_path: Path) -> None:
    by_checkout(root, tmp_path / "app")
    (handlers,) = (path.parent for path in (tmp_path / "app" / "cdk.out").glob("asset.*/artifacts"))
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for entry in installed_entries(with_requirements([Requirement("boto3")])):
        (libraries / entry.name).symlink_to(entry)

    command = [sys.executable, "-I", "-S", "-c", IMPORT, str(handlers), str(libraries)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    of_library, own = done.stdout.split("\n")[:2]
    assert of_library == ""
    assert len(own.split()) == len(list(handlers.rglob("*.py")))
    assert all(Path(file).is_relative_to(handlers) for file in own.split())
