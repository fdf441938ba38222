"""For which machine and Python the compiled modules of packages are, and which packages are installed.

The name of a module has a tag (PEP 3149), such as `core.cpython-312-x86_64-linux-gnu.so`. A module of the stable
interface (`core.abi3.so`) shows its machine only in its first bytes. A `.so` without a tag is taken for a library, of
which packages bring some for other machines.
"""

from __future__ import annotations

import csv
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from cdk_triton.python_models.reader.environment_packages import MAX_BYTES
from cdk_triton.python_models.reader.packed_environment import DAMAGED, open_archive

__all__ = [
    "CompiledModule",
    "Distribution",
    "PackedFiles",
    "compiled_module",
    "distribution",
    "head_of",
    "is_ignored",
    "locked_torch",
    "packed_files",
    "recorded_files",
]

_HEAD_BYTES: Final = 20
_MODULE = re.compile(r"[^.]+(?:\.(?P<tag>(?:cpython|cp|pypy)-?\d[\w-]*|abi3))?\.(?P<suffix>so|pyd)")
_CPYTHON = re.compile(r"(?:cpython-|cp)3(?P<minor>\d+)")
_LINUX = re.compile(r"-(?P<processor>\w+)-linux-(?P<library>gnu|musl)")
_INFO = re.compile(r"(?:^|/)(?P<name>[^/]+?)-(?P<version>\d[^/-]*)\.dist-info/METADATA$")
_CONDA = re.compile(r"(?:^|/)conda-meta/(?P<name>[^/]+)-(?P<version>[^/-]+)-(?P<build>[^/-]+)\.json$")

_LOCKED_WHEEL = re.compile(r"^torch==(?P<version>[^\s;\\]+)", re.MULTILINE)
_LOCKED_CONDA = re.compile(r"/pytorch-(?P<version>[^/-]+)-(?P<build>[^/-]+)\.(?:conda|tar\.bz2)")
_MAX_LOCK_BYTES = 1 << 20
_MAX_RECORD_BYTES: Final = 16 << 20

