"""One tritonserver process, started as SageMaker's image starts it."""

from __future__ import annotations

import re
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cdk_triton._load_failures import load_failures
from cdk_triton.errors import LocalError, ServeError
from cdk_triton.sagemaker import limits
from cdk_triton.triton import serve_arguments, server_environment
from cdk_triton.triton.shared_memory import CONTAINER_BYTES
from cdk_triton_local import process
from cdk_triton_local.triton.connection import Connections, ContainerReply, OpenReply, ServerGoneError
from cdk_triton_local.triton.inference_type import front_end_arguments, generate_path, is_generating
from cdk_triton_local.triton.loopback import exposed_sockets, listening_addresses
from cdk_triton_local.triton.server_files import STAND_IN_BACKENDS, ServerFiles

__all__ = ["INVOCATIONS", "ServerSettings", "TritonServer", "free_port"]

INVOCATIONS: Final = "/invocations"
"""The path of requests to a single model (`SagemakerAPIServer::Handle`)."""

_POLL_SECONDS: Final = 0.02
_PING_SECONDS: Final = 2.0  # SageMaker's own limit for a ping
_ATTEMPTS: Final = 3  # a port that was free can be taken before the server binds it
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 where shm_open(3) puts it on Linux
_PYTHON_BACKENDS: Final = ("python", *STAND_IN_BACKENDS)
_NEWER_OPTION: Final = "--http-max-input-size="  # of 25.06; the server here is older and has no such limit
_PORT_TAKEN: Final = re.compile(r"already in use|failed to start SageMaker|Failed to start Sagemaker", re.I)


@dataclass(frozen=True)
class ServerSettings:
    """The settings that all servers of a host share.

    Attributes:
        files: the server's programs and libraries.
        preload: the library that keeps the server on loopback, or None if it is allowed to listen everywhere.
        start_seconds: how long a server may take until it is ready.
        ports: gives a free TCP port of the loopback interface at each call.
    """

    files: ServerFiles
    preload: Path | None
    ports: Callable[[], int]
    start_seconds: float = 600.0


