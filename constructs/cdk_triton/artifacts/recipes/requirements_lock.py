"""Requirements files in pip's hash-checking form: every package pinned with `==` and at least one SHA-2 hash.

https://pip.pypa.io/en/stable/topics/secure-installs/#hash-checking-mode; `uv pip compile --generate-hashes` and
`pip-compile --generate-hashes` write such files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from cdk_triton.errors import ConfigurationError

__all__ = ["PinnedPackage", "RequirementProblem", "lock_command", "pinned_packages", "read_requirements"]

_SHOWN_PROBLEMS: Final = 5

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[A-Za-z0-9._,\s-]*\])?\s*"
    r"(?:===?\s*(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)|@\s*(?P<url>\S+))\s*(?:;.*)?"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HASH = re.compile(r"--hash(?:=|\s+)(?P<algorithm>[a-z0-9]+):(?P<digest>[0-9a-f]+)(?=\s|$)")
_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}
_COMMENT = re.compile(r"(?:^|\s)#.*")
# The options for the source of packages. Any other changes what is installed, or whether hashes are checked.
_INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url")


@dataclass(frozen=True)
class PinnedPackage:
    """One package of a requirements file.

    Attributes:
        line: the line where the package's entry begins, counted from 1.
        name: the package's name, in lower case, with `-` for `.` and `_`.
        version: the package's version; None where a URL gives the package.
    """

    line: int
    name: str
    version: str | None


@dataclass(frozen=True)
class RequirementProblem:
    """A fault of a line.

    Attributes:
        line: counted from 1.
        reason: the fault.
    """

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


def lock_command(path: str, *options: str) -> str:
    """The command that writes a requirements file with hashes from the `.in` file beside it, for a message."""
    name = PurePosixPath(path)
    words = ("uv", "pip", "compile", "--generate-hashes", *options, name.with_suffix(".in").name, "-o", name.name)
    return f"`{' '.join(words)}`"


def pinned_packages(text: str, path: str, recipe: str, command: str) -> tuple[PinnedPackage, ...]:
    """The packages of a requirements file that a recipe names.

    Args:
        text: the content of the requirements file.
        path: the file.
        recipe: the recipe, for the message.
        command: the command that writes the file.

    Raises:
        ConfigurationError: not every package is pinned with its hash; up to five lines are named.
    """
    packages, problems = read_requirements(text)
    if problems:
        shown = "; ".join(map(str, problems[:_SHOWN_PROBLEMS]))
        more = f"; and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
        raise ConfigurationError(
            f"the requirements file {PurePosixPath(path)} of {recipe} does not pin every package with its hash: "
            f"{shown}{more}; write the file with {command} (or pip-compile --generate-hashes)"
        )
    return packages


def read_requirements(text: str) -> tuple[tuple[PinnedPackage, ...], tuple[RequirementProblem, ...]]:
    """The packages of a requirements file, and what is wrong with its other lines."""
    packages: list[PinnedPackage] = []
    problems: list[RequirementProblem] = []
    for number, line in _logical_lines(text):
        found = _option(line) if line.startswith("-") else _requirement(number, line)
        if isinstance(found, PinnedPackage):
            packages.append(found)
        elif found is not None:
            problems.append(RequirementProblem(number, found))
    return tuple(packages), tuple(problems)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """As pip joins them: a backslash at the end continues a line, and comments are removed."""
    parts: list[str] = []
    started = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not parts:
            started = number
        stripped = line.rstrip()
        if stripped.endswith("\\") and not stripped.lstrip().startswith("#"):
            parts.append(stripped[:-1])
            continue
        parts.append(stripped)
        whole = _COMMENT.sub("", " ".join(parts)).strip()
        parts = []
        if whole:
            yield started, whole
    whole = _COMMENT.sub("", " ".join(parts)).strip()
    if whole:
        yield started, whole


def _option(line: str) -> str | None:
    name, _, value = line.replace("=", " ", 1).partition(" ")
    value = value.strip()
    if name not in _INDEX_OPTIONS:
        return f"the option {name} cannot be used here: remove the option, and list every package with its hash"
    return _wrong_url(value)


def _requirement(number: int, line: str) -> PinnedPackage | str:
    hashes = list(_HASH.finditer(line))
    rest = _HASH.sub("", line).strip()
    match = _PIN.fullmatch(rest)
    if match is None:
        name = _NAME.match(rest)
        if "--hash" in rest:
            return f"a hash of {name[0] if name else repr(rest)} cannot be read: write --hash=sha256:<64 digits>"
        if name is None or "/" in rest.split(";")[0]:
            return f"{rest.split('@')[-1]!r} is not a package with a version"
        return f"{name[0]!r} has no pinned version"
    wrong = None if match["url"] is None else _wrong_url(match["url"])
    if wrong is not None:
        return wrong
    if not hashes:
        return f"{match['name']!r} has no hash"
    for each in hashes:
        if len(each["digest"]) != _DIGITS.get(each["algorithm"]):
            return (
                f"the hash {each['algorithm']}:{each['digest']} of {match['name']} is not a SHA-256, SHA-384 or SHA-512"
            )
    return PinnedPackage(number, re.sub(r"[-_.]+", "-", match["name"]).lower(), match["version"])


def _wrong_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url!r} is not a URL"
    if "@" in parts.netloc:
        # Never shown: it is a secret.
        return "the URL contains a user or a token, which must not be in a repository: remove the user or token"
    if parts.scheme != "https" or not parts.netloc:
        return f"{url!r} is not an https URL, but builds download over https only"
    return None
