"""The published way to add an ensemble to a multi-model endpoint, as examples for SageMaker and Triton have it.

The repository is copied and edited, `tar -czf` packs it, and `aws s3 cp` uploads it, for one ensemble after the other.
The AWS CLI has an environment of its own, which is made once and kept in the cache. Its start is measured by itself, so
that a reader knows how much of the time is Python's. `aws --version` imports less than `aws s3 cp` does, so the start
takes a little longer in truth.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Seconds", "aws_cli", "seconds_each"]

VERSION = "1.46.2"


class Seconds(NamedTuple):
    """The seconds for one ensemble, and those of them in which the AWS CLI starts."""

    all: float
    start: float


def aws_cli() -> Path:
    """The AWS CLI."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdk-triton/benchmarks"
    kept = cache / f"awscli-{VERSION}"
    if not kept.exists():
        print(f"installing the AWS CLI {VERSION} into {kept}, once ...", file=sys.stderr)
        work = kept.with_suffix(".partial")
        shutil.rmtree(work, ignore_errors=True)
        subprocess.run(["uv", "venv", "--quiet", "--relocatable", "--python", sys.executable, work], check=True)
        python = str(work / "bin/python")
        install = ["uv", "pip", "install", "--quiet", "--python", python, f"awscli=={VERSION}"]
        subprocess.run(install, check=True)
        work.rename(kept)
    return kept / "bin/aws"


def seconds_each(repositories: list[Path], bucket: str, work: Path, environment: Mapping[str, str]) -> Seconds:
    """The average over these repositories."""
    command, seconds, starts = aws_cli(), 0.0, 0.0
    for repository in repositories:
        began = time.perf_counter()
        copy, archive = work / repository.name, work / f"{repository.name}.tar.gz"
        shutil.copytree(repository, copy)
        for config in copy.glob("*/config.pbtxt"):
            config.write_text(config.read_text(encoding="utf-8") + "version_policy { latest { } }\n", encoding="utf-8")
        subprocess.run(["tar", "-czf", archive, "-C", copy, "."], check=True)
        place = f"s3://{bucket}/published/{archive.name}"
        subprocess.run([command, "s3", "cp", "--quiet", archive, place], env=environment, check=True)
        packed = time.perf_counter()
        subprocess.run([command, "--version"], env=environment, check=True, stdout=subprocess.DEVNULL)
        seconds, starts = seconds + packed - began, starts + time.perf_counter() - packed
    return Seconds(seconds / len(repositories), starts / len(repositories))
