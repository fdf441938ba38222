"""Explicit lock files of conda: one URL with its hash per package, after a line `@EXPLICIT`.

`conda-lock --kind explicit` and `micromamba env export --explicit` write `URL#md5`, `conda list --explicit --sha256`
writes `URL#sha256` (conda: cli/main_list.py, print_explicit). micromamba reads `URL#md5`, `URL#sha256` and
`URL#sha256:…`, and *ignores* any other hash (mamba: libmamba/src/specs/package_info.cpp, from_url).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

__all__ = ["EXPLICIT", "LockFileProblem", "LockedPackage", "read_explicit_lock"]

EXPLICIT: Final = "@EXPLICIT"

_SUBDIRS: Final = ("linux-64", "noarch")
_FILE = re.compile(r"(?P<name>[a-z0-9_.+-]+)-(?P<version>[^-/]+)-(?P<build>[^-/]+)\.(?:conda|tar\.bz2)", re.IGNORECASE)
_MD5 = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"(?:sha256:)?(?P<digest>[0-9a-f]{64})")
_TOKEN = re.compile(r"/t/[^/]+/")


@dataclass(frozen=True)
class LockedPackage:
    """One package of a lock file.

    Attributes:
        line: the line that names the package, counted from 1.
        url: the URL of the package's file, without the hash.
        name: the package's name.
        version: the package's version.
        algorithm: the algorithm of the hash.
        digest: the hash of the package's file, in hexadecimal.
    """

    line: int
    url: str
    name: str
    version: str
    algorithm: Literal["md5", "sha256"]
    digest: str


@dataclass(frozen=True)
class LockFileProblem:
    """A fault of a line.

    Attributes:
        line: counted from 1.
        reason: the fault, and the fix.
    """

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


def read_explicit_lock(text: str) -> tuple[tuple[LockedPackage, ...], tuple[LockFileProblem, ...]]:
    """The packages of a lock file, and what is wrong with its other lines.

    Args:
        text: the content of the file. If `@EXPLICIT` is missing, the first line that is not empty is a problem.
    """
    packages: dict[str, LockedPackage] = {}
    problems: list[LockFileProblem] = []
    has_started = False
    for number, line in _lines(text):
        if line.startswith("#"):
            problems.extend(_wrong_comment(number, line))
        elif line == EXPLICIT:
            has_started = True
        elif not has_started:
            problems.append(
                LockFileProblem(
                    number,
                    f"{line!r} comes before the line {EXPLICIT}: write the file with `conda list --explicit --sha256` "
                    "or `conda-lock --kind explicit`",
                )
            )
            break
        else:
            found = _package(number, line)
            if isinstance(found, LockedPackage) and found.name in packages:
                found = LockFileProblem(
                    number, f"{found.name} is in line {packages[found.name].line} already: keep one of them"
                )
            if isinstance(found, LockedPackage):
                packages[found.name] = found
            else:
                problems.append(found)
    if not packages and not problems:
        problems.append(
            LockFileProblem(
                1, f"no package follows a line {EXPLICIT}: lock again, with the packages of the environment"
            )
        )
    return tuple(packages.values()), tuple(problems)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.strip()


def _wrong_comment(number: int, line: str) -> Iterator[LockFileProblem]:
    words = line.removeprefix("#").split()
    if words[:1] == ["platform:"] and words[1:] != ["linux-64"]:
        yield LockFileProblem(
            number, f"the file is for {' '.join(words[1:])!r}, but the images are linux-64: lock for linux-64"
        )
    elif words[:1] == ["pip"]:  # conda-lock's own; everybody else takes it for a comment
        what = words[1] if len(words) > 1 else "a package"
        yield LockFileProblem(
            number,
            f"{what} comes from pip, but only conda-lock installs pip packages: take the package from a conda channel, "
            "or put its files into the model's directory",
        )
    elif words[:3] == ["no", "URL", "for:"]:
        yield LockFileProblem(number, f"{' '.join(words[3:])} has no URL: install it from a channel and lock again")


def _package(number: int, line: str) -> LockedPackage | LockFileProblem:
    url, separator, fragment = line.partition("#")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return LockFileProblem(number, f"{url!r} is not a URL")
    reason = _wrong_url(url, parts.scheme, host, parts.netloc)
    if reason is not None:
        return LockFileProblem(number, reason)
    subdir, _, file_name = parts.path.rpartition("/")
    subdir = subdir.rpartition("/")[2]
    match = _FILE.fullmatch(file_name)
    if match is None or parts.query:
        return LockFileProblem(number, f"{url!r} is not the URL of a conda package (….conda or ….tar.bz2): lock again")
    if subdir not in _SUBDIRS:
        return LockFileProblem(number, f"{file_name} is for {subdir!r}, but the images are linux-64: lock for linux-64")
    if not separator:
        return LockFileProblem(
            number, f"{file_name} has no hash: lock with conda-lock, or conda list --explicit --sha256"
        )
    name, version = match["name"].lower(), match["version"]
    if _MD5.fullmatch(fragment):
        return LockedPackage(number, url, name, version, "md5", fragment)
    sha256 = _SHA256.fullmatch(fragment)
    if sha256:
        return LockedPackage(number, url, name, version, "sha256", sha256["digest"])
    return LockFileProblem(
        number,
        f"the hash {fragment!r} of {file_name} is neither MD5 (32 hexadecimal digits) nor SHA-256 (64): lock again",
    )


def _wrong_url(url: str, scheme: str, host: str | None, location: str) -> str | None:
    if "@" in location or _TOKEN.search(url):
        # Never shown: it is a secret.
        return "the URL contains a user or a token, which must not be in a repository: remove the user or token"
    if scheme != "https" or not host:
        return f"{url!r} is not an https URL, but builds download over https only: lock from https channels"
    if any(character.isspace() or not character.isprintable() for character in url) or "\\" in url:
        return f"{url!r} has a character that no conda package's URL has"
    return None
