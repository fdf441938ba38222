"""Runs SageMaker endpoints on this machine, each variant on a tritonserver of its own."""

from __future__ import annotations

import functools
import itertools
import re
import shutil
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from cdk_triton.errors import LocalError
from cdk_triton.sagemaker import limits
from cdk_triton_local.endpoints import (
    Component,
    Endpoint,
    Invocation,
    Response,
    Shift,
    StreamedResponse,
    Variant,
    all_at_once,
)
from cdk_triton_local.endpoints.metrics import Record
from cdk_triton_local.triton.components import COMPONENT_HEADER, ComponentServers
from cdk_triton_local.triton.deadline import Deadline
from cdk_triton_local.triton.gateway import Answer, answer, choose_variant, stream, validate_request
from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.model_data import ObjectStore
from cdk_triton_local.triton.paths import shell_safe
from cdk_triton_local.triton.responses import ErrorResponses, RejectedInvocationError
from cdk_triton_local.triton.server import ServerSettings, free_port
from cdk_triton_local.triton.server_files import arrange_server_files
from cdk_triton_local.triton.shadow import Shadow
from cdk_triton_local.triton.variant import RetiredError, RunningVariant, VariantSettings

__all__ = ["TritonHost"]


_T = TypeVar("_T")

_CLOSE_SECONDS: Final = 10.0  # for model data that is being fetched; a server that is starting ends at once


@dataclass(frozen=True)
class _InService:
    variants: tuple[RunningVariant, ...]
    shadows: tuple[Shadow, ...] = ()

    @property
    def all(self) -> tuple[RunningVariant, ...]:
        return (*self.variants, *(shadow.variant for shadow in self.shadows))


class _NewServers:
    """The servers of an update that is under way, and their share of the requests.

    Args:
        servers: the new servers.
    """

    def __init__(self, servers: _InService) -> None:
        self.servers = servers
        self.share = 0.0
        self._sum = 0.0
        self._lock = threading.Lock()

    def get_the_next(self) -> bool:
        """Whether the next request is theirs; of 100 requests with a share of 0.25, every fourth one is."""
        with self._lock:
            self._sum += self.share
            is_theirs = self._sum >= 1 - 1e-9
            self._sum -= is_theirs
            return is_theirs


