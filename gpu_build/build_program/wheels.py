"""Builds a packed environment from locked wheels: a virtual environment of this image's Python, filled by pip.

The Python backend runs a model in a process that is linked to the image's Python. That Python finds the environment as
it finds any virtual environment: by the `bin/python3` that comes first on PATH, and the `pyvenv.cfg` above it
(https://docs.python.org/3/library/site.html). Through 25.07 the server runs `bin/activate`, which puts it there; from
25.08 on the server does it itself, and only looks whether the script is there (python_backend: src/pb_utils.cc,
`ParseActivationScript`).
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tarfile
from pathlib import Path
from typing import IO, Any, Mapping, Sequence

from .programs import isolated
from .step import BuildError, Report, Work
from .stop import Stop, StoppedError

__all__ = ["build"]

# The server runs it with `source`, from wherever it has unpacked the archive.
_ACTIVATE = """\
VIRTUAL_ENV="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export VIRTUAL_ENV
export PATH="$VIRTUAL_ENV/bin:$PATH"
unset PYTHONHOME
"""
_COMPRESSION = 4  # as that of conda environments


def build(step: Mapping[str, Any], work: Work) -> Report:
    """Make the environment, install what is locked, import numpy in it, and pack it.

    Args:
        step: `requirements`, the file in the repository, and `target`, both relative to the repository.
        work: the step's `Work`.

    Raises:
        BuildError: a package cannot be fetched, has a different hash, has no wheel for this Python, or needs one that
            is not pinned; or numpy cannot be imported.
    """
    _warn_of_other_python(work)
    environment = work.scratch / "environment"
    packages = _movable_environment(environment, work)
    _install(work.repository / step["requirements"], packages, work)
    _import_numpy(environment, packages, work)
    target = work.repository / step["target"]
    target.parent.mkdir(parents=True, exist_ok=True)
    _pack(environment, target, work)
    return {"outputs": [step["target"]], "parity": None}


def _warn_of_other_python(work: Work) -> None:
    """On the local AWS, another Python than the release's packs the environment."""
    needed, found = work.platform.get("python"), work.probed.get("python")
    if work.stand_ins and needed is not None and found != needed:
        work.stand_in("Python " + needed)
        work.warn(
            f"the environment is packed for the Python {found} of this machine, in place of the {needed} of the image"
        )


def _movable_environment(environment: Path, work: Work) -> Path:
    """Return the directory of its packages."""
    # Copies: servers from 26.07 on unpack no link that leads out of the archive.
    venv = [sys.executable, "-m", "venv", "--copies", "--without-pip", str(environment)]
    work.run(venv, what="making the environment", environment=isolated(work))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in environment.iterdir():
        if path.is_symlink():
            path.unlink()  # lib64, which is lib
        elif path.name not in ("bin", "lib", "pyvenv.cfg"):
            shutil.rmtree(str(path))
    programs = environment / "bin"
    for program in programs.iterdir():
        if program.name != "python3":
            program.unlink()
    (programs / "activate").write_text(_ACTIVATE, encoding="utf-8")
    written = (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    home = [line for line in written if line.split(" ")[0] == "home"]
    settings = [*home, "include-system-site-packages = false", f"version = {version}"]
    (environment / "pyvenv.cfg").write_text("\n".join(settings) + "\n", encoding="utf-8")
    return environment / "lib" / f"python{version}" / "site-packages"


def _install(requirements: Path, packages: Path, work: Work) -> None:
    # Without --no-deps: with hashes, pip takes no package that is not pinned, and prints which one is missing.
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    exact = ["--only-binary", ":all:", "--require-hashes", "--no-compile", "--requirement", str(requirements)]
    try:
        # In pip's own environment, which may name an index. Wheels run no code when they are installed.
        work.run([*pip, *exact, "--target", str(packages)], what="installing the packages")
    except StoppedError:
        raise
    except BuildError as error:
        python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        unpinned = _unpinned(error.log)
        if unpinned is not None:
            reason = (
                f"with {python} a package requires {unpinned}, which {requirements.name} does not pin: "
                f"lock {requirements.name} again"
            )
            raise BuildError(reason, error.log) from error
        raise BuildError(
            f"{error.reason}; each package needs a wheel for {python}, the wheel's hash in {requirements.name}, and an "
            "index that the build reaches",
            error.log,
        ) from error
    # Programs, whose first lines name this machine's Python. A model imports packages and starts none of these.
    shutil.rmtree(str(packages / "bin"), ignore_errors=True)


def _unpinned(lines: Sequence[str]) -> str | None:
    """Pip prints the requirement in the line after "These do not:"."""
    for announced, line in zip(lines, lines[1:]):
        if announced.rstrip().endswith("These do not:"):
            return line.split(" from ")[0].strip()
    return None


def _import_numpy(environment: Path, packages: Path, work: Work) -> None:
    if not (packages / "numpy" / "__init__.py").is_file():
        raise BuildError(
            "the environment has no numpy, which the Python backend imports: pin numpy with the other packages"
        )
    python = str(environment / "bin" / "python3")
    work.run([python, "-c", "import numpy"], what="importing numpy in the environment", environment=isolated(work))


def _pack(environment: Path, target: Path, work: Work) -> None:
    """Sorted by path, times and ids 0, fixed modes, one gzip member without name and time."""
    with target.open("wb") as raw, gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packed:
        archive = tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed below
        for path in sorted(environment.rglob("*"), key=str):
            entry = tarfile.TarInfo(path.relative_to(environment).as_posix())
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
                continue
            status = path.stat()
            entry.size, entry.mode = status.st_size, 0o755 if status.st_mode & 0o111 else 0o644
            with path.open("rb") as file:
                archive.addfile(entry, _Stoppable(file, work.stop))
        archive.close()


class _Stoppable:
    """Checks for the end of the program at each read: compressing a library of CUDA takes half a minute."""

    def __init__(self, file: IO[bytes], stop: Stop) -> None:
        self._file = file
        self._stop = stop

    def read(self, size: int = -1) -> bytes:
        """Read a block."""
        self._stop.check()
        return self._file.read(size)
