"""Runs a command to its end, and writes the processor time of all its processes to a file: `FILE COMMAND ...`.

`getrusage` counts a process only after its parent has waited for it. Python's forkserver, whose workers do the checks,
outlives the command that started it, so nobody waits for it. Here it becomes a child of this process instead.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h."""


def main(written: Path, command: list[str]) -> int:
    """Return the exit status of the command."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    status = subprocess.call(command)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    written.write_text(str(used.ru_utime + used.ru_stime), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
