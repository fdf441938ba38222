"""Arranges the tritonserver of the `nvidia-pytriton` distribution for the backends of SageMaker's images.

The distribution brings the server (2.51, release 24.10), the Python backend and one stub per Python version. The
backends `tensorrt`, `onnxruntime`, `dali`, `fil` and `pytorch` are added as Python-based backends (a directory with a
`model.py`), which Triton finds by the same name, so that configurations stay what they are.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from cdk_triton.errors import LocalError
from cdk_triton_local.process import child_environment
from cdk_triton_local.triton.backends import MISSING_BACKENDS

__all__ = ["STAND_IN_BACKENDS", "ServerFiles", "arrange_server_files"]

STAND_IN_BACKENDS = ("dali", "fil", "onnxruntime", "pytorch", "tensorrt")

PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

_STUB = "triton_python_backend_stub"

_STAND_IN = """\
# Run by Triton's Python stub, whose Python has numpy alone. The stand-in is a part of the local AWS, and can import all
# that the interpreter of the local AWS can import.
import site
for directory in {packages!r}:
    site.addsitedir(directory)
from cdk_triton_local.triton.backends.{name} import TritonPythonModel
"""

_PRINTS = """
# Added by the local AWS: what a model prints reaches the log at once. From release 24.11 on, the variable
# PYTHONUNBUFFERED, which the container has, does the same; the Python of 24.10 does not read its environment.
import sys
sys.stdout.reconfigure(line_buffering=True)
"""
"""The end of `triton_python_backend_utils.py`, which the stub imports before the model (src/pb_stub.cc)."""


@dataclass(frozen=True)
class ServerFiles:
    """The places of the parts of a runnable server.

    Attributes:
        program: the tritonserver executable.
        backends: for `--backend-directory`.
        libraries: for `LD_LIBRARY_PATH`, or None where the system finds the Python library by itself.
        python: the directory of the `python3` whose packages the Python models import, which is numpy alone, as in an
            image; first on the server's `PATH`, because the stub takes its packages from the first one there.
    """

    program: Path
    backends: Path
    libraries: Path | None
    python: Path


def arrange_server_files(directory: Path) -> ServerFiles:
    """Build a backend directory under `directory` (replacing an older one) and check that the stub can run.

    Raises:
        LocalError: nvidia-pytriton is not installed, has no stub for this Python, or the stub lacks a library.
    """
    packages = _pytriton_packages()
    server = packages / "pytriton" / "tritonserver"
    # The libraries find their own libraries relative to themselves (RPATH $ORIGIN/../../../../...). The same shape of
    # the tree makes LD_LIBRARY_PATH needless, which every child would inherit. These are copies, because Triton
    # rejects a backend library that is a link out of the backend directory.
    tree = directory / "tritonserver"
    shutil.rmtree(tree, ignore_errors=True)
    backends = tree / "pytriton" / "tritonserver" / "backends"
    shutil.copytree(server / "backends" / "python", backends / "python", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "nvidia_pytriton.libs").symlink_to(packages / "nvidia_pytriton.libs")
    with (backends / "python" / "triton_python_backend_utils.py").open("a", encoding="utf-8") as utilities:
        utilities.write(_PRINTS)
    stub = _stub(server, backends / "python")
    modules = {**{name: name for name in STAND_IN_BACKENDS}, **dict.fromkeys(MISSING_BACKENDS, "missing")}
    for name, module in modules.items():
        (backends / name).mkdir()
        (backends / name / "model.py").write_text(_STAND_IN.format(packages=_package_directories(), name=module))
    return ServerFiles(
        program=server / "bin" / "tritonserver",
        backends=backends,
        libraries=_library_directory(stub),
        python=_arrange_python(tree / "python"),
    )


def _arrange_python(directory: Path) -> Path:
    """Build a virtual environment with numpy alone, and return where its `python3` is.

    A model that imports anything else fails here as it fails in an image.
    """
    numpy = importlib.util.find_spec("numpy")
    if numpy is None or numpy.origin is None:
        raise LocalError("numpy is not installed, without which Triton runs no Python model: pip install numpy")
    source = Path(numpy.origin).parents[1]
    packages = directory / "lib" / f"python{PYTHON_VERSION}" / "site-packages"
    packages.mkdir(parents=True)
    for each in (*source.glob("numpy"), *source.glob("numpy.libs"), *source.glob("numpy-*.dist-info")):
        (packages / each.name).symlink_to(each)
    programs = directory / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    base = Path(sys.executable).resolve().parent
    (directory / "pyvenv.cfg").write_text(f"home = {base}\ninclude-system-site-packages = false\n")
    return programs


def _package_directories() -> list[str]:
    installed = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    own = (importlib.util.find_spec(name) for name in ("cdk_triton", "cdk_triton_local"))
    return [*dict.fromkeys([*installed, *(str(Path(str(spec.origin)).parents[1]) for spec in own if spec)])]


def _pytriton_packages() -> Path:
    """The site-packages directory that has nvidia-pytriton, which is not imported."""
    spec = importlib.util.find_spec("pytriton")
    for location in (spec.submodule_search_locations or []) if spec else []:
        package = Path(location)
        if (package / "tritonserver" / "bin" / "tritonserver").exists():
            return package.parent
    raise LocalError(
        "there is no tritonserver on this machine, because the distribution nvidia-pytriton is not installed; "
        "install it with: pip install 'cdk-triton[local]'"
    )


def _stub(server: Path, target: Path) -> Path:
    source = server / "python_backend_stubs" / PYTHON_VERSION / _STUB
    if not source.exists():
        known = ", ".join(sorted((path.name for path in source.parent.parent.iterdir()), key=_version_key))
        raise LocalError(
            f"nvidia-pytriton has a Python backend for Python {known}, but none for {PYTHON_VERSION}; "
            "use Python 3.11 or 3.12"
        )
    return Path(shutil.copy2(source, target / _STUB))


def _version_key(name: str) -> tuple[int, ...]:
    """3.9 comes before 3.10."""
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def _library_directory(stub: Path) -> Path | None:
    """The directory of this interpreter's libpython, or None if the system's works.

    The system may have a libpython of another patch version, with which modules of this interpreter's standard library
    cannot be imported: `ssl`, for example.
    """
    directory = Path(sysconfig.get_config_var("LIBDIR") or os.devnull)
    if list(directory.glob(f"libpython{PYTHON_VERSION}.so*")) and _runs(stub, directory):
        return directory
    if _runs(stub, None):
        return None
    raise LocalError(
        f"Triton's Python backend needs the shared library of Python {PYTHON_VERSION}, which this machine does not "
        f"have; install it with: apt-get install libpython{PYTHON_VERSION}"
    )


def _runs(stub: Path, libraries: Path | None) -> bool:
    extra = {"LD_LIBRARY_PATH": str(libraries)} if libraries else {}
    # Without arguments the stub prints its usage and ends; 127 is the loader's exit status for a missing library.
    done = subprocess.run([stub], env=child_environment(extra), capture_output=True, check=False)
    return done.returncode != 127