# https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html, e_machine at byte 18; <mach-o/loader.h>
_ELF = {62: "x86_64", 183: "aarch64"}
_MACH_O = (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


@dataclass(frozen=True)
class CompiledModule:
    """A module in machine code.

    Attributes:
        path: its file.
        system: such as `Linux`, `macOS` or `Windows`; None if neither its name nor its first bytes show it.
        processor: such as `x86_64`; None if not known.
        python: the only Python that can import it, `3.12`; None for the stable interface, and if not known.
    """

    path: PurePosixPath
    system: str | None
    processor: str | None
    python: str | None


@dataclass(frozen=True)
class Distribution:
    """An installed package.

    Attributes:
        name: its name, in small letters.
        version: its version, `2.5.1+cpu`.
        build: the build of a conda package; "" for a wheel.
        record: the file that records it.
    """

    name: str
    version: str
    build: str
    record: PurePosixPath


@dataclass(frozen=True)
class PackedFiles:
    """What an archive with an environment contains, as far as its list of members does not show it.

    Attributes:
        modules: the compiled modules that Python may import.
        distributions: the installed packages.
        has_activate: whether it has the script `bin/activate`.
        lost_link: the first hard link to a file that is not in the archive before it, and that file; None without one.
    """

    modules: tuple[CompiledModule, ...]
    distributions: tuple[Distribution, ...]
    has_activate: bool
    lost_link: tuple[str, str] | None


def compiled_module(path: PurePosixPath, head: Callable[[], bytes]) -> CompiledModule | None:
    """The module in a file; None if the file is something else.

    Args:
        path: the file.
        head: gives the first bytes of the file; called only if the name does not show the machine.
    """
    found = _MODULE.fullmatch(path.name)
    if found is None or (found["tag"] is None and found["suffix"] == "so"):
        return None
    tag = found["tag"] or ""
    version = _CPYTHON.match(tag)
    python = "PyPy" if tag.startswith("pypy") else None if version is None else f"3.{version['minor']}"
    if found["suffix"] == "pyd":
        return CompiledModule(path, "Windows", None, python)
    if (linux := _LINUX.search(tag)) is not None:
        of_musl = linux["library"] == "musl"
        return CompiledModule(path, "Linux with musl" if of_musl else "Linux", linux["processor"], python)
    system, processor = ("macOS", None) if "darwin" in tag else _machine(head())
    return CompiledModule(path, system, processor, python)


def is_ignored(module: CompiledModule, has: Callable[[PurePosixPath], bool]) -> bool:
    """Whether Python imports a source beside a module that is not for it, because it does not look for such a name.

    Args:
        module: the module.
        has: whether there is a file.
    """
    stem, _, tag = module.path.name.partition(".")
    return not tag.startswith("abi3.") and has(module.path.with_name(f"{stem}.py"))


def distribution(path: PurePosixPath) -> Distribution | None:
    """The package that a file records as installed; None for another file."""
    text = str(path)
    if (found := _INFO.search(text)) is not None:
        return Distribution(found["name"].lower(), found["version"], "", path)
    if (found := _CONDA.search(text)) is not None:
        return Distribution(found["name"].lower(), found["version"], found["build"], path)
    return None


def recorded_files(path: Path) -> frozenset[str]:
    """The files that a `RECORD` lists, as it writes their paths; none if it cannot be read.

    Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-record-file
    """
    try:
        if path.stat().st_size > _MAX_RECORD_BYTES:
            return frozenset()
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            return frozenset(row[0] for row in csv.reader(file) if row)
    except (OSError, csv.Error):
        return frozenset()


def head_of(path: Path) -> bytes:
    """The first bytes of a file, which show its machine; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def locked_torch(path: Path) -> Distribution | None:
    """The PyTorch that a lock file of a recipe lists, of pip's or of conda's explicit form; None if it lists none."""
    try:
        if path.stat().st_size > _MAX_LOCK_BYTES:
            return None
        text = path.read_text(errors="replace")
    except OSError:
        return None
    record = PurePosixPath(path.name)
    if (wheel := _LOCKED_WHEEL.search(text)) is not None:
        return Distribution("torch", wheel["version"], "", record)
    if (conda := _LOCKED_CONDA.search(text)) is not None:
        return Distribution("pytorch", conda["version"], conda["build"], record)
    return None


def packed_files(path: Path) -> PackedFiles | None:
    """Read an archive to its end; None if it is damaged, or too large for that."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        with open_archive(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            return _read(archive)
    except (OSError, *DAMAGED):
        return None


def _read(archive: tarfile.TarFile) -> PackedFiles:
    modules: list[CompiledModule] = []
    distributions: list[Distribution] = []
    names: set[str] = set()
    lost: tuple[str, str] | None = None
    for member in archive:
        path = PurePosixPath(member.name)
        target = PurePosixPath(member.linkname)
        if member.islnk() and lost is None and not target.is_absolute() and str(target) not in names:
            lost = member.name, member.linkname
        names.add(str(path))
        if not (member.isreg() or member.islnk()):
            continue
        if (installed := distribution(path)) is not None:
            distributions.append(installed)
        if (module := compiled_module(path, partial(_head, archive, member))) is not None:
            modules.append(module)
    modules = [each for each in modules if not is_ignored(each, lambda path: str(path) in names)]
    return PackedFiles(tuple(modules), tuple(distributions), "bin/activate" in names, lost)


def _head(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member) if member.isreg() else None
    return b"" if file is None else file.read(_HEAD_BYTES)


def _machine(head: bytes) -> tuple[str | None, str | None]:
    """The system and the processor of a file in machine code, by its first bytes; None for what they do not show."""
    if head.startswith(b"\x7fELF") and len(head) == _HEAD_BYTES:
        return "Linux", _ELF.get(int.from_bytes(head[18:20], "little"))
    return ("macOS", None) if head.startswith(_MACH_O) else (None, None)
