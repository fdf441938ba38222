"""The artifact key of a repository of 1 GB, the second time: what every `cdk ls`, `diff` and `deploy` pays.

Each time is measured in a process of its own that has imported the library, as an app does at synth, and is that of
reading the repository and computing the key. The memory of digests is in a directory of this run's own. The first time,
and one that hashes all (CDK_TRITON_NO_CACHE), are printed beside it and have to give the same key.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _figures import progress, report

ROUNDS = 5
FILES = 4
FILE_BYTES = 250_000_000

KEY = """
import json, sys, time
from cdk_triton.artifacts import artifact_key
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository
platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
start = time.perf_counter()
key = artifact_key(ModelRepository.from_directory(sys.argv[1]), platform)
print(json.dumps([time.perf_counter() - start, key]))
"""

CONFIG = """
backend: "python"
max_batch_size: 8
input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [4] }]
"""


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        repository, cache = Path(directory) / "repository", Path(directory) / "cache"
        progress("keys: writing 1 GB of weights ...")
        write(repository)
        first, key = keyed(repository, cache)
        seconds = []
        for _ in range(ROUNDS):
            again, same = keyed(repository, cache)
            seconds.append(again)
            check(same == key)
        hashed, same = keyed(repository, cache, CDK_TRITON_NO_CACHE="1")
        check(same == key)
        median = statistics.median(seconds)
        progress(f"keys: {first:.2f} s first, {median * 1000:.1f} ms again, {hashed:.2f} s without the cache")
        report("keys.again", median, "s for 1 GB", at_most=0.2)


def write(repository: Path) -> None:
    """A repository that nobody touched lately."""
    for number in range(FILES):
        version = repository / f"model{number}" / "1"
        version.mkdir(parents=True)
        (version.parent / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
        weights = version / "weights.bin"
        with weights.open("wb") as file:
            block = os.urandom(1_000_000)
            for _ in range(FILE_BYTES // len(block)):
                file.write(block)
    past = time.time() - 60
    for path in repository.rglob("*"):
        os.utime(path, (past, past))


def keyed(repository: Path, cache: Path, **environment: str) -> tuple[float, str]:
    """Seconds and the key, in a new process."""
    command = [sys.executable, "-c", KEY, str(repository)]
    everything = os.environ | {"XDG_CACHE_HOME": str(cache)} | environment
    ran = subprocess.run(command, env=everything, check=True, capture_output=True, text=True)
    seconds, key = json.loads(ran.stdout)
    return float(seconds), str(key)


def check(same: bool) -> None:
    """End a run that compares what is not the same."""
    if not same:
        raise SystemExit("keys: the key has changed")


if __name__ == "__main__":
    main()
