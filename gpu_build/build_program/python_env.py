"""A Python with pinned packages, for a step that needs more than the standard library."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

from .step import BuildError, Work
from .stop import StoppedError

__all__ = ["is_index_unreached", "pinned_python"]

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_UNREACHED = ("connection broken by", "Max retries exceeded")  # pip's words, for the index and for a file


def pinned_python(work: Work, requirements: str, *, name: str, present: str | None = None) -> Path:
    """The path of a Python that has exactly the pinned packages.

    A virtual environment, made once in a job, filled by the pip of this interpreter: wheels only, no dependency that is
    not listed, and each file's hash checked. Triton's images have `pip` for their Python backend
    (triton-inference-server/server build.py, "python3-pip"), but neither `ensurepip` nor `virtualenv` for certain, so
    the environment is made without pip and filled from outside.

    Args:
        work: runs the commands.
        requirements: a requirements file with every package pinned and hashed (`uv pip compile --generate-hashes`).
        name: names the environment's directory and the errors: "ONNX Runtime".
        present: the module that decides: if this interpreter has it in exactly the pinned version, no environment is
            made. None: always make one.

    Raises:
        BuildError: a package cannot be installed, for instance without network access.
    """
    if present is not None and _has(present, _pinned_version(requirements, present)):
        return Path(sys.executable)
    digest = hashlib.sha256(requirements.encode()).hexdigest()[:16]
    directory = work.shared / f"python-{re.sub('[^a-z0-9]+', '-', name.lower())}-{digest}"
    complete = directory / "complete"
    if complete.exists():
        return directory / "bin" / "python"
    shutil.rmtree(directory, ignore_errors=True)  # half of one, of a step that failed
    work.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], what=f"making an environment for {name}")
    listing = directory / "requirements.txt"
    listing.write_text(requirements, encoding="utf-8")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    where = ["--target", str(directory / "lib" / version / "site-packages")]
    exact = ["--only-binary", ":all:", "--no-deps", "--require-hashes", "--requirement", str(listing)]
    try:
        work.run([*pip, *where, *exact], what=f"installing {name}")
    except StoppedError:
        raise
    except BuildError as error:
        if not is_index_unreached(error):
            raise
        raise BuildError(
            f"{error.reason}; this needs a Python package index, so give the build network access", error.log
        ) from error
    complete.touch()
    return directory / "bin" / "python"


def is_index_unreached(error: BuildError) -> bool:
    """Whether pip got no connection to its package index, so that network access would help."""
    return any(words in line for line in error.log for words in _UNREACHED)


def _pinned_version(requirements: str, module: str) -> str:
    pins = {found["name"].lower().replace("-", "_"): found["version"] for found in _PIN.finditer(requirements)}
    return pins[module]


def _has(module: str, version: str) -> bool:
    try:
        return metadata.version(module) == version
    except metadata.PackageNotFoundError:
        return False