def free_port() -> int:
    """A TCP port that nothing on the loopback interface uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TritonServer:
    """A tritonserver that is ready to answer on the loopback interface.

    Args:
        settings: the settings that all servers of a host share.
        environment: the container's environment.
        repository: the directory that stands for `/opt/ml/model`, or an empty one for a multi-model endpoint.
        log_file: the file to which the output of the server is appended.
        is_cancelled: whether the server is no longer needed; called while it starts.

    Attributes:
        port: where its SageMaker endpoint listens.
        log_file: the argument.
        is_lost: nothing listens there any more, which `request` notices before `wait` returns.

    Raises:
        LocalError: the server does not start, and the message begins with the models that do not load; or it was
            cancelled.
    """

    def __init__(
        self,
        settings: ServerSettings,
        environment: Mapping[str, str],
        repository: Path,
        log_file: Path,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.log_file = log_file
        self.is_lost = False
        self._temporary = repository.parent / "temporary-directories"
        self._memory_prefix = f"cdk-triton-{uuid.uuid4().hex}-"
        self._settings = settings
        self._environment = environment
        self._repository = repository
        self._is_cancelled = is_cancelled
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                self._start()
                break
            except _PortTakenError:
                if not attempts_left:
                    raise

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> ContainerReply:
        """Send a request to the server's SageMaker endpoint, as `Connections.request` does, with the same errors."""
        with closing(self.open(method, path, body, headers, timeout=timeout)) as opened, self.loss_noticed():
            return ContainerReply(opened.status, opened.headers, opened.read())

    def open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> OpenReply:
        """Send a request as `request` does, and return when the headers of the answer are here.

        Read its body within `loss_noticed`.
        """
        connections = self._connections
        if path == INVOCATIONS:
            connections, path = self._invocations
        with self.loss_noticed():
            return connections.open(method, path, body, headers, timeout=timeout)

    @contextmanager
    def loss_noticed(self) -> Iterator[None]:
        """Set `is_lost` if the server is gone; for reading from what `open` returned."""
        try:
            yield
        except ServerGoneError:
            self.is_lost = not self._is_alive()
            raise

    def wait(self) -> int:
        """Wait until the process has ended, for whatever reason, and return its exit status."""
        status = self._child.wait()
        self._close_connections()
        return status

    def answers_ping(self) -> bool:
        """Whether the server answers a ping in time, with whatever status."""
        try:
            self._connections.request("GET", "/ping", timeout=_PING_SECONDS)
        except (ServerGoneError, TimeoutError):
            return False
        return True

    def stop(self, *, grace: float) -> None:
        """End the process in order: the server waits for requests in flight and lets the models finish.

        Args:
            grace: seconds until it is killed.
        """
        self._close_connections()  # before it ends, the server waits until its clients have hung up
        self._child.stop(grace=grace)
        self._close_connections()

    def kill(self) -> None:
        """End the process at once."""
        self._child.kill()
        self._close_connections()

    def _close_connections(self) -> None:
        self._connections.close()
        self._invocations[0].close()

    def _is_alive(self) -> bool:
        """A process that is being killed loses its sockets one after the other."""
        deadline = time.monotonic() + _PING_SECONDS
        while listening_addresses(self.port) and time.monotonic() < deadline:
            try:
                self._connections.request("GET", "/ping", timeout=_PING_SECONDS)
            except TimeoutError:
                break  # busy, not dead
            except ServerGoneError:
                time.sleep(_POLL_SECONDS)
            else:
                break
        return bool(listening_addresses(self.port))

    def _start(self) -> None:
        self.port = self._settings.ports()
        if listening_addresses(self.port):
            raise _PortTakenError(self.port)
        self._connections = Connections(self.port, timeout=limits.MAX_INVOCATION_SECONDS)
        self._front_end = self._settings.ports() if is_generating(self._environment) else None
        directory = self._repository.parent / "work"  # Python models find their working directory in sys.path
        directory.mkdir(exist_ok=True)
        with self.log_file.open("ab") as log:
            log_start = log.tell()
            self._child = process.start(
                [self._settings.files.program, *self._arguments()],
                environment=self._server_environment(),
                directory=directory,
                output=log,
                leftovers=str(_SHARED_MEMORY / f"{self._memory_prefix}*"),
                listed=self._temporary,
            )
        self._invocations = self._connections, INVOCATIONS
        if self._front_end is not None:
            model = server_environment(self._environment, self._directories())["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"]
            connections = Connections(self._front_end, timeout=limits.MAX_INVOCATION_SECONDS)
            self._invocations = connections, generate_path(self._environment, model)
        try:
            self._wait_until_ready(log_start)
            self._reject_other_interfaces()
        except BaseException:
            self.kill()
            raise

    def _variables_with_free_ports(self) -> dict[str, str]:
        local = {"SAGEMAKER_BIND_TO_PORT": str(self.port)}
        for what in ("GRPC", "METRICS"):
            if self._environment.get(f"SAGEMAKER_TRITON_ALLOW_{what}") == "true":
                local[f"SAGEMAKER_TRITON_{what}_PORT"] = str(self._settings.ports())
        kept = {name: value for name, value in self._environment.items() if name != "SAGEMAKER_SAFE_PORT_RANGE"}
        return kept | local

    def _arguments(self) -> Iterator[str]:
        try:
            arguments = serve_arguments(self._variables_with_free_ports(), self._directories())
        except ServeError as error:
            raise LocalError(f"the container's serve script would exit with: {error}") from error
        for argument in arguments:
            if argument.startswith(_NEWER_OPTION):
                continue
            yield re.sub(r"(/opt/ml/model|/tmp/sagemaker)(?![\w.-])/?", lambda _: f"{self._repository}/", argument)
        if self._front_end is not None:
            yield from front_end_arguments(self._front_end)
        yield f"--backend-directory={self._settings.files.backends}"
        for backend in _PYTHON_BACKENDS:  # a name to clean up by: stubs that are killed leave their memory behind
            yield f"--backend-config={backend},shm-region-prefix-name={self._memory_prefix}{backend}-"

    def _server_environment(self) -> dict[str, str]:
        files = self._settings.files
        environment = process.child_environment(
            server_environment(self._variables_with_free_ports(), self._directories())
        )
        # ONNX Runtime's wheel reports usage to its maker otherwise.
        environment["ORT_DISABLE_TELEMETRY"] = "1"
        environment["PATH"] = f"{files.python}:{process.child_environment().get('PATH', '/usr/bin:/bin')}"
        if files.libraries is not None:
            environment["LD_LIBRARY_PATH"] = str(files.libraries)
        if self._settings.preload is not None:
            environment["LD_PRELOAD"] = str(self._settings.preload)
            environment["CDK_TRITON_TEMPORARY"] = str(self._temporary)
            environment["CDK_TRITON_SHARED_MEMORY"] = f"{self._memory_prefix}python-"
            environment["CDK_TRITON_SHARED_MEMORY_BYTES"] = str(CONTAINER_BYTES)
        return environment

    def _directories(self) -> list[str]:
        return sorted(p.name for p in self._repository.iterdir() if p.is_dir() or p.name == "config.pbtxt")

    def _wait_until_ready(self, log_start: int) -> None:
        deadline = time.monotonic() + self._settings.start_seconds
        while True:
            ended = self._child.poll()
            if ended is not None:
                self._explain_start(ended, log_start)
            try:
                if self._connections.request("GET", "/ping", timeout=_PING_SECONDS).status == 200:
                    return
            except (ServerGoneError, TimeoutError):
                pass
            if self._is_cancelled():
                raise LocalError("tritonserver was stopped before it was ready, because it is not needed any more")
            if time.monotonic() > deadline:
                raise LocalError(
                    f"tritonserver was not ready after {self._settings.start_seconds:g} s; its log is {self.log_file}"
                )
            time.sleep(_POLL_SECONDS)

    def _explain_start(self, status: int, log_start: int) -> None:
        with self.log_file.open("rb") as log:
            log.seek(log_start)
            printed = log.read().decode(errors="replace")
        if _PORT_TAKEN.search(printed):
            raise _PortTakenError(self.port)
        why = load_failures(printed, self._repository) or "tritonserver printed nothing"
        raise LocalError(f"{why}; tritonserver ended with exit status {status}, and its log is {self.log_file}")

    def _reject_other_interfaces(self) -> None:
        if self._settings.preload is not None and (exposed := exposed_sockets(self._child.pid)):
            raise LocalError(
                f"tritonserver or one of its models listens at {', '.join(exposed)}, which other machines can reach, "
                "although a preloaded library should prevent that; the local AWS stopped tritonserver: remove the code "
                "of the model that listens there, or report this as a fault of cdk-triton if no model does"
            )


class _PortTakenError(LocalError):
    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is in use by another program; stop that program or choose another port")
