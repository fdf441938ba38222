"""The published way to add an ensemble to a multi-model endpoint, as examples for SageMaker and Triton have it.

The repository is copied and edited, `tar -czf` packs it, and `aws s3 cp` uploads it, for one ensemble after the other.
The AWS CLI has an environment of its own, which is made once and kept in the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

__all__ = ["aws_cli", "seconds_each"]

VERSION = "1.46.2"


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


def seconds_each(repositories: list[Path], bucket: str, work: Path, environment: Mapping[str, str]) -> float:
    """The seconds that it takes for each of these repositories."""
    command = aws_cli()
    start = time.perf_counter()
    for repository in repositories:
        copy, archive = work / repository.name, work / f"{repository.name}.tar.gz"
        shutil.copytree(repository, copy)
        for config in copy.glob("*/config.pbtxt"):
            config.write_text(config.read_text(encoding="utf-8") + "version_policy { latest { } }\n", encoding="utf-8")
        subprocess.run(["tar", "-czf", archive, "-C", copy, "."], check=True)
        place = f"s3://{bucket}/published/{archive.name}"
        subprocess.run([command, "s3", "cp", "--quiet", archive, place], env=environment, check=True)
    return (time.perf_counter() - start) / len(repositories)
