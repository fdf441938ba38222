"""Runs one command, and kills what it leaves behind; started by `cdk_triton_local.process`, as a script.

Usage: `python _guardian.py LIFELINE LEFTOVERS LIST COMMAND...`, where LIFELINE is the number of the read end of a pipe
whose write end only the owner holds. At the very end, the guardian removes the files of the glob pattern LEFTOVERS, and
the directories that the file LIST names, one in each line. Both may be empty, and LIST need not exist.

The end of the pipe is the owner's death, however it died. (A signal that the kernel sends on the death of a parent,
`PR_SET_PDEATHSIG`, would also come when the *thread* that started the child ends. And it would reach the child alone.)
A guardian is a subreaper: grandchildren that lost their parent become its children, and it leaves only when none of
them is left.

* the command ends: what it left behind is killed, and the guardian exits with the command's status (128 + n for
  signal n);
* the lifeline ends: the command is killed at once, and the same follows;
* SIGTERM, SIGINT: passed on to the command, nothing else;
* the guardian itself is killed: the command gets SIGKILL from the kernel. The guardian has a single thread, so
  this signal always means the death of the process.

Only the standard library, and as little of it as possible: a guardian is one process per child.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from pathlib import Path

# From linux/prctl.h.
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_PASSED_ON = (signal.SIGTERM, signal.SIGINT)

NOT_STARTED = 127
"""The exit status that a shell returns for a command that it cannot run."""


def main(lifeline: int, leftovers: str, listed: str, command: list[str]) -> int:
    """Run `command` until it or the lifeline ends, then return its exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, wakers = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakers, warn_on_full_buffer=False)
    for handled in (*_PASSED_ON, signal.SIGCHLD):
        signal.signal(handled, lambda *_: None)
    child = _start(libc, command, lifeline)

    ends = select.poll()
    ends.register(lifeline, select.POLLHUP)
    ends.register(wake, select.POLLIN)
    while True:
        ready = dict(ends.poll())
        if lifeline in ready:
            os.kill(child, signal.SIGKILL)
            ends.unregister(lifeline)
        for number in os.read(wake, 4096) if wake in ready else b"":
            if number in _PASSED_ON:
                os.kill(child, number)
        status = _reap_all(child)
        if status is not None:
            _kill_rest()
            _remove(leftovers)
            _remove_listed(listed)
            return status


def _start(libc: ctypes.CDLL, command: list[str], lifeline: int) -> int:
    guardian = os.getpid()
    # Held back until the command's process has left our handlers, which would swallow it.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        return child
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guardian:  # it died before the line above
            os._exit(NOT_STARTED)
        os.close(lifeline)
        for number in (*_PASSED_ON, signal.SIGPIPE):  # Python ignores SIGPIPE, and what is ignored stays so
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(NOT_STARTED)


def _reap_all(child: int) -> int | None:
    """Collect every process that has ended, and return the status of `child` if it is among them."""
    result = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                result = code if code >= 0 else 128 - code
    except ChildProcessError:
        pass
    return result


def _kill_rest() -> None:
    """Kill all descendants: this process is a subreaper, so grandchildren become its children."""
    while True:
        for pid in _children():
            os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _remove(pattern: str) -> None:
    directory, _, name = pattern.rpartition("/")
    for path in Path(directory).glob(name) if name else ():
        path.unlink(missing_ok=True)


def _remove_listed(file: str) -> None:
    if not file or not Path(file).exists():
        return
    import shutil  # rarely needed, and not small

    for line in Path(file).read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        shutil.rmtree(line, ignore_errors=True)
    Path(file).unlink(missing_ok=True)


def _children() -> list[int]:
    own = os.getpid()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # pid (name) state ppid ...; the name may hold anything, also brackets.
                parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # gone meanwhile
            if parent == own:
                found.append(int(entry.name))
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
