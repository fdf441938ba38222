"""The server of a rehearsal: the image's own `serve`, started as SageMaker starts it, on a port of the loopback."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import Collection, Iterator, NamedTuple
from urllib.parse import quote

from ..commands import end_group, exit_status
from ..load_failures import failed_request, load_failures, logged_exception, rejected_load
from ..log import Log
from ..stop import Stop
from .account import Account
from .document import RehearsalDocument
from .privacy import printed_without_text, said_without_text
from .processes import adopting, end_all

__all__ = ["Answer", "RehearsalError", "Server", "serving"]

_POLL_SECONDS = 0.05
_LOOK_SECONDS = 0.5
_PING_SECONDS = 2.0  # SageMaker's own limit for a ping
_ANSWER_SECONDS = 60.0  # SageMaker's limit for an invocation ("InvokeEndpoint")
_ENDS_SECONDS = 5.0  # a server that is being killed loses its sockets first
_GRACE_SECONDS = 35.0  # the server's own exit timeout is 30 s
_KEPT_LINES = 10_000
_TARGET_MODEL = "X-Amzn-SageMaker-Target-Model"
_OF_THE_JOB = re.compile(r"(AWS|CODEBUILD|ECS|PIP|PROCESSING)_.*|.*(TOKEN|SECRET|PASSWORD|CREDENTIALS|_KEY)")
"""Of the image's own variables, none is needed that is named like a secret."""

_STAND_IN = re.compile(r"\bstand-in for (?:the backend )?(?P<name>[\w.-]+):")
_WARNING = re.compile(r'^W\d{4} \S+ \d+ [\w.]+:\d+\] "?(?P<text>.*?)"?$')
_VERSION = re.compile(r"\bserver_version\s*\|\s*(?P<version>[\d.]+)")
_KEPT_WARNINGS = 20
_WARNING_CHARACTERS = 300
_ENTRY_POINT = "opt/nvidia/nvidia_entrypoint.sh"  # server: docker/sagemaker/Dockerfile and build.py
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Python models exchange tensors with the server
_SERVED = {"single": "opt/ml/model", "multi": "opt/ml/models/{}/model"}


class RehearsalError(Exception):
    """Ends a rehearsal.

    Args:
        reason: the one sentence that the user reads.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Answer(NamedTuple):
    """What the server answered."""

    status: int
    content_type: str
    body: bytes
    seconds: float

    @property
    def error(self) -> str:
        """The server's message: the member `error` of the JSON, or the beginning of the text."""
        text = self.body[:10_000].decode("utf-8", "replace")
        with contextlib.suppress(ValueError, LookupError, TypeError):
            text = str(json.loads(text)["error"])
        return text


@contextlib.contextmanager
def serving(server: Server, repository: Path, others: Collection[int]) -> Iterator[None]:
    """While this lasts, a server has loaded a repository; when it ends, whatever the server has started has ended.

    Args:
        server: the server, which is not started.
        repository: the unpacked repository, which is moved to the place from which the server loads it, and removed.
        others: the children of this process that stay, because the server has not started them.

    Raises:
        RehearsalError: the models do not load, or not in time; or there is no `serve`, or no such repository.
        StoppedError: the program has to end.
    """
    server.require_place()
    try:
        server.take(repository)
        with adopting():
            try:
                server.start()
                yield
            finally:
                server.stop(others)
    finally:
        shutil.rmtree(server.place, ignore_errors=True)


