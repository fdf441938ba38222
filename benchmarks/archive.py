"""The archive writer against `tar -czf`: time, size and peak memory on 512 MB of weights.

The weights are what gzip finds in a trained network: float32, normally distributed, seeded. Both programs pack the same
directory, in turns, so that a busy moment of the machine meets both.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _figures import progress, report
from cdk_triton.artifacts import write_archive

ROUNDS = 3

# In a process of its own: a child of a process that holds the weights would inherit its peak memory.
GENERATE = """
import sys
import numpy as np
generator = np.random.default_rng(0)
with open(sys.argv[1], "wb") as weights:
    for _ in range(128):
        weights.write((generator.standard_normal(1 << 20, dtype=np.float32) * np.float32(0.02)).tobytes())
"""

PACK = """
import resource, sys
from cdk_triton.artifacts import write_archive
write_archive(sys.argv[1], sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        work = Path(directory)
        repository = work / "repository"
        version = repository / "network" / "1"
        version.mkdir(parents=True)
        (repository / "network" / "config.pbtxt").write_text('backend: "onnxruntime"\n', encoding="utf-8")
        progress("archive: generating 512 MB of weights ...")
        subprocess.run([sys.executable, "-c", GENERATE, version / "model.onnx"], check=True)

        ours, tars = work / "ours.tar.gz", work / "tar.tar.gz"
        seconds: dict[str, list[float]] = {"ours": [], "tar": []}
        for number in range(1, ROUNDS + 1):
            progress(f"archive: round {number} of {ROUNDS} (about 20 s) ...")
            seconds["ours"].append(timed(lambda: write_archive(repository, ours)))
            seconds["tar"].append(
                timed(lambda: subprocess.run(["tar", "-czf", tars, "-C", repository, "."], check=True))
            )
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        progress(f"archive: {medians['ours']:.2f} s, tar -czf {medians['tar']:.2f} s (medians)")
        report("archive.speed", medians["tar"] / medians["ours"], "times as fast as tar -czf", at_least=15)
        report("archive.size", ours.stat().st_size / tars.stat().st_size, "times the size of tar -czf", at_most=1.01)

        packed = subprocess.run(
            [sys.executable, "-c", PACK, repository, ours], check=True, capture_output=True, text=True
        )
        report("archive.peak_memory", int(packed.stdout) / 1e6, "MB", at_most=100)


def timed(action: Callable[[], object]) -> float:
    """Seconds of wall-clock time."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
