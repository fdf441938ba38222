"""Starts and stops an AWS on this machine, on one loopback port.

moto keeps the state. CloudFormation, Lambda functions, endpoints and build jobs are real enough to deploy to; each has
a package of its own.
"""

from __future__ import annotations

import functools
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from cdk_triton.errors import LocalError
from cdk_triton_local.clock import Clock
from cdk_triton_local.endpoints import EndpointHost
from cdk_triton_local.faults import Faults, ServiceError
from cdk_triton_local.process import (
    CALLER,
    CLOUDFORMATION,
    EVENTBRIDGE,
    ITSELF,
    Call,
    Principals,
    conflicting_variables,
    endpoint_variables,
    no_proxy,
)
from cdk_triton_local.running import directory_option
from cdk_triton_local.skipped_time import SkippedTime

if TYPE_CHECKING:
    from cdk_triton_local.cloudformation import Mailbox
    from cdk_triton_local.front import SignedRequest
    from cdk_triton_local.lambdas import Executions

__all__ = ["LocalAws"]

HostFactory = Callable[["LocalAws"], EndpointHost]

_OF_NO_USER = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}
"""botocore's session variables (name in the file, variable, default, conversion) without profile and files."""

_running = threading.Lock()


def _triton_host(aws: LocalAws) -> EndpointHost:
    from cdk_triton_local.triton import TritonHost

    return TritonHost(
        s3=lambda role: aws.client("s3", role),
        directory=aws.directory / "endpoints",
        log=aws.log,
        account=aws.account,
        region=aws.region,
        record=aws.metrics.record,
        record_component=aws.metrics.record_component,
    )


