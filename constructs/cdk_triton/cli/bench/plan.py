"""Runs a planned load: the warm-up, the rates, and some minutes at the knee, with CloudWatch's metrics of these."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from cdk_triton.cli.artifacts.aws import Aws, code_of
from cdk_triton.cli.bench import cloudwatch
from cdk_triton.cli.bench.arrivals import send_times
from cdk_triton.cli.bench.cold import cold_loads
from cdk_triton.cli.bench.kinds import Arrivals
from cdk_triton.cli.bench.load import load
from cdk_triton.cli.bench.measurement import Measurement
from cdk_triton.cli.bench.report import Report
from cdk_triton.cli.bench.sender import NO_BOTO3, sender, try_request
from cdk_triton.cli.bench.sequences import SendStep, Sequences, new_ids
from cdk_triton.cli.bench.sweep import ends_sweep, knee, rates
from cdk_triton.cli.endpoints.reading import ReadEndpoint, ServedModel
from cdk_triton.cli.progress import Progress, working
from cdk_triton.client import TritonClient
from cdk_triton.client.direct_runtime import DirectRuntime
from cdk_triton.client.invocation import Invocation
from cdk_triton.client.kserve import Body
from cdk_triton.client.names import Target
from cdk_triton.client.options import InferOptions, single_model
from cdk_triton.client.scheduling import SequenceStep
from cdk_triton.errors import ConfigurationError, InvocationError, InvocationTimeoutError, ModelNotReadyError
from cdk_triton.sagemaker import gpu_instance

__all__ = ["KNEE_SECONDS", "Plan", "run", "run_cold"]

_OF_LOAD = ("ServiceUnavailable", "ThrottlingException")
"""Errors that the same request may not have a second later (API reference of InvokeEndpoint, "Common Error Types")."""

KNEE_SECONDS = (cloudwatch.LEAST_MINUTES + 1) * 60.0
"""So many seconds have three full minutes of the clock in them, whenever they begin."""


@dataclass(frozen=True)
class Plan:
    """The load as the options describe it; times are in seconds, rates in requests per second."""

    endpoint: str
    rate: float
    max_rate: float | None
    duration: float
    warm_up: float
    arrivals: Arrivals
    seed: int
    is_local: bool
    stream: bool = False
    sequences: Sequences | None = None

    @property
    def rates(self) -> list[float]:
        """The rates, in their order."""
        return [self.rate] if self.max_rate is None else rates(self.rate, self.max_rate)

    @property
    def longest(self) -> float:
        """Seconds of load, if every rate is held."""
        at_knee = 0.0 if self.max_rate is None or self.is_local else KNEE_SECONDS
        return self.warm_up + self.duration * len(self.rates) + at_knee

    @property
    def question(self) -> str:
        """The load, before the words that name the account."""
        return f"up to {self.rates[-1]:g} requests per second for up to {self.time} to '{self.endpoint}'"

    @property
    def time(self) -> str:
        """The longest time, in words."""
        return f"{self.longest:.0f} seconds" if self.longest < 120 else f"{self.longest / 60:.0f} minutes"


def run(
    aws: Aws,
    endpoint: ReadEndpoint,
    plan: Plan,
    body: Body,
    asked: tuple[str | None, str | None],
    variant: str | None,
    *,
    say: Callable[[str], None],
) -> Report:
    """Put the planned load on an endpoint.

    Raises:
        ClientError, BotoCoreError: AWS did not answer as expected.
        ConfigurationError: the endpoint does not have the variant, or has too many instances for sequences, or the
            environment sets a proxy or a CA bundle.
        InvocationError: the first request fails for a reason other than load by other callers.
    """
    answering = _answering(endpoint, variant, asked[1])
    report = Report(plan.endpoint, plan.is_local, max(sum(each.instances or 1 for each in answering), 1))
    if plan.sequences is not None:
        _require_one(report)
    request_at = partial(_request, plan, body, asked, variant)
    step = None if plan.sequences is None else SequenceStep(next(new_ids()), True, True)
    _try_request(aws, request_at(step), stream=plan.stream)
    if plan.max_rate is not None:
        say(f"{len(plan.rates)} rates from {plan.rate:g}/s to {plan.max_rate:g}/s: up to {plan.time}")
    connected = sender(aws.session, request_at, report.messages, stream=plan.stream)
    began = asyncio.run(_run_load(connected, plan, report, say))
    if report.at_knee is not None and not report.is_interrupted:
        _add_utilization(aws, report, answering, began)
    return report


def _require_one(report: Report) -> None:
    """SageMaker sends the requests of a sequence to any instance, and only one of these has the state."""
    if report.instances > 1:
        raise ConfigurationError(
            f"{report.instances} instances or copies answer at the endpoint '{report.endpoint}', so the requests of a "
            "sequence would not all reach the same one: measure an endpoint with one, or add a --variant that has one"
        )


def _request(
    plan: Plan,
    body: Body,
    asked: tuple[str | None, str | None],
    variant: str | None,
    step: SequenceStep | None,
) -> Invocation:
    options: InferOptions = {"target_variant": variant, "inference_component": asked[1]}
    target = Target(plan.endpoint, asked[0])
    if plan.stream:
        return Invocation.generating(target, body.arrays, {**body.generate_options, **single_model(options)})
    return Invocation.of(target, body.inputs, {**options, **body.options}, step)


def _try_request(aws: Aws, request: Invocation, *, stream: bool) -> None:
    """Send the request once, so that an error that each request has shows before minutes of load.

    Raises:
        InvocationError: the request fails, and not for the load that others put on the endpoint.
    """
    try:
        asyncio.run(try_request(aws.session, request, stream=stream))
    except (InvocationTimeoutError, ModelNotReadyError):
        return
    except InvocationError as error:
        if not isinstance(error.__cause__, ClientError) or code_of(error.__cause__) not in _OF_LOAD:
            raise


def _answering(endpoint: ReadEndpoint, variant: str | None, component: str | None) -> Sequence[ServedModel]:
    if component is not None:
        return [each for each in endpoint.components if each.name == component]
    found = [each for each in endpoint.variants if variant in (None, each.name)]
    if not found:
        names = ", ".join(each.name for each in endpoint.variants)
        raise ConfigurationError(f"the endpoint '{endpoint.name}' has no variant '{variant}': it has {names}")
    return found


def _add_utilization(aws: Aws, report: Report, answering: Sequence[ServedModel], period: tuple[float, float]) -> None:
    """If CloudWatch does not answer, the report has a note, and the results of the load stay."""
    if len(answering) != 1 or answering[0].instance_type is None:
        report.gpu_note = "is measured only if one variant with one instance type answers"
        return
    try:
        gpus = gpu_instance(answering[0].instance_type).gpu_count
        with working("waiting for CloudWatch's GPUUtilization, some minutes at most"):
            report.gpu_percent = cloudwatch.gpu_utilization(aws, report.endpoint, answering[0].name, period, gpus)
    except KeyboardInterrupt:
        report.is_interrupted = True
    except ConfigurationError as error:
        report.gpu_note = f"is not known: {error}"
    except (BotoCoreError, ClientError) as error:
        report.gpu_note = f"is not known, because CloudWatch did not answer: {error}"


async def _run_load(
    connected: AbstractAsyncContextManager[SendStep], plan: Plan, report: Report, say: Callable[[str], None]
) -> tuple[float, float]:
    """Fill the report, and return when the minutes at the knee began and ended."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, ValueError, RuntimeError):  # not in the main thread
        loop.add_signal_handler(signal.SIGINT, stop.set)
    period = (0.0, 0.0)
    async with connected as send:
        if plan.warm_up:
            with working(f"warm-up: {plan.rate:.4g} requests per second for {plan.warm_up:g} s") as progress:
                await _measure(send, plan, plan.rate, plan.warm_up, stop, progress)
        for number, rate in enumerate(plan.rates):
            if stop.is_set():
                break
            with working(f"{rate:.4g} requests per second for {plan.duration:g} s") as progress:
                measured = await _measure(send, plan, rate, plan.duration, stop, progress, number)
            report.sweep.append(measured)
            say(f"{rate:.4g}/s: {measured.answered:,} of {measured.planned:,} answered, {measured.achieved:.4g}/s")
            report.ended = "" if plan.max_rate is None else ends_sweep(measured)
            if report.ended:
                break
        if plan.max_rate is not None:
            report.knee = knee(report.sweep)
        if report.knee is not None and not plan.is_local and not stop.is_set():
            began = time.time()
            text = f"{report.knee.rate:.4g} requests per second for {KNEE_SECONDS:g} s, at the knee"
            with working(text) as progress:
                report.at_knee = await _measure(send, plan, report.knee.rate, KNEE_SECONDS, stop, progress)
            period = (began, time.time())
    report.is_interrupted = stop.is_set()
    return period


