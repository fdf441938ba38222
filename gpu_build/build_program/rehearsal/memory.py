"""Samples memory while a server runs: of the GPU, of its processes, and in /dev/shm."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import threading
from pathlib import Path
from typing import Any, Iterator

from .processes import children, descendants

__all__ = ["Memory", "sampled_memory", "shared_mib"]

_PERIOD_SECONDS = 0.25
_FIRST_SECONDS = 10.0  # a driver without persistence initialises the GPU for the first program
_QUERY = ["nvidia-smi", "--query-gpu=index,memory.used,driver_version", "--format=csv,noheader,nounits"]
_MIB = 1 << 20
_SHARED = "/dev/shm"  # noqa: S108 - where Python models exchange tensors with the server


class Memory:
    """The memory in use. Of several GPUs, a figure is that of the one with the most in use.

    Attributes:
        others: children of this process whose memory is not the server's.
        driver: the version of the GPU's driver; None without one.
        gpus: how many GPUs have reported memory.
    """

    def __init__(self) -> None:
        self.others = children()
        self.driver: str | None = None
        self.gpus = 0
        self._marks: dict[str, dict[str, float | None]] = {"gpu": {}, "host": {}, "shared": {}}
        self._peaks: dict[str, float] = {}
        self._shared_before = shared_mib()
        self._lock = threading.Lock()

    def mark(self, moment: str) -> None:
        """Record what is in use now, under a name."""
        used = [each for each in map(self.read, _asked_now()) if each is not None]  # the loop's line may be older
        self.gpus = len(used)
        self._marks["gpu"][moment] = max(used, default=None)
        for what, value in self.sample().items():
            self._marks[what][moment] = value

    def sample(self) -> dict[str, float]:
        """Notice a peak of what is not the GPU's, and return what is in use."""
        found = {
            "host": round(sum(map(_private_mib, descendants(self.others))), 1),
            "shared": round(max(0.0, shared_mib() - self._shared_before), 1),
        }
        for what, value in found.items():
            self._peaks[what] = max(value, self._peaks.get(what, 0.0))
        return found

    def read(self, line: str) -> int | None:
        """Take a line of `nvidia-smi`, notice a peak, and return what is in use."""
        _, _, rest = line.partition(",")
        used, _, driver = rest.partition(",")
        if not used.strip().isdigit():  # an error, or [N/A] of a GPU that is divided
            return None
        self.driver = driver.strip()
        with self._lock:  # two threads come here
            self._peaks["gpu"] = max(int(used), self._peaks.get("gpu", 0.0))
        return int(used)

    @property
    def has_gpu(self) -> bool:
        """Whether `nvidia-smi` has reported memory."""
        return "gpu" in self._peaks

    @property
    def gpu_peak(self) -> float | None:
        """The most memory of a GPU that was in use, in MiB."""
        return self._peaks.get("gpu")

    def figures(self) -> dict[str, Any]:
        """The figures in MiB: `gpu` (None without a GPU), `host` and `shared`, each at its marks and at its `peak`."""
        rows: dict[str, Any] = {what: {**marks, "peak": self._peaks.get(what)} for what, marks in self._marks.items()}
        rows["shared"]["size"] = round(shared_mib(total=True), 1)
        return {**rows, "gpu": rows["gpu"] if self.has_gpu else None}


@contextlib.contextmanager
def sampled_memory() -> Iterator[Memory]:
    """The memory of what this process starts while this lasts, sampled four times a second."""
    every = f"--loop-ms={_PERIOD_SECONDS * 1000:.0f}"
    try:
        smi = subprocess.Popen(
            [*_QUERY, every], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        smi = None
    memory = Memory()
    ended = threading.Event()
    threads = [threading.Thread(target=_sample, args=(memory, ended), daemon=True)]
    if smi is not None:
        threads.append(threading.Thread(target=_follow, args=(smi, memory), daemon=True))
    for thread in threads:
        thread.start()
    try:
        memory.mark("before")
        yield memory
    finally:
        ended.set()
        if smi is not None:
            smi.kill()
        for thread in threads:
            thread.join(_FIRST_SECONDS)
        if smi is not None and smi.stdout is not None and not threads[-1].is_alive():  # else the driver hangs
            smi.wait()
            smi.stdout.close()


def _asked_now() -> list[str]:
    try:
        done = subprocess.run(
            _QUERY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_FIRST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode("ascii", "replace").splitlines()


def _sample(memory: Memory, ended: threading.Event) -> None:
    while not ended.wait(_PERIOD_SECONDS):
        memory.sample()


def _follow(smi: subprocess.Popen[bytes], memory: Memory) -> None:
    assert smi.stdout is not None  # for the type checker: it is a pipe
    for line in smi.stdout:
        memory.read(line.decode("ascii", "replace"))


def _private_mib(process: int) -> float:
    """What a process shares with no other: libraries and /dev/shm are not counted."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
    except OSError:  # it has ended
        return 0.0
    return (int(resident) - int(shared)) * resource.getpagesize() / _MIB


def shared_mib(*, total: bool = False) -> float:
    """How much of /dev/shm is in use, or its size, in MiB."""
    try:
        found = os.statvfs(_SHARED)
    except OSError:
        return 0.0
    return (found.f_blocks if total else found.f_blocks - found.f_bfree) * found.f_frsize / _MIB