class LocalAws:
    """An AWS on this machine.

    ::

        with LocalAws(Path(".cdk-triton/local")) as aws:
            subprocess.run(["cdk", "deploy"], env=aws.process_environment())

    Args:
        directory: the directory of functions, endpoints and logs.
        port: 0 for any free one.
        region: the region of this AWS.
        account: the account of this AWS, 12 digits.
        host_factory: makes the host that runs endpoints; by default one with real tritonservers.
        log: called with one line per event.
        clock: a clock of your own, which you can move; by default one that runs.
        faults: the faults of AWS that it has from the start; see `inject`.

    Attributes:
        clock: see the argument.
        faults: those that are injected now.
        time: the time of functions, state machines and jobs.
        on_call: called with each call of a service, before it is answered, of any local AWS; None by default. Tests
            record the calls.

    Raises:
        LocalError: `start` cannot have the port, or this process runs another local AWS: moto's state belongs to the
            process.
    """

    on_call: ClassVar[Callable[[LocalAws, Call], None] | None] = None

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        region: str = "us-east-1",
        account: str = "123456789012",
        host_factory: HostFactory = _triton_host,
        log: Callable[[str], None] = lambda line: None,
        clock: Clock | None = None,
        faults: Sequence[str] = (),
    ) -> None:
        self.clock = Clock() if clock is None else clock
        self.directory = directory
        self.region = region
        self.account = account
        self.log = log
        self.url = ""
        self._secret = secrets.token_hex(20)  # as long as AWS's
        self._principals = Principals(account, self._secret)
        self._port = port
        self._host_factory = host_factory
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self.time = SkippedTime(self._stopping)
        self._close: list[Callable[[], Any]] = []
        self.faults = Faults()
        self._injected = faults

    def __enter__(self) -> LocalAws:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start answering; returns when clients can connect.

        Raises:
            LocalError: see the class.
        """
        if not _running.acquire(blocking=False):
            raise LocalError("this process runs a local AWS already; stop that one first, or use another process")
        self._close.append(_running.release)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything, whatever is under way; a second call does nothing."""
        self._stopping.set()
        while self._close:
            self._close.pop()()

    def environment(self, principal: str = CALLER) -> dict[str, str]:
        """The variables that make boto3, the AWS CLI and the CDK CLI talk to this AWS.

        Together with a variable of `cdk_triton_local.conflicting_variables`, they may lead to a real AWS;
        `process_environment` excludes that.

        Args:
            principal: as for `client`.
        """
        return {**self._variables(), **self._principals.credentials(principal), **no_proxy(os.environ)}

    def process_environment(self, base: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The whole environment of a program that can call this AWS and no other.

        Args:
            base: further variables; profiles, session tokens and endpoints of services are removed from them.
        """
        left_out = conflicting_variables(base)
        kept = {name: value for name, value in base.items() if name not in left_out}
        return kept | self._variables() | no_proxy(base)

    def client(self, service: str, principal: str = CALLER) -> Any:
        """A boto3 client of this AWS; one per service and principal, shared.

        Args:
            service: the service.
            principal: who calls: the ARN of a role, or a name of `cdk_triton_local.process.principals`. Without a role,
                the local AWS itself.
        """
        from botocore.config import Config

        principal = principal or ITSELF
        with self._lock:
            if (service, principal) not in self._clients:
                key = self._principals.credentials(principal)
                self._clients[service, principal] = self._session.client(
                    service,
                    aws_access_key_id=key["AWS_ACCESS_KEY_ID"],
                    aws_secret_access_key=key["AWS_SECRET_ACCESS_KEY"],
                    endpoint_url=self.url,
                    config=Config(
                        retries={"total_max_attempts": 1},
                        proxies={},
                        max_pool_connections=20,
                        use_fips_endpoint=False,
                        use_dualstack_endpoint=False,
                    ),
                )
            return self._clients[service, principal]

    @functools.cached_property
    def _session(self) -> Any:
        """Shared, because a session takes 0.1 s to read botocore's tables of endpoints."""
        import boto3
        import botocore.session

        return boto3.session.Session(botocore_session=botocore.session.Session(_OF_NO_USER), region_name=self.region)

    def invoke_function(self, function: str, event: Any, principal: str = CALLER) -> Any:
        """Run a Lambda function for a principal; see `cdk_triton_local.lambdas.LambdaRuntime.invoke`.

        Raises:
            NotRunError: Lambda rejects the call for now, too.
        """
        from cdk_triton_local.lambdas import NotRunError

        error = self._reported(Call(principal, "lambda", "Invoke", {"FunctionName": function}))
        result = self._lambdas.invoke(function, event) if error is None or error.is_late else None
        if error is not None:
            raise NotRunError(error.code, error.status, error.message)
        return result

    @property
    def executions(self) -> Executions:
        """The concurrent executions of Lambda functions."""
        return self._lambdas.executions

    @property
    def function_log_groups(self) -> dict[str, str]:
        """The log groups of Lambda functions, by name: only of those that do not write into that of their name."""
        return self._lambdas.log_groups

    def inject(self, *faults: str, seed: int | None = None) -> Faults:
        """Inject faults from now on, instead of those before; see `cdk_triton_local.faults.Faults`.

        While there are any, pauses are skipped, and the time passes faster; see `cdk_triton_local.skipped_time`.

        Args:
            faults: their names; none for an AWS without faults.
            seed: see `Faults`.

        Raises:
            LocalError: there is no such fault.
        """
        self.faults = Faults(faults, seed, self._lambdas.roles, lambda: self.time.now, *self._state_readers)
        self.time.skips = bool(self.faults)
        return self.faults

    def open_mailbox(self) -> Mailbox:
        """A place where a custom resource can PUT its answer."""
        return self._routes.open_mailbox(self.url)

    def _variables(self) -> dict[str, str]:
        return endpoint_variables(self.url, self.region, self.account, self._secret)

    def _secret_of(self, key: str, issued: Callable[[str], str | None]) -> str | None:
        """Our own secret, or one that IAM or STS has issued."""
        return issued(key) if self._principals.of_key(key) is None else self._secret

    def _read(self, request: SignedRequest) -> ServiceError | None:
        """Report the call of a request; returns the error that it gets."""
        from cdk_triton_local.front import key_and_service, read_call

        if not self.faults and LocalAws.on_call is None:
            return None
        key, service = key_and_service(request)
        call = read_call(self._principals.of_key(key) or CALLER, request, service)
        error = None if call is None else self._reported(call)
        if error is not None:
            request.body()  # a client that still sends it would not read the error
        return error

    def _reported(self, call: Call) -> ServiceError | None:
        if LocalAws.on_call is not None:
            LocalAws.on_call(self, call)
        return self.faults.error(call)

    def _announce(self, endpoint: Any) -> None:
        """Send the event of an endpoint's new status."""
        name, configuration = endpoint.endpoint_name, endpoint.endpoint_config_name
        self._events.send(endpoint.arn, name, configuration, endpoint.endpoint_status, self.clock.machine_now)

    def _start(self) -> None:
        # moto, Flask and the service models take a second to import, and a process that asks for a status needs none.
        from cdk_triton_local.cloudformation import CloudFormationApi, TemplateEngine
        from cdk_triton_local.endpoints.async_host import AsyncHost
        from cdk_triton_local.endpoints.capacity import Capacity
        from cdk_triton_local.endpoints.components import ComponentOperations
        from cdk_triton_local.endpoints.data_capture import CapturingHost
        from cdk_triton_local.endpoints.instance_changes import change_instances
        from cdk_triton_local.endpoints.metrics import EndpointMetrics
        from cdk_triton_local.endpoints.operations import EndpointOperations
        from cdk_triton_local.front import Routes, Server, Signatures, unanswered
        from cdk_triton_local.jobs import CodeBuild, LocalContext, Processing, put_function_log
        from cdk_triton_local.lambdas import LambdaRuntime
        from cdk_triton_local.moto_state import MotoState
        from cdk_triton_local.services import (
            EndpointEvents,
            Monitoring,
            StateMachines,
            TritonImages,
            service_quotas,
        )

        self._stopping.clear()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = MotoState(self.region, self.account)
        self._close.append(state.close)
        self._state_readers = state.role_statements, state.reached_services
        signatures = Signatures(
            lambda key: self._secret_of(key, state.issued_secret), directory_option(self.directory.absolute())
        )
        self._routes = Routes(state, signatures, self.log)
        server = Server(self._routes, self._port)
        self._routes.on_request = self._read
        self._close.append(server.stop)
        self.url = server.url
        variables = self._variables()
        self._lambdas = LambdaRuntime(
            self.directory,
            lambda role: {**variables, **self._principals.credentials(role)},
            state.function,
            lambda group, text: put_function_log(self.client("logs", ITSELF), group, text),
            self.time,
            lambda subnets: unanswered(self.faults.services(subnets)),
        )
        self.inject(*self._injected)
        context = LocalContext(
            self.directory.absolute(),
            self.region,
            self.account,
            variables,
            self.client,
            self.log,
            self._principals.credentials,
            clock=lambda: self.time.now,
            start_seconds=lambda service: self.faults.start_seconds(service),
            working=self.time.working,
        )
        builds, jobs = CodeBuild(context), Processing(context)
        self._routes.codebuild, self._routes.processing = builds.api, jobs.api
        self._routes.images = TritonImages(self.region)
        self._routes.quotas = service_quotas(self.region, self.account)
        deploying = _DeployingServices(self)
        engine = TemplateEngine(deploying, region=self.region, account=self.account, log=self.log)
        self._routes.cloudformation = CloudFormationApi(engine, deploying)
        self._routes.lambdas = self._lambdas
        self._close.append(state.let_machines_use(self.client, self.time.sleep))
        self._routes.state_machines = StateMachines(
            lambda: self.client("stepfunctions", ITSELF),
            self.invoke_function,
            self.time.sleep,
            self.log,
            lambda: self.time.now,
        )
        self.metrics = EndpointMetrics(
            lambda: self.client("cloudwatch", ITSELF), lambda: self.clock.machine_now, state.variant_instances
        )
        state.let_change_instances(functools.partial(change_instances, self.clock))
        monitoring = Monitoring(
            self.clock, self.client, self.metrics.publish, state.new_metric_data, state.scalable_targets, self.log
        )
        captured = CapturingHost(self._host_factory(self), lambda role: self.client("s3", role), self.log)
        self._routes.host = host = AsyncHost(
            captured,
            client=self.client,
            instances=state.instances,
            record=self.metrics.record,
            now=lambda: self.clock.now,
            log=self.log,
            region=self.region,
        )
        self.metrics.before_publishing = host.report
        self._routes.submit = host.submit
        sagemaker = self.client("sagemaker", ITSELF)
        self._events = EndpointEvents(
            lambda: self.client("events", ITSELF),
            lambda: self.client("sns", EVENTBRIDGE),
            state.matches,
            self.account,
            self.region,
        )
        self._routes.endpoints = endpoints = EndpointOperations(
            host,
            sagemaker,
            state.endpoints,
            state.endpoint_configurations,
            state.scaled_variants,
            Capacity(self.directory).of,
            monitoring.alarm_states,
            self.clock,
            self._announce,
            self.log,
            lambda: self.time.working(after=lambda: self.faults.start_seconds("sagemaker")),
        )
        self._routes.components = ComponentOperations(
            host, endpoints, state.endpoints, sagemaker, state.components, f"{self.region}:{self.account}", self.log
        )
        # Last in, first out: what an operation may wait for ends before the operation is waited for.
        self._close += [self._clients.clear, engine.close, host.close, self._lambdas.close, builds.close, jobs.close]
        server.start()
        self._close.append(self.clock.close)
        self.clock.open()
        self.clock.start(monitoring.watch())
        self.log(f"the local AWS answers at {self.url}")


class _DeployingServices:
    """What CloudFormation's resource types use of a local AWS, by default with the permissions of a deployment."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self.open_mailbox = aws.open_mailbox
        self.sleep = aws.time.sleep
        self.time = aws.time

    def client(self, service: str, principal: str = CLOUDFORMATION) -> Any:
        """See `Services`."""
        return self._aws.client(service, principal)

    def invoke_function(self, function: str, event: Mapping[str, Any], principal: str = CLOUDFORMATION) -> Any:
        """See `Services`."""
        return self._aws.invoke_function(function, event, principal)

    def deliveries(self) -> int:
        """See `Services`."""
        return self._aws.faults.deliveries()

    @property
    def executions(self) -> Executions:
        """See `Services`."""
        return self._aws.executions

    @property
    def function_log_groups(self) -> dict[str, str]:
        """See `Services`."""
        return self._aws.function_log_groups
