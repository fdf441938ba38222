"""Writes the table of trtexec's options: `python tools/trtexec_flags.py CLONE_OF_NVIDIA_TENSORRT`.

trtexec reads its options in samples/common/sampleOptions.cpp. This reads that file at the tag of every release and
notes for each option which releases have it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

SOURCE = "samples/common/sampleOptions.cpp"
TABLE = Path(__file__).parents[1] / "constructs/cdk_triton/artifacts/recipes/data/trtexec_flags.json"
# The first releases of the table are older than any that a recipe builds with, so that "since" means something.
OLDEST = (8, 4)
ABOUT = (
    "The command-line options of trtexec: option -> the releases that have it, as runs of [first, last]. An option "
    "with a value, such as --a=b, tells which releases take that value, in lower case."
)
VALUES = {"--hardwareCompatibilityLevel": ("ampere+", "samecomputecapability")}
# Classes in the same file that read the options of other programs or of task files.
FOREIGN = re.compile(r"^void (?:SafeBuilderOptions|TaskInferenceOptions)::parse\(.*?^}", re.MULTILINE | re.DOTALL)


def main(clone: Path) -> None:
    """Read every tag and write the table."""
    tags = {version: tag for tag in _git(clone, "tag").split() if (version := _version(tag)) and version >= OLDEST}
    versions = sorted(version for version in tags if version[0] != 9)  # 9.x is for other machines than servers
    known = {version: _options(_git(clone, "show", f"{tags[version]}:{SOURCE}")) for version in versions}
    flags = {name: _ranges(name, versions, known) for name in sorted(set().union(*known.values()))}
    table = {
        "about": ABOUT,
        "retrieved": datetime.now(UTC).date().isoformat(),
        "sources": [f"https://github.com/NVIDIA/TensorRT, {SOURCE} at the tags of these releases"],
        "releases": [_name(version) for version in versions],
        "flags": flags,
    }
    head = json.dumps({key: value for key, value in table.items() if key != "flags"}, indent=2)[:-2]
    rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in flags.items())
    TABLE.write_text(f'{head},\n  "flags": {{\n{rows}\n  }}\n}}\n', encoding="utf-8")


def _git(clone: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", str(clone), *command], capture_output=True, text=True, check=True)  # noqa: S607
    return done.stdout


def _version(tag: str) -> tuple[int, ...] | None:
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.(\d+))?", tag)
    if match is None or int(match[1]) >= 19:  # tags such as 21.03 are of containers
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0)


def _options(source: str) -> set[str]:
    source = FOREIGN.sub("", source)
    found = set(re.findall(r'"(--[A-Za-z0-9]+)"', source))
    for option, values in VALUES.items():
        found |= {f"{option}={value}" for value in values if f'== "{value}"' in source}
    return found


def _ranges(name: str, versions: list[tuple[int, ...]], known: dict[tuple[int, ...], set[str]]) -> list[list[str]]:
    """The runs of releases that have an option, each by its first and its last one."""
    runs: list[list[str]] = []
    is_run = False
    for version in versions:
        if name not in known[version]:
            is_run = False
        elif is_run:
            runs[-1][1] = _name(version)
        else:
            runs.append([_name(version)] * 2)
            is_run = True
    return runs


def _name(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