class Server:
    """A server process.

    Args:
        document: what to rehearse.
        root: the directory that stands for `/`; `/` itself in an image.
        log: gets the lines that the server prints.
        stop: ends the rehearsal.
        account: who runs it; None for the account of this process.
        private: whether text of requests stays out of the log, where a model may print it.

    Attributes:
        account: the argument.
        place: where the server finds the models.
        load_seconds: how long they took to load.
        stand_ins: the stand-ins that have announced themselves in the output.
        lines: the last lines of the output.
        version: the server's version, such as 2.51.0.
        warnings: the server's first warnings, before any request.
    """

    def __init__(
        self,
        document: RehearsalDocument,
        root: Path,
        log: Log,
        stop: Stop,
        account: Account | None = None,
        *,
        private: bool = True,
    ) -> None:
        self._private = private
        self._document = document
        self._root = root
        self._log = log
        self._stop = stop
        self.account = account
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._model = hashlib.sha256(document.repository.encode()).hexdigest()[:32]  # as SageMaker names models
        self.place = root / _SERVED[document.mode].format(self._model)
        self.load_seconds = 0.0
        self._is_loaded = False
        self._printed = 0
        self.stand_ins: dict[str, None] = {}
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self.version: str | None = None
        self.warnings: dict[str, None] = {}

    def require_place(self) -> None:
        """The place of the models must be free; see `serving`."""
        if self.place.exists():  # or the repository would become a directory within that one
            raise RehearsalError(f"{self.place} exists already: rehearse in a root directory without models")

    def take(self, repository: Path) -> None:
        """Move a repository to its place; see `serving`."""
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(str(repository), str(self.place))
            if self.account is not None:
                self.account.take_over(self.place)
        except OSError as error:
            raise RehearsalError(f"the repository cannot be moved to {self.place}: {_why(error)}") from error

    def start(self) -> None:
        """Start the server and load the models; see `serving`."""
        began = time.monotonic()
        deadline = began + self._document.load_timeout_seconds
        self._start()
        while not self._is_ready():
            self._require_running()
            self._require_time(deadline)
            time.sleep(_POLL_SECONDS)
        self.load_seconds = time.monotonic() - began
        if self._document.mode == "multi":  # SageMaker's servers are running when a model is loaded
            self.load_seconds = 0.0
            self.load_seconds = self.load(deadline)
        self._is_loaded = True

    def load(self, deadline: float | None = None) -> float:
        """Load the models of a multi-model server, and return how many seconds that took.

        Raises:
            RehearsalError: they do not load, or not in time.
            StoppedError: the program has to end.
        """
        began = time.monotonic()
        self._load_target_model(deadline or began + self._document.load_timeout_seconds)
        return time.monotonic() - began

    def unload(self) -> None:
        """Unload the models of a multi-model server.

        Raises:
            RehearsalError: the server does not unload them.
            StoppedError: the program has to end.
        """
        answer = self._request("DELETE", f"/models/{self._model}", timeout=self._document.load_timeout_seconds)
        if answer is None:
            raise self._closed()
        if answer.status != 200:
            why = failed_request(answer.error, self.place)
            raise RehearsalError(f"the models do not unload: status {answer.status}: {why}")

    def invoke(self, body: bytes, content_type: str, *, watched: bool = True) -> Answer:
        """Send a request to the entry model, as SageMaker passes on an invocation.

        Args:
            body: the body.
            content_type: its content type.
            watched: whether this call notices that the program has to end; otherwise it can wait for 60 s.

        Raises:
            RehearsalError: the server has ended, or does not answer within the 60 s of SageMaker.
            StoppedError: the program has to end.
        """
        self._stop.check()
        path = "/invocations" if self._document.mode == "single" else f"/models/{self._model}/invoke"
        began, printed = time.monotonic(), self._printed
        send = self._request if watched else self._ask
        answer = send("POST", path, body, content_type, timeout=_ANSWER_SECONDS)
        if answer is not None:
            return answer
        if time.monotonic() - began >= _ANSWER_SECONDS:
            late = f"the server did not answer within {_ANSWER_SECONDS:g} s, which is SageMaker's limit"
            new = self._printed - printed
            raised = logged_exception([*self.lines][-new:] if new else [], self.place)
            said = said_without_text(raised, body, content_type, self.place)
            if self._private:  # it may be of another request
                said = printed_without_text(raised)
            raise RehearsalError(f"{late}; meanwhile, a model raised {said}" if said else late)
        raise self._closed()

    def stop(self, others: Collection[int]) -> None:
        """End all processes, and read what they have printed; see `serving`."""
        if self._process is None or self._reader is None:
            return
        end_group(self._process, _GRACE_SECONDS)
        left = end_all(others)
        if left:
            self._log.event("ended what the server had left", processes=left)
        if self.account is not None:
            self.account.remove_files([_SHARED_MEMORY, self._root / "tmp"])
        self._reader.join(_ENDS_SECONDS)
        if not self._reader.is_alive() and self._process.stdout is not None:  # a process outside the group may hold it
            self._process.stdout.close()

    def _start(self) -> None:
        if self._document.mode == "multi":
            (self._root / "tmp").mkdir(exist_ok=True)
        entry_point = self._root / _ENTRY_POINT  # SageMaker starts `serve` through it
        try:
            self._process = subprocess.Popen(
                [*([str(entry_point)] if entry_point.exists() else []), "serve"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=str(self._root),
                env=self._environment(),
                start_new_session=True,
                preexec_fn=None if self.account is None else self.account.enter,  # `user` is from Python 3.9 on
            )
        except OSError as error:
            raise RehearsalError(
                f"`serve` cannot be started ({error.strerror}): rehearse in an image of SageMaker's Triton"
            ) from error
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _environment(self) -> dict[str, str]:
        """The variables of the image and of the container. Those of the job, such as its credentials, stay out."""
        variables = {name: value for name, value in os.environ.items() if not _OF_THE_JOB.fullmatch(name)}
        variables.update(self._document.environment, SAGEMAKER_BIND_TO_PORT=str(self._port))
        if self._document.mode == "multi":
            variables["SAGEMAKER_MULTI_MODEL"] = "true"
        if self.account is not None:
            variables.update(HOME=str(self.account.home), TMPDIR=str(self.account.home))
        if self._root != Path("/"):
            variables["CDK_TRITON_STAND_IN_ROOT"] = str(self._root)
        return variables

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # for the type checker: it is a pipe
        for block in process.stdout:
            line = block.decode("utf-8", "replace").rstrip("\n")
            self.lines.append(line)
            self._printed += 1
            shown = printed_without_text(line) if self._private and self._is_loaded else line
            if shown or not line:
                self._log.event("output", text=shown)
            found = _STAND_IN.search(line)
            if found is not None:
                self.stand_ins[found["name"]] = None
            elif not self._is_loaded:  # a warning about a request may have text of the request
                self._read_start(line)

    def _read_start(self, line: str) -> None:
        version, warning = _VERSION.search(line), _WARNING.match(line)
        if version is not None:
            self.version = version["version"]
        if warning is not None and len(self.warnings) < _KEPT_WARNINGS:
            self.warnings[warning["text"].replace(f"{self.place}/", "")[:_WARNING_CHARACTERS]] = None

    def _is_ready(self) -> bool:
        answer = self._request("GET", "/ping", timeout=_PING_SECONDS)
        return answer is not None and answer.status == 200

    def _load_target_model(self, deadline: float) -> None:
        body = json.dumps({"model_name": self._model, "url": str(self.place)}).encode()
        seconds = max(1.0, deadline - time.monotonic())
        answer = self._request("POST", "/models", body, timeout=seconds)
        if answer is None:
            self._require_time(deadline)
            raise self._closed()
        if answer.status != 200:
            raise RehearsalError(rejected_load(answer.body.decode("utf-8", "replace"), self.place))

    def _require_running(self) -> None:
        self._stop.check()
        status = None if self._process is None else exit_status(self._process)
        if status is None:
            return
        if self._reader is not None:  # it ends with the output, unless a child of the server still holds it
            self._reader.join(_PING_SECONDS)
        if self._is_loaded:
            raise RehearsalError(f"the server ended with exit status {status} before it answered")
        why = load_failures("\n".join(self.lines), self.place)
        if why.startswith("model "):
            raise RehearsalError(f"{why}; the server ended with exit status {status}")
        last = f"last printed: {why}" if why else "printed nothing"
        raise RehearsalError(f"the server ended with exit status {status} before the models were ready, and {last}")

    def _closed(self) -> RehearsalError:
        """The error for a connection that was closed; a server that is ending loses its sockets first."""
        ends = time.monotonic() + _ENDS_SECONDS
        while time.monotonic() < ends:
            self._require_running()
            time.sleep(_POLL_SECONDS)
        return RehearsalError("the server closed the connection without an answer")

    def _require_time(self, deadline: float) -> None:
        if time.monotonic() >= deadline:
            raise RehearsalError(
                f"the models were not ready after {self._document.load_timeout_seconds:g} s: make them load faster, or "
                "raise load_timeout of the rehearsal"
            )

    def _request(
        self, method: str, path: str, body: bytes = b"", content_type: str = "", *, timeout: float
    ) -> Answer | None:
        """The answer; None if the server closes the connection, or does not answer in time.

        Raises:
            StoppedError: the program has to end.
        """
        answers: list[Answer | None] = []
        ask = partial(self._ask, method, path, body, content_type, timeout=timeout)
        asking = threading.Thread(target=lambda: answers.append(ask()), daemon=True)
        asking.start()
        while asking.is_alive():  # a thread of its own waits, so that this one notices that the program has to end
            asking.join(_LOOK_SECONDS)
            self._stop.check()
        return answers[0]

    def _ask(
        self, method: str, path: str, body: bytes = b"", content_type: str = "", *, timeout: float
    ) -> Answer | None:
        headers = {"Content-Type": content_type or "application/json"}
        if self._document.mode == "multi":
            headers[_TARGET_MODEL] = quote(f"{self._document.repository}.tar.gz")
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout)
        began = time.monotonic()
        try:
            connection.request(method, path, body or None, headers)
            reply = connection.getresponse()
            return Answer(reply.status, reply.getheader("Content-Type", ""), reply.read(), time.monotonic() - began)
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


def _why(error: OSError) -> str:
    """`shutil.Error` has a list of what could not be copied: source, target, reason."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        return str(error.args[0][0][2])
    return error.strerror or str(error)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
