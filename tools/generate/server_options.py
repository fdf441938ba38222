"""The table of tritonserver's options, from a clone of triton-inference-server/server: SOURCES/server.

tritonserver reads its options in src/command_line_parser.cc. This reads that file on the branch of every release, and
how each value is parsed. The same branches have the start script of SageMaker's containers and the front end behind it,
of which the table has the environment variables. The table is checked by its hash where there is no clone.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from tools.generate import Files, GenerateError, Generator
from tools.generate._tables import canonical, checked_files, content_sha256, existing

PARSER = "src/command_line_parser.cc"
FRONT_END = ("docker/sagemaker/serve", "src/sagemaker_server.cc", "src/sagemaker_server.h")
TABLE = "constructs/cdk_triton/triton/data/server_options.json"
ABOUT = (
    "The options of tritonserver, and the environment variables that SageMaker's start script and front end read: each "
    "with the releases that have it, as runs of [first, last]. A run that ends with the last of `releases` is open. An "
    "option has one row for each way in which its value is parsed. `options` begins with the first release whose start "
    "script passes additional arguments on."
)
# The start script passes SAGEMAKER_TRITON_ADDITIONAL_ARGS on from this release.
FIRST = "23.07"
_BRANCH = re.compile(r"(?:.*/)?r(2\d\.\d\d)")
_VARIABLE = re.compile(r"SAGEMAKER_(?:TRITON_[A-Z_]+|MULTI_MODEL|BIND_TO_PORT|SAFE_PORT_RANGE)\b")
_OPTION = re.compile(r'\{\s*(OPTION_\w+),\s*"([a-z0-9-]+)",\s*(Option::\w+|"[^"]*")')
_CASE = re.compile(r"case (OPTION_\w+):")
_PAIR = re.compile(r'ParsePairOption<(\w+), (\w+)>\(optarg, "(.)"\)')
_NUMBERS = {"bool": "bool", "int": "int32", "int64_t": "int64", "double": "double"}
_PARTS = {"int": "int32", "uint64_t": "uint64", "size_t": "uint64", "double": "double"}


def table_of(clone: Path, committed: Mapping[str, Any]) -> dict[str, Any]:
    """Read the branch of every release in a clone.

    Args:
        clone: the repository triton-inference-server/server with its branches.
        committed: the table as it is. Its date is kept if the clone has the same input.

    Raises:
        GenerateError: the folder is not such a clone.
    """
    branches = _git(clone, "branch", "--all", "--format=%(refname:short)").split()
    found = {match[1]: branch for branch in branches if (match := _BRANCH.fullmatch(branch))}
    scripts = {
        release: "".join(filter(None, (_show(clone, found[release], path) for path in FRONT_END)))
        for release in sorted(found)
        if _show(clone, found[release], FRONT_END[0]) is not None
    }
    parsers = {
        release: source
        for release in scripts
        if release >= FIRST and (source := _show(clone, found[release], PARSER)) is not None
    }
    if not parsers:
        raise GenerateError(
            f"{clone} has no branches of Triton's releases: clone triton-inference-server/server with all branches "
            "into this folder"
        )
    read = hashlib.sha256()
    for release in scripts:
        read.update(f"{release}\0{scripts[release]}\0{parsers.get(release, '')}\0".encode())
    options = {release: _options(source) for release, source in parsers.items()}
    variables = {release: set(_VARIABLE.findall(script)) for release, script in scripts.items()}
    data = {
        "releases": list(scripts),
        "options": {
            name: [
                {"kind": kind, "releases": _runs(options, {at for at in options if options[at].get(name) == kind})}
                for kind in dict.fromkeys(options[release][name] for release in options if name in options[release])
            ]
            for name in sorted(set().union(*options.values()))
        },
        "variables": {
            name: _runs(scripts, {at for at in scripts if name in variables[at]})
            for name in sorted(set().union(*variables.values()))
        },
    }
    is_same = committed.get("input_sha256") == read.hexdigest()
    return {
        "about": ABOUT,
        "retrieved": committed["retrieved"] if is_same else datetime.now(UTC).date().isoformat(),
        "sources": [
            f"https://github.com/triton-inference-server/server, {', '.join((PARSER, *FRONT_END))} at the branches "
            "of these releases"
        ],
        "generator": "tools/generate/server_options.py",
        "input_sha256": read.hexdigest(),
        "content_sha256": content_sha256(data),
        **data,
    }


def _git(clone: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", str(clone), *command], capture_output=True, text=True)  # noqa: S607
    if done.returncode != 0:
        raise GenerateError(f"{clone} cannot be read: {done.stderr.strip()}")
    return done.stdout


def _show(clone: Path, branch: str, path: str) -> str | None:
    """A file of a branch; None where the branch does not have it."""
    return _git(clone, "show", f"{branch}:{path}") if _git(clone, "ls-tree", branch, path) else None


def _options(source: str) -> dict[str, str]:
    """Option → how its value is parsed."""
    marks = [*_CASE.finditer(source)]
    cases = {
        mark[1]: source[mark.end() : following.start() if following is not None else len(source)].partition("\n#endif")[
            0
        ]
        for mark, following in zip(marks, [*marks[1:], None], strict=True)
    }
    return {
        name: "flag" if argument == "Option::ArgNone" else _kind(cases.get(constant, ""))
        for constant, name, argument in _OPTION.findall(source)
    }


def _kind(case: str) -> str:
    """How the parser reads a value, from the lines of the option's `case`."""
    if "ParseIntBoolOption" in case:
        return "bool|int32"
    if match := _PAIR.search(case):
        return f"{_PARTS[match[1]]}{match[3]}{_PARTS[match[2]]}"
    if match := re.search(r"Parse(\w+?)Option\(", case):
        return re.sub(r"(?<!^)(?=[A-Z])", "-", match[1]).lower()
    if match := re.search(r"ParseOption<(\w+)>", case):
        return _NUMBERS[match[1]] + _bounds(case)
    if choices := re.findall(r'== "(\w+)"', case):
        return ("choice:" if "tolower" in case else "exact:") + "|".join(choices)
    return "text" if "strlen(optarg) == 0" not in case else "word"


def _bounds(case: str) -> str:
    """` from A to B`, where the parser rejects other numbers itself."""
    if match := re.search(r"< (\d+)\s*\|\|.*?> (\d+)", case, re.DOTALL):
        return f" from {match[1]} to {match[2]}"
    return " from 1" if "<= 0" in case else ""


def _runs(releases: Iterable[str], having: Collection[str]) -> list[list[str]]:
    """The runs of the releases that have something, each by the first and the last one."""
    runs: list[list[str]] = []
    is_run = False
    for release in releases:
        if release not in having:
            is_run = False
        elif is_run:
            runs[-1][1] = release
        else:
            runs.append([release] * 2)
            is_run = True
    return runs


def _from_clone(clone: Path) -> Files:
    return {TABLE: canonical(table_of(clone, existing(TABLE)))}


GENERATOR = Generator(partial(checked_files, TABLE), source="server", from_source=_from_clone)
