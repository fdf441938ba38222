"""Runs the local AWS of a state directory, here or detached, finds it again, and stops it.

A directory has at most one running local AWS. Its process holds a lock, which the kernel releases when the process
ends, however it ends. The state file beside the lock only shows where to find the process. A signal goes through a file
descriptor of the process, and only if its start time is the recorded one, so it never reaches a process that got the
same id later.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from cdk_triton.errors import LocalError
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import EndpointHost
from cdk_triton_local.endpoints.capacity import Capacity
from cdk_triton_local.logs import LogFiles, LogSelection
from cdk_triton_local.process import conflicting_variables
from cdk_triton_local.running import DEFAULT_DIRECTORY, directory_option, known_directories, listed_as_running

__all__ = ["DEFAULT_DIRECTORY", "Daemon", "DaemonOptions", "DaemonStatus"]

START_SECONDS = 120.0
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class DaemonOptions:
    """How a local AWS is started.

    Attributes:
        port: 0 for any free one.
        region: the region of the local AWS.
        account: the account of the local AWS, 12 digits.
        max_loaded_models: how many target models a variant of a multi-model endpoint keeps loaded.
        listen_on_all_interfaces: whether tritonserver listens on every interface instead of loopback only, for systems
            on which it cannot be limited.
        faults: the names of the faults of AWS that it has, with commas between them; see `cdk_triton_local.faults`.
    """

    port: int = 0
    region: str = "us-east-1"
    account: str = "123456789012"
    max_loaded_models: int = 4
    listen_on_all_interfaces: bool = False
    faults: str = ""


@dataclass(frozen=True)
class DaemonStatus:
    """A running local AWS.

    Attributes:
        pid: its process.
        started: the start time of that process, in clock ticks since boot.
        url: its address.
        environment: the variables that lead clients to it.
    """

    pid: int
    started: int
    url: str
    environment: dict[str, str]


class Daemon:
    """The local AWS of one state directory.

    Attributes:
        capacity: how many instances are free for each deployment; the limits are removed when the local AWS ends.

    Args:
        directory: made if it does not exist.
    """

    def __init__(self, directory: Path = DEFAULT_DIRECTORY) -> None:
        self.directory = directory.absolute()
        self.log_file = self.directory / "local.log"
        self.capacity = Capacity(self.directory)
        self._state_file = self.directory / "state.json"
        self._log_files = LogFiles(self.directory, self.log_file)

    def run(
        self,
        options: DaemonOptions | None = None,
        *,
        ready: Callable[[DaemonStatus], None] = lambda status: None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Run in this process, in its main thread, until SIGINT or SIGTERM; returns when everything has ended.

        Args:
            options: how it is started; by default with the default options.
            ready: called once clients can connect.
            log: called with each line that also goes to the log file.

        Raises:
            LocalError: a local AWS is already running in this directory, the port is in use, endpoints cannot be served
                on this machine, or the directory cannot be written.
        """
        options = options or DaemonOptions()
        for name in conflicting_variables(os.environ):
            del os.environ[name]  # moto makes boto3 sessions, and a profile that does not exist would stop them
        # Not an Event: a signal that interrupts the beginning of its wait() would wait for its lock for ever.
        asked: SimpleQueue[int] = SimpleQueue()
        with (
            self._os_errors_explained(),
            self._directories_removed_on_failure() as made,
            _private_files(),
            self._locked(),
            self.log_file.open("ab", buffering=0) as file,
        ):
            self._log_files.begin_run(on_all_interfaces=options.listen_on_all_interfaces)
            log_line = _line_logger(file, log)
            aws = LocalAws(
                self.directory,
                port=options.port,
                region=options.region,
                account=options.account,
                host_factory=lambda aws: _host(aws, options),
                log=log_line,
                faults=[name for name in options.faults.split(",") if name],
            )
            previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                with aws, listed_as_running(self.directory):
                    made.clear()
                    status = DaemonStatus(os.getpid(), _start_time(os.getpid()) or 0, aws.url, aws.environment())
                    self._write(status)
                    for number in previous:
                        signal.signal(number, lambda number, _: asked.put(number))
                    ready(status)
                    _wait(asked)
                    log_line("stopping")
                log_line("stopped")
            finally:
                for number, handler in previous.items():
                    signal.signal(number, handler)
                self._state_file.unlink(missing_ok=True)
                self.capacity.clear()

    def start(self, options: DaemonOptions | None = None) -> dict[str, str]:
        """Start it detached, wait until clients can connect, and return the variables that lead them to it.

        Raises:
            LocalError: the local AWS cannot start; the message is its own.
        """
        with self._os_errors_explained(), self._directories_removed_on_failure() as made:
            process, line = self._spawn(options)
            if not line:
                made.clear()  # the log is all that there is to look at
                process.kill()
                process.wait()
                raise LocalError(f"the local AWS did not start; its log is {self.log_file}")
            answer = json.loads(line)
            if "error" in answer:
                process.wait()
                raise LocalError(answer["error"])
        environment: dict[str, str] = answer["environment"]
        # It outlives this process, so nothing here waits for it.
        process.returncode = 0
        return environment

    def status(self) -> DaemonStatus | None:
        """The running local AWS of this directory, or None."""
        try:
            status = DaemonStatus(**json.loads(self._state_file.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None
        except OSError as error:
            raise self._unusable(error) from error
        return status if _start_time(status.pid) == status.started else None

    def stop(self) -> bool:
        """Stop it and wait until everything has ended.

        Returns:
            Whether a local AWS was running.

        Raises:
            LocalError: the local AWS is still running after a minute.
        """
        status = self.status()
        if status is None:
            return False
        try:
            descriptor = os.pidfd_open(status.pid)
        except ProcessLookupError:
            return False
        try:
            if _start_time(status.pid) != status.started:  # it ended and another process got its id, just now
                return False
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            if not select.select([descriptor], [], [], STOP_SECONDS)[0]:
                raise LocalError(
                    f"the local AWS (process {status.pid}) still runs {STOP_SECONDS:.0f} s after it was asked to stop; "
                    f"see {self.log_file}"
                )
        finally:
            os.close(descriptor)
        return True

    def logs(self, selection: LogSelection | None = None, *, follow: bool = False) -> Iterator[str]:
        """The lines of the logs, each after its source, such as `local`, `lambda-<function>` or `<endpoint>/<variant>`.

        Args:
            selection: which lines; those of the last run by default.
            follow: continue with new lines, including those of new logs, until the local AWS ends.

        Raises:
            LocalError: there is no log yet, or the selection has no log.
        """
        wanted = selection or LogSelection()
        if not self.log_file.exists():
            raise LocalError(f"no local AWS runs or ran in {self.directory}; start one first")
        files: dict[Path, Any] = {}
        with self._os_errors_explained():
            if not follow:
                self._log_files.require(wanted)
            try:
                while True:
                    running = follow and self.status() is not None
                    yield from self._log_files.new_lines(files, wanted, whole=running)
                    if not running:
                        return
                    time.sleep(_POLL_SECONDS)
            finally:
                for file in files.values():
                    file.close()

    @classmethod
    def others(cls, directory: Path) -> list[tuple[Path, DaemonStatus]]:
        """The runs of this user in other directories, each with its directory."""
        found = [(each, cls(each).status()) for each in known_directories() if each != directory.absolute()]
        return [(each, status) for each, status in found if status is not None]

    def _spawn(self, options: DaemonOptions | None) -> tuple[subprocess.Popen[bytes], bytes]:
        """Start the detached process. Return it with the line that it answers; b"" if it ends without one."""
        self._reject_second()
        reader, writer = os.pipe()
        try:
            with self.log_file.open("ab") as output:
                process = subprocess.Popen(
                    # -P: what lies in the working directory is not on the import path.
                    [sys.executable, "-P", "-m", __name__, str(writer), str(self.directory), _encoded(options)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[writer],
                    start_new_session=True,  # neither a Ctrl-C nor the end of this terminal reaches it
                )
        finally:
            os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            ended, _, _ = select.select([pipe], [], [], START_SECONDS)
            return process, pipe.readline() if ended else b""

    @contextlib.contextmanager
    def _directories_removed_on_failure(self) -> Iterator[list[Path]]:
        """Yield the new directories. The caller clears the list once the start has succeeded."""
        made = [each for each in (self.directory, *self.directory.parents) if not each.exists()]
        try:
            yield made
        except LocalError:
            if made:
                shutil.rmtree(self.directory, ignore_errors=True)
            with contextlib.suppress(OSError):  # not empty: somebody else uses it meanwhile
                for each in made[1:]:
                    each.rmdir()
            raise

    @contextlib.contextmanager
    def _os_errors_explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> LocalError:
        where = f" ({error.filename})" if error.filename else ""
        return LocalError(
            f"the local AWS cannot work in {self.directory}: {error.strerror or error}{where}; choose another "
            "directory with --directory, or repair this one"
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        (self.directory / ".gitignore").write_text("*\n", encoding="utf-8")
        with (self.directory / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._second() from None
            yield

    def _reject_second(self) -> None:
        # Only for an early message: the child checks again while it holds the lock.
        with self._locked():
            pass

    def _second(self) -> LocalError:
        status = self.status()
        where = f" at {status.url} (process {status.pid})" if status else ""
        return LocalError(
            f"a local AWS runs in {self.directory} already{where}; to use it in this shell, run "
            f'eval "$(cdk-triton local status{directory_option(self.directory)})"; or stop it first, or use another '
            "directory"
        )

    def _write(self, status: DaemonStatus) -> None:
        partial = self._state_file.with_suffix(".partial")
        partial.unlink(missing_ok=True)  # one that was left behind may be readable for others
        partial.write_text(json.dumps(asdict(status)), encoding="utf-8")
        partial.replace(self._state_file)


def _host(aws: LocalAws, options: DaemonOptions) -> EndpointHost:
    from cdk_triton_local.triton import TritonHost

    return TritonHost(
        s3=lambda role: aws.client("s3", role),
        directory=aws.directory / "endpoints",
        max_loaded_models=options.max_loaded_models,
        log=aws.log,
        account=aws.account,
        region=aws.region,
        record=aws.metrics.record,
        record_component=aws.metrics.record_component,
        listen_on_all_interfaces=options.listen_on_all_interfaces,
        log_options=directory_option(aws.directory),
    )


@contextlib.contextmanager
def _private_files() -> Iterator[None]:
    """New files, also those of child processes, are for this user alone: models, logs, the state with its secret."""
    # botocore lists moto's directory, so what Python caches there must not be private: other users may share it.
    importlib.import_module("moto")
    previous = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous)


def _line_logger(file: IO[bytes], log: Callable[[str], None]) -> Callable[[str], None]:
    """The returned function never raises: a full disk must not end the thread that logs."""
    lock = threading.Lock()
    lost = 0

    def log_line(line: str) -> None:
        nonlocal lost
        note = f"({lost} lines are missing here, because they could not be written)\n" if lost else ""
        with lock:
            try:
                file.write(f"{note}{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n".encode())
                lost = 0
            except OSError:
                lost += 1
        with contextlib.suppress(OSError):  # nobody reads it any more
            log(line)

    return log_line


def _start_time(pid: int) -> int | None:
    """When a process was started, in clock ticks since boot (proc(5), field 22 of stat); None if it is gone."""
    try:
        # pid (name) state ...; the name may hold anything, also brackets.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] == b"Z" else int(fields[19])


def _encoded(options: DaemonOptions | None) -> str:
    return json.dumps(asdict(options or DaemonOptions()))


def _wait(asked: SimpleQueue[int]) -> None:
    """Wait for a signal; one that comes right before the wait does not interrupt it, so the wait is repeated."""
    while True:
        with contextlib.suppress(Empty):
            asked.get(timeout=1)
            return


def _run_detached(arguments: list[str]) -> int:
    """Run as `python -m cdk_triton_local.daemon DESCRIPTOR DIRECTORY OPTIONS`."""
    descriptor, directory, encoded = arguments
    with os.fdopen(int(descriptor), "wb", buffering=0) as pipe:

        def send(answer: dict[str, Any]) -> None:
            pipe.write(json.dumps(answer).encode() + b"\n")

        def ready(status: DaemonStatus) -> None:
            send({"environment": status.environment})
            pipe.close()

        try:
            Daemon(Path(directory)).run(DaemonOptions(**json.loads(encoded)), ready=ready)
        except LocalError as error:
            if not pipe.closed:
                send({"error": str(error)})
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(_run_detached(sys.argv[1:]))