class TritonHost:
    """An `EndpointHost` on real tritonserver processes.

    Everything listens on free ports of 127.0.0.1. When this process ends, in whatever way, so does everything that it
    started.

    Args:
        s3: given the ARN of an execution role, returns a boto3 S3 client that calls with it, or anything with its
            `get_object`.
        directory: for unpacked model data, the backend directory and logs; `directory/logs/<endpoint>/<variant>.log`
            is the output of the servers of a variant, one after the other. One host per directory.
        max_loaded_models: how many target models a multi-model variant holds at a time; the least recently used one is
            unloaded to make room. On SageMaker, the memory sets the limit.
        log: gets one line per event: ready, died, loaded, unloaded.
        account: the account id that error messages name.
        region: the region that error messages name.
        listen_on_all_interfaces: start servers without the library that keeps them on loopback (see `loopback.py`),
            on machines where it cannot be compiled. Everybody who reaches this machine can then invoke the models.
        ports: returns a free TCP port at each call; pass a function of your own for a range of ports.
        record: gets the values of CloudWatch metrics; see `EndpointMetrics.record`.
        record_component: the same for inference components; see `EndpointMetrics.record_component`.
        log_options: the options, after a space, with which `cdk-triton local logs` finds these logs.

    Raises:
        LocalError: there is no usable tritonserver, or no C compiler.
    """

    def __init__(
        self,
        s3: Callable[[str], ObjectStore],
        directory: Path,
        max_loaded_models: int = 4,
        log: Callable[[str], None] = lambda line: None,
        *,
        account: str = "123456789012",
        region: str = "us-east-1",
        listen_on_all_interfaces: bool = False,
        ports: Callable[[], int] = free_port,
        record: Callable[..., None] = lambda *metric, **dimensions: None,
        record_component: Callable[[str, str, float], None] = lambda component, name, value: None,
        log_options: str = "",
    ) -> None:
        if max_loaded_models < 1:
            raise LocalError(f"max_loaded_models is {max_loaded_models}, but an endpoint needs at least one; raise it")
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = shell_safe(directory.absolute())
        self._logs = directory.absolute() / "logs"  # as messages name them, not through a link
        self._log = log
        self._record = record
        self._account = account
        self._region = region
        self._log_options = log_options
        shutil.rmtree(self._directory / "endpoints", ignore_errors=True)  # of an earlier host that was killed
        self._settings = VariantSettings(
            server=ServerSettings(
                files=arrange_server_files(self._directory),
                preload=None if listen_on_all_interfaces else loopback_library(),
                ports=ports,
            ),
            store=s3,
            max_loaded_models=max_loaded_models,
            closing=threading.Event(),
            log=log,
        )
        self._components = ComponentServers(
            self._settings, self._directory / "endpoints", self._logs, self._errors, record_component
        )
        self._endpoints: dict[str, _InService] = {}
        self._updates: dict[str, _NewServers] = {}
        self._deployments = itertools.count(1)
        self._starting = 0
        self._changed = threading.Condition()  # guards the endpoints and how many deployments are starting servers

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        """Create or update an endpoint; see `EndpointHost.deploy`. Other endpoints can be deployed at the same time."""
        with self._changed:
            self._starting += 1
        try:
            fresh = self._start_all_or_none(endpoint)
            if endpoint.name in self._endpoints:
                self._move(endpoint.name, fresh, shift)
            with self._changed:
                is_closing = self._settings.closing.is_set()
                old = None if is_closing else self._endpoints.get(endpoint.name)
                if not is_closing:
                    self._endpoints[endpoint.name] = fresh
                self._updates.pop(endpoint.name, None)
            if is_closing:
                self._stop(fresh)
                raise LocalError(f"endpoint {endpoint.name} was not deployed, because the local AWS is being stopped")
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()
        self._stop(old)

    def _move(self, name: str, fresh: _InService, shift: Shift) -> None:
        """Send the requests to new servers, or stop these."""
        self._updates[name] = update = _NewServers(fresh)

        def move(share: float) -> None:
            update.share = share
            self._log(f"endpoint {name}: {100 * share:g} % of the requests go to the new servers")

        try:
            shift(move)
        except BaseException:
            self._updates.pop(name, None)
            self._stop(fresh)
            raise

    def set_weights(self, name: str, weights: Mapping[str, float]) -> None:
        """Change the weights of variants; see `EndpointHost.set_weights`."""
        with self._changed:
            for variant in self._endpoints[name].all if name in self._endpoints else ():
                variant.weight = weights.get(variant.name, variant.weight)

    def place(self, component: Component, copies: int) -> None:
        """Bring a component to a number of copies; see `EndpointHost.place`."""
        self._components.place(component, copies)

    def withdraw(self, name: str) -> None:
        """Stop a component; see `EndpointHost.withdraw`."""
        self._components.withdraw(name)

    def remove(self, name: str) -> None:
        """Stop an endpoint; see `EndpointHost.remove`."""
        with self._changed:
            endpoint = self._endpoints.pop(name, None)
        self._stop(endpoint)

    def invoke(self, invocation: Invocation) -> Response:
        """Answer an invocation; see `EndpointHost.invoke`."""
        return self._answer(invocation, Deadline(invocation.seconds), answer)

    def stream(self, invocation: Invocation) -> Response | StreamedResponse:
        """Answer an invocation in parts; see `EndpointHost.stream`."""
        return self._answer(invocation, Deadline(limits.MAX_STREAM_SECONDS), stream)

    def _answer(self, invocation: Invocation, deadline: Deadline, answered_by: Answer[_T]) -> _T | Response:
        errors = self._errors(invocation.endpoint)
        try:
            validate_request(invocation, errors)
            while True:
                endpoint = self._endpoints.get(invocation.endpoint)
                if endpoint is None:
                    raise errors.no_endpoint()
                update = self._updates.get(invocation.endpoint)
                if update is not None and update.get_the_next():
                    endpoint = update.servers
                if not endpoint.variants:
                    return self._components.answer(invocation, errors, deadline, answered_by)
                if COMPONENT_HEADER in invocation.headers:
                    raise errors.component_unexpected()
                variant = choose_variant(endpoint.variants, invocation, errors)
                for shadow in endpoint.shadows:
                    shadow.copy(variant, invocation, errors)
                try:
                    return answered_by(variant, invocation, errors, deadline)
                except RetiredError:
                    continue  # an update swapped the variants meanwhile
        except RejectedInvocationError as rejection:
            return rejection.response
        except Exception as error:  # the contract: never an exception
            self._log(f"endpoint {invocation.endpoint}: {error!r}")
            return errors.internal(f"the local gateway failed: {error!r}").response

    def close(self) -> None:
        """Stop every endpoint and remove the unpacked model data; the logs stay.

        Servers that are starting, and invocations in flight, are ended after a short wait.
        """
        self._settings.closing.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._starting, _CLOSE_SECONDS)
            endpoints = list(self._endpoints.values())
            self._endpoints.clear()
        self._components.close()
        self._stop(*endpoints)
        shutil.rmtree(self._directory / "endpoints", ignore_errors=True)

    def _start_all_or_none(self, endpoint: Endpoint) -> _InService:
        for name in (endpoint.name, *(variant.name for variant in (*endpoint.variants, *endpoint.shadows))):
            if len(name) > limits.MAX_NAME_LENGTH or not re.fullmatch(limits.NAME_PATTERN, name):
                raise LocalError(
                    f"SageMaker does not accept the name {name!r} of an endpoint or variant; use 1 to 63 letters and "
                    "digits, with hyphens between them"
                )
        prefix = f"{endpoint.name}-{next(self._deployments)}"
        logs = self._logs / endpoint.name
        logs.mkdir(parents=True, exist_ok=True)
        started: list[RunningVariant] = []
        try:
            for variant in (*endpoint.variants, *endpoint.shadows):
                started.append(
                    RunningVariant(
                        variant,
                        self._settings,
                        self._directory / "endpoints" / f"{prefix}-{variant.name}",
                        logs / f"{variant.name}.log",
                        self._errors(endpoint.name),
                        self._recorder(endpoint, variant),
                    )
                )
        except BaseException:
            self._stop(_InService(tuple(started)))
            raise
        count = len(endpoint.variants)
        shadows = (Shadow(variant, endpoint.name, self._log) for variant in started[count:])
        return _InService(tuple(started[:count]), tuple(shadows))

    def _recorder(self, endpoint: Endpoint, variant: Variant) -> Record:
        """Metrics of an instance pool also have its instance type."""
        return functools.partial(
            self._record,
            endpoint.name,
            variant.name,
            configuration=endpoint.config_name,
            instance_type=variant.instance_type if variant.in_pool else "",
        )

    def _stop(self, *endpoints: _InService | None) -> None:
        """In parallel, because Triton takes two to four seconds to end its Python models."""
        for shadow in (shadow for endpoint in endpoints if endpoint for shadow in endpoint.shadows):
            shadow.close()
        if variants := [variant for endpoint in endpoints if endpoint for variant in endpoint.all]:
            with ThreadPoolExecutor(len(variants)) as pool:
                list(pool.map(RunningVariant.stop, variants))

    def _errors(self, endpoint: str) -> ErrorResponses:
        return ErrorResponses(endpoint, account=self._account, region=self._region, log_options=self._log_options)
