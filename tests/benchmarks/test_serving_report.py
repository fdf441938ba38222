"""The memory of a process is measured while its threads and children come and go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROGRAM = """
import _thread, subprocess, sys, time
CHILD = "import sys; b = bytearray(64_000_000); print('ready', flush=True); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", CHILD])
while True:
    for _ in range(20):
        _thread.start_new_thread(time.sleep, (0.001,))
    time.sleep(0.002)
"""


@pytest.mark.slow
def test_a_thread_that_ends_meanwhile_hides_neither_its_process_nor_the_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    from _serving_report import tree_memory

    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            measured = [tree_memory(process.pid) for _ in range(300)]
        finally:
            process.kill()  # the child ends with its standard input
    assert min(measured) > 64
    assert tree_memory(process.pid) == 0
