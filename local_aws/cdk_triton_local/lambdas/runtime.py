"""Runs the Python Lambda functions of the local AWS, each in a process of its own.

A function has what it would have in Lambda: its own modules, its own environment, a timeout that ends it, and nothing
of this process. Its process stays warm between invocations; a call that comes while it is busy gets another process.
moto keeps a function's settings and code. The runtime reads them at each invocation, so an update takes effect at once.

All functions together have as many concurrent executions as those of a new account (`executions`).

Memory limits, layers, and any runtime but Python are not modelled (functions
run on the interpreter that runs this process, whatever version they name).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from cdk_triton.errors import LocalError
from cdk_triton_local.lambdas.executions import Executions
from cdk_triton_local.process import Child, child_environment, start
from cdk_triton_local.skipped_time import SkippedTime

__all__ = ["FunctionCode", "FunctionError", "LambdaRuntime"]

_BOOTSTRAP = Path(__file__).with_name("_bootstrap.py")
_START_SECONDS = 30.0
_STARTS_AT_ONCE = os.cpu_count() or 1
"""More would only slow each other down, while a process that has started already becomes idle."""

_NAME = re.compile(r"[a-zA-Z0-9-_]{1,140}")
"""A function's name, which becomes the name of files (botocore's service model of Lambda, shape FunctionName)."""

_MAX_RESPONSE_BYTES = 6 * 1024 * 1024
"""Largest answer of a synchronous invocation (Lambda quotas, "Invocation payload")."""


class FunctionError(LocalError):
    """A function raised, timed out or could not be loaded.

    Attributes:
        payload: what Lambda answers: `errorMessage`, `errorType` and `stackTrace`.
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        super().__init__(str(payload.get("errorMessage", "error")))
        self.payload = payload


@dataclass(frozen=True)
class FunctionCode:
    """A function as it is deployed now.

    Attributes:
        code: the deployment package, a ZIP.
        timeout: seconds.
        role: the ARN of its execution role.
        subnets: those of its VPC; none for a function that is in no VPC.
    """

    name: str
    arn: str
    role: str
    runtime: str
    handler: str
    timeout: float
    environment: Mapping[str, str]
    code: bytes
    subnets: Sequence[str] = ()

    @cached_property
    def version(self) -> str:
        """A text that differs whenever the function needs a new process."""
        settings = json.dumps([self.handler, self.timeout, self.role, dict(self.environment)], sort_keys=True)
        return hashlib.sha256(self.code + settings.encode()).hexdigest()[:16]


class LambdaRuntime:
    """Invokes functions.

    Args:
        directory: the directory for unpacked code, and for logs in `logs/lambda-<name>.log`.
        environment: given the ARN of an execution role, returns the variables that a function gets in addition to its
            own: region, credentials, endpoint.
        look_up: returns the function with a name, or None.
        publish: called after each invocation, with the log group of the function and what it printed.
        time: the time of the functions.
        unanswered: given the subnets of a function, returns a regular expression for the beginnings of its requests
            that get no answer; "" if there are none.

    Attributes:
        executions: the executions of all functions that run at once.
        log_groups: the log groups of functions that do not write into that of their name.
        roles: the roles of all functions that have been invoked.
    """

    def __init__(
        self,
        directory: Path,
        environment: Callable[[str], Mapping[str, str]],
        look_up: Callable[[str], FunctionCode | None],
        publish: Callable[[str, str], None] = lambda group, text: None,
        time: SkippedTime | None = None,
        unanswered: Callable[[Sequence[str]], str] = lambda subnets: "",
    ) -> None:
        self.executions = Executions()
        self._time = SkippedTime(threading.Event()) if time is None else time
        self.log_groups: dict[str, str] = {}
        self.roles: set[str] = set()
        self._directory = directory
        self._environment = environment
        self._look_up = look_up
        self._publish = publish
        self._unanswered = unanswered
        self._idle: dict[str, list[_Worker]] = {}
        self._published_bytes: dict[str, int] = {}  # by the function's name
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # a process is idle, has started, or is not going to
        self._starting = 0
        self._closed = False

    def invoke(self, function: str, event: Any) -> Any:
        """Invoke a function by name or ARN and wait for its answer.

        Raises:
            FunctionError: the function failed.
            NotRunError: too many run at once.
            LocalError: there is no such function, its runtime is not supported here, or its process cannot be started.
        """
        name = function.split(":function:")[-1].split(":")[0]
        code = self._look_up(name) if _NAME.fullmatch(name) else None
        if code is None:
            raise LocalError(f"there is no Lambda function {name!r} in the local AWS")
        if not code.runtime.startswith("python"):
            raise LocalError(
                f"Lambda function {name!r} has the runtime {code.runtime!r}; only Python functions run in the local AWS"
            )
        self.roles.add(code.role)
        with self.executions.one(), self._time.working():
            worker = self._idle_or_new_worker(code)
            try:
                return worker.ask(event, self._time, self._unanswered(code.subnets))
            finally:
                if printed := self._new_output(name):
                    self._publish(self.log_groups.get(name, f"/aws/lambda/{name}"), printed)
                if worker.usable:
                    self._give_back(code, worker)

    def close(self) -> None:
        """End every function process."""
        with self._lock:
            self._closed = True
            workers, self._workers, self._idle = self._workers, [], {}
            self._changed.notify_all()
        for worker in workers:
            worker.stop()

    def _idle_or_new_worker(self, code: FunctionCode) -> _Worker:
        def fresh() -> list[_Worker]:
            return [worker for worker in self._idle.get(code.name, []) if worker.version == code.version]

        with self._changed:
            self._changed.wait_for(lambda: self._closed or fresh() or self._starting < _STARTS_AT_ONCE)
            if self._closed:
                raise LocalError("the local AWS is being stopped")
            kept = fresh()
            stale = [worker for worker in self._idle.get(code.name, []) if worker not in kept]
            taken = kept.pop() if kept else None
            self._idle[code.name] = kept
            self._starting += taken is None
        for worker in stale:
            worker.stop()
        return taken or self._new_worker(code)

    def _new_worker(self, code: FunctionCode) -> _Worker:
        """`_idle_or_new_worker` has added it to `_starting`."""
        try:
            worker = _Worker(code, self._unpack(code), self._environment(code.role), self._log_file(code.name))
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()
        with self._lock:
            if not self._closed:
                self._workers = [each for each in self._workers if each.usable] + [worker]
                return worker
        worker.stop()  # it was started while everything was being stopped
        raise LocalError("the local AWS is being stopped")

    def _give_back(self, code: FunctionCode, worker: _Worker) -> None:
        with self._changed:
            if not self._closed:
                self._idle.setdefault(code.name, []).append(worker)
                self._changed.notify_all()

    def _log_file(self, name: str) -> Path:
        """All processes of a function share it. What an earlier local AWS wrote is not published."""
        file = self._directory / "logs" / f"lambda-{name}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._published_bytes.setdefault(name, file.stat().st_size if file.exists() else 0)
        return file

    def _new_output(self, name: str) -> str:
        """What all processes of a function have printed since the last call."""
        path = self._log_file(name)
        with self._lock, path.open("rb") as file:
            file.seek(self._published_bytes[name])
            printed = file.read()
            self._published_bytes[name] += len(printed)
        return printed.decode(errors="replace")

    def _unpack(self, code: FunctionCode) -> Path:
        target = self._directory / "functions" / f"{code.name}-{code.version}"
        with self._lock:
            if not target.exists():
                partial = target.with_suffix(".partial")
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir(parents=True)
                try:
                    with zipfile.ZipFile(io.BytesIO(code.code)) as archive:
                        archive.extractall(partial)
                except zipfile.BadZipFile as error:
                    raise LocalError(
                        f"the code of Lambda function {code.name!r} is not a ZIP archive: {error}"
                    ) from error
                partial.rename(target)
        return target


