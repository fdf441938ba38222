"""Builds a packed conda environment from what is locked."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any, Iterator, Mapping
from urllib.parse import unquote

from .download import download
from .files import digest_of
from .programs import isolated, run_driver
from .python_env import pinned_python
from .step import BuildError, Report, Work

__all__ = ["MICROMAMBA_SHA256", "MICROMAMBA_URL", "MICROMAMBA_VERSION", "build"]

MICROMAMBA_VERSION = "2.8.1"
MICROMAMBA_URL = "https://conda.anaconda.org/conda-forge/linux-64/micromamba-2.8.1-0.tar.bz2"
"""conda-forge's package of it, from the host that the environments come from too; mamba's own releases on GitHub have
the same file."""
MICROMAMBA_SHA256 = "a934c3709c997feae403a27fd1e321c106d26ffa4f294800ffb11cbc9a3e8515"

_MOST_BYTES = 64 << 20
_PROGRAM = "bin/micromamba"

# conda-pack imports nothing of setuptools from 0.9 on, except on Windows.
_CONDA_PACK = "conda-pack==0.9.2 --hash=sha256:437c1acadcdfe3d4f44233513eb116129cde3911088f72ae00871802c7943e47\n"
# The last ones for Python 3.8, which images up to 23.04 have.
_CONDA_PACK_38 = (
    "conda-pack==0.8.1 --hash=sha256:4ac43dbb5b5a1ee6f10df27f83fd227bfdd8a99cb2acbe6d05f1e5a0a681d307\n"
    "setuptools==75.3.2 --hash=sha256:90ab613b6583fc02d5369cbca13ea26ea0e182d1df2d943ee9cbe81d4c61add9\n"
)


def build(step: Mapping[str, Any], work: Work) -> Report:
    """Create the environment with micromamba, compare hashes and Python, and pack it with conda-pack.

    Args:
        step: `packages` (each `url`, `algorithm`: md5 or sha256, `digest`) and `target`, relative to the repository.
        work: the step's `Work`.

    Raises:
        BuildError: something cannot be fetched, has a different hash, or cannot be installed or packed; or the
            environment's Python differs from this image's.
    """
    micromamba = _micromamba(work)
    root, prefix = work.scratch / "mamba", work.scratch / "environment"
    _create(micromamba, step["packages"], root, prefix, work)
    _compare_hashes(step["packages"], root / "pkgs", work)
    _compare_python(prefix, work)
    target = work.repository / step["target"]
    target.parent.mkdir(parents=True, exist_ok=True)
    packing = _CONDA_PACK if sys.version_info >= (3, 9) else _CONDA_PACK_38
    python = pinned_python(work, packing, name="conda-pack", present="conda_pack")
    run_driver(
        [str(python)],
        "conda_driver.py",
        {"prefix": str(prefix), "tar": str(work.scratch / "environment.tar"), "archive": str(target)},
        work,
        what="packing the environment",
    )
    return {"outputs": [step["target"]], "parity": None}


def _micromamba(work: Work) -> str:
    """The image's own program if it has the pinned version, else a download."""
    found = shutil.which("micromamba")
    if found is not None:
        lines = work.run([found, "--version"], what="looking for micromamba", environment=isolated(work))
        if MICROMAMBA_VERSION in lines:
            return found
    package = work.scratch / "micromamba.tar.bz2"
    download(MICROMAMBA_URL, package, work.stop, sha256=MICROMAMBA_SHA256, most_bytes=_MOST_BYTES, what="micromamba")
    program = work.scratch / "micromamba"
    # Only this one member is read, and nothing is unpacked to a path that the archive names.
    with tarfile.open(str(package), "r:bz2") as archive:
        member = archive.extractfile(_PROGRAM)
        if member is None:
            raise BuildError(f"the package of micromamba from {MICROMAMBA_URL} has no file {_PROGRAM}")
        with program.open("wb") as file:
            shutil.copyfileobj(member, file)
    program.chmod(0o755)
    return str(program)


def _create(micromamba: str, packages: list[dict[str, str]], root: Path, prefix: Path, work: Work) -> None:
    listing = work.scratch / "explicit.txt"
    prefixes = {"md5": "", "sha256": "sha256:"}
    lines = [f"{each['url']}#{prefixes[each['algorithm']]}{each['digest']}" for each in packages]
    listing.write_text("\n".join(["@EXPLICIT", *lines]) + "\n", encoding="utf-8")
    # Nothing of this machine decides: no configuration file, no variable. Copies, because hard links into the cache
    # would be one file under two names for the packer.
    command = [micromamba, "create", "--yes", "--no-rc", "--no-env", "--platform", "linux-64", "--no-pyc"]
    command += ["--always-copy", "--safety-checks", "enabled", "--root-prefix", str(root), "--prefix", str(prefix)]
    command += ["--file", str(listing)]
    work.run(command, what="creating the environment", environment=isolated(work))


def _compare_hashes(packages: list[dict[str, str]], cache: Path, work: Work) -> None:
    """Needed because micromamba ignores a hash whose form it does not support."""
    fetched = {path.name: path for path in _package_files(cache)}
    for package in packages:
        name = package["url"].rpartition("/")[2]
        path = fetched.get(name) or fetched.get(unquote(name))
        if path is None:
            work.warn(f"micromamba kept no file of {name}, so only micromamba itself compared the hash")
            continue
        found = digest_of(path, work.stop, package["algorithm"])
        if found != package["digest"]:
            raise BuildError(
                f"{name} has the {package['algorithm']} {found}, but the lock file has {package['digest']}, because "
                "the channel serves another file now: lock again, and review the changes"
            )


def _package_files(cache: Path) -> Iterator[Path]:
    """The cache may have a directory for each channel. Directories of unpacked packages are left out."""
    for directory, below, names in os.walk(str(cache)):
        if "info" in below:
            below.clear()
            continue
        yield from (Path(directory, name) for name in names if name.endswith((".conda", ".tar.bz2")))


def _compare_python(prefix: Path, work: Work) -> None:
    python = prefix / "bin" / "python"
    if not python.exists():
        raise BuildError("the environment has no bin/python: add python to the lock file")
    lines = work.run(
        [str(python), "-c", "import sys; print('Python %d.%d' % sys.version_info[:2])"],
        what="asking the environment for its Python",
        environment=isolated(work),
    )
    needed = work.probed.get("python") or work.platform.get("python")
    if needed is not None and f"Python {needed}" not in lines:
        raise BuildError(
            f"the environment has {' '.join(lines[-1:])}, but this image has Python {needed}, which would not find "
            f"the packages of the environment: lock python={needed}"
        )