async def _measure(
    send: SendStep,
    plan: Plan,
    rate: float,
    seconds: float,
    stop: asyncio.Event,
    progress: Progress,
    number: int = 0,
) -> Measurement:
    """Each rate (`number`) has random times of its own, so that unlucky times do not affect all rates."""
    times = send_times(rate, seconds, plan.arrivals, plan.seed + number)
    sequences = plan.sequences
    if sequences is None:
        return await load(send, times, rate, seconds, stop, progress)
    dealt = sequences.dealt(send, rate, len(times))
    measured = await load(dealt, times, rate, seconds, stop, progress)
    await dealt.end()
    measured.sequences = sequences.at_a_time(rate)
    return measured


def run_cold(aws: Aws, endpoint: ReadEndpoint, plan: Plan, bodies: Sequence[tuple[str, Body]]) -> Report:
    """Send two requests to each target model.

    Raises:
        ClientError, BotoCoreError: AWS did not answer as expected.
    """
    report = Report(plan.endpoint, plan.is_local, max(sum(each.instances or 1 for each in endpoint.variants), 1))
    client = TritonClient(plan.endpoint, DirectRuntime(1, session=aws.session, fix=NO_BOTO3))
    began = time.time()
    try:
        with working("cold loads") as progress:
            for each in cold_loads(client, iter(bodies)):
                report.cold.append(each)
                progress.say(f"cold loads: {len(report.cold)} of {len(bodies)}")
    except KeyboardInterrupt:
        report.is_interrupted = True
    if not report.is_interrupted and any(each.is_cold for each in report.cold):
        _add_parts(aws, report, endpoint.variants[0].name, began)
    return report


def _add_parts(aws: Aws, report: Report, variant: str, began: float) -> None:
    """If CloudWatch does not answer, the results of the cold loads stay."""
    pause = 1.0 if report.is_local else 15.0
    try:
        with suppress(BotoCoreError, ClientError), working("waiting for CloudWatch's parts, some minutes at most"):
            count = sum(each.is_cold for each in report.cold)
            report.parts = cloudwatch.awaited_load_parts(aws, report.endpoint, variant, began, count, pause=pause)
    except KeyboardInterrupt:
        report.is_interrupted = True