class _Worker:
    """A warm process of one function, which gets one event at a time over a socket."""

    def __init__(self, code: FunctionCode, task_root: Path, environment: Mapping[str, str], log_file: Path) -> None:
        self.version = code.version
        self.usable = True
        self._code = code
        self._log: IO[bytes] = log_file.open("ab")
        # A path of its own: a socket's path may have 107 characters only, and a state directory may be deeper.
        with tempfile.TemporaryDirectory(prefix="lambda-") as place, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{place}/s")
            listener.listen(1)
            listener.settimeout(_START_SECONDS)
            self._child = self._start(task_root, environment, f"{place}/s")
            self._channel = self._accept(listener)
        self._stream = self._channel.makefile("rwb")

    def ask(self, event: Any, clock: SkippedTime, unanswered: str) -> Any:
        """Send an event and wait for the answer, at most for the function's timeout."""
        began = time.monotonic()
        self._channel.settimeout(self._code.timeout)
        try:
            request = {
                "event": event,
                "seconds": self._code.timeout,
                "skips": clock.skips,
                "ahead": clock.ahead,
                "unanswered": unanswered,
            }
            self._stream.write(json.dumps(request).encode() + b"\n")
            self._stream.flush()
            line = self._stream.readline()
        except TimeoutError:
            raise self._timed_out() from None
        except OSError:
            line = b""
        if not line:
            status = self.stop()
            seconds = time.monotonic() - began
            message = f"the process of function {self._code.name} ended with status {status} after {seconds:.1f} s"
            raise FunctionError({"errorMessage": message, "errorType": "Runtime.ExitError"})
        if len(line) > _MAX_RESPONSE_BYTES:
            raise FunctionError(
                {
                    "errorMessage": "Response payload size exceeded maximum allowed payload size "
                    f"({_MAX_RESPONSE_BYTES} bytes).",
                    "errorType": "Function.ResponseSizeTooLarge",
                }
            )
        answer = json.loads(line)
        clock.skip_to(time.time() + answer["ahead"])
        if "timed_out" in answer:
            raise self._timed_out()
        if "error" in answer:
            raise FunctionError(answer["error"])
        return answer["result"]

    def _timed_out(self) -> FunctionError:
        self.stop()
        message = f"Task timed out after {self._code.timeout:.2f} seconds"
        return FunctionError({"errorMessage": message, "errorType": "Sandbox.Timedout"})

    def stop(self) -> int:
        """End the process."""
        self.usable = False
        status = self._child.kill()
        self._channel.close()
        self._log.close()
        return status

    def _start(self, task_root: Path, environment: Mapping[str, str], address: str) -> Child:
        code = self._code
        variables = {
            **environment,
            "AWS_LAMBDA_FUNCTION_NAME": code.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "LAMBDA_TASK_ROOT": str(task_root),
            "_HANDLER": code.handler,
            **code.environment,
        }
        return start(
            # -I: what is set for our own Python is not for the function's; the bootstrap puts its code onto the path.
            [sys.executable, "-I", _BOOTSTRAP, address, code.arn],
            environment=child_environment(variables),
            directory=task_root,
            output=self._log,
            errors=subprocess.STDOUT,
        )

    def _accept(self, listener: socket.socket) -> socket.socket:
        try:
            return listener.accept()[0]
        except TimeoutError:
            status = self._child.kill()
            raise LocalError(
                f"the process of Lambda function {self._code.name!r} did not start (status {status})"
            ) from None
