"""The tritonserver of the `nvidia-pytriton` distribution, arranged for SageMaker's images' backends.

The distribution brings the server (2.51, release 24.10), the Python backend and one stub per Python version. The
backends `tensorrt`, `onnxruntime` and `dali` are added as Python-based backends (a directory with a `model.py`), which
Triton finds by the same name, so that configurations stay what they are.
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
from cdk_triton.local.process import child_environment

__all__ = ["STAND_IN_BACKENDS", "ServerFiles", "arrange_server_files"]

STAND_IN_BACKENDS = ("dali", "onnxruntime", "tensorrt")

PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

_STUB = "triton_python_backend_stub"


@dataclass(frozen=True)
class ServerFiles:
    """Where the parts of a runnable server are.

    Attributes:
        program: the tritonserver executable.
        backends: for `--backend-directory`.
        libraries: for `LD_LIBRARY_PATH`, or None where the system finds the Python library by itself.
        python: the directory of the interpreter whose packages the Python models see; first on the server's `PATH`,
            because the stub asks the first `python3` there for its `sys.path`.
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
    packages = _packages()
    server = packages / "pytriton" / "tritonserver"
    # The libraries say where their own libraries are relative to themselves (RPATH $ORIGIN/../../../../...): keeping
    # the shape of the tree keeps LD_LIBRARY_PATH, which every child would inherit, out of it. Copies, because Triton
    # refuses a backend library that is a link out of the backend directory.
    tree = directory / "tritonserver"
    shutil.rmtree(tree, ignore_errors=True)
    backends = tree / "pytriton" / "tritonserver" / "backends"
    shutil.copytree(server / "backends" / "python", backends / "python", ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "nvidia_pytriton.libs").symlink_to(packages / "nvidia_pytriton.libs")
    stub = _stub(server, backends / "python")
    for name in STAND_IN_BACKENDS:
        (backends / name).mkdir()
        (backends / name / "model.py").write_text(
            f"# Run by Triton's Python stub, with the interpreter that runs the local AWS.\n"
            f"from cdk_triton.local.triton.backends.{name} import TritonPythonModel\n"
        )
    return ServerFiles(
        program=server / "bin" / "tritonserver",
        backends=backends,
        libraries=_library_directory(stub),
        python=Path(sys.executable).parent,
    )


def _packages() -> Path:
    """The site-packages directory that holds nvidia-pytriton; found without importing it."""
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
        known = ", ".join(sorted(path.name for path in source.parent.parent.iterdir()))
        raise LocalError(
            f"nvidia-pytriton has a Python backend for Python {known} and none for {PYTHON_VERSION}; "
            "use Python 3.11 or 3.12"
        )
    return Path(shutil.copy2(source, target / _STUB))


def _library_directory(stub: Path) -> Path | None:
    """Where the stub finds libpython: nowhere in particular, or beside an interpreter that the system does not know."""
    if _runs(stub, None):
        return None
    directory = Path(sysconfig.get_config_var("LIBDIR") or os.devnull)
    if _runs(stub, directory):
        return directory
    raise LocalError(
        f"Triton's Python backend needs the shared library of Python {PYTHON_VERSION}, which this machine does not "
        f"have; install it with: apt-get install libpython{PYTHON_VERSION}"
    )


def _runs(stub: Path, libraries: Path | None) -> bool:
    extra = {"LD_LIBRARY_PATH": str(libraries)} if libraries else {}
    # Without arguments the stub says what it expects and leaves; 127 is the loader's answer for a missing library.
    done = subprocess.run([stub], env=child_environment(extra), capture_output=True, check=False)
    return done.returncode != 127
