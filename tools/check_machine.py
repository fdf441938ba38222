"""Lists what this machine lacks, before anything is installed. Run by `make` with the Python that makes .venv."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def faults() -> Iterator[str]:
    """One sentence for each thing that is missing."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if " " in str(Path.cwd()):
        yield f"make cannot work in a directory with a space in its path: move {Path.cwd()}"
    if version not in ("3.11", "3.12"):
        yield f"Python 3.11 or 3.12 is needed, but {sys.executable} is {version}: run make PYTHON=python3.11"
        return
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        yield f"Triton runs on Linux on x86-64, but this is {sys.platform} on {platform.machine()}"
    if importlib.util.find_spec("ensurepip") is None:
        yield f"Python's venv is not complete: run apt-get install python{version}-venv"
    if not has_libpython(version):
        # Triton's Python backend embeds the interpreter, which Debian's python3 does not bring as a library.
        yield f"the shared library of Python {version} is missing: run apt-get install libpython{version}"
    if shutil.which("gcc") is None:
        yield "gcc is missing: run apt-get install gcc libc6-dev"


def has_libpython(version: str) -> bool:
    """Whether libpython can be loaded, from the system or from beside an interpreter of its own."""
    name = f"libpython{version}.so.1.0"
    for library in (name, str(Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib") / name)):
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return True
    return False


if __name__ == "__main__":
    found = list(faults())
    for fault in found:
        print(f"cdk-triton cannot be installed here: {fault}", file=sys.stderr)
    sys.exit(1 if found else 0)
