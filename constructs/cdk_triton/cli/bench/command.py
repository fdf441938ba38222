"""The command `bench`: makes the request, asks for confirmation, and prints the results."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.cli.bench.kinds import Arrivals
from cdk_triton.cli.given import finite, require_unused
from cdk_triton.cli.invoke.command import AnswerFormat, usage_errors
from cdk_triton.cli.requests.options import (
    ComponentOption,
    DataOption,
    InputOption,
    RandomOption,
    RepositoryOption,
    TargetOption,
    VariantOption,
    check_sources,
    check_target,
    request_body,
)
from cdk_triton.cli.requests.scheduling import (
    CustomAttributesOption,
    PriorityOption,
    QueueTimeoutOption,
    in_queue,
    require_no_sequence,
)
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    from cdk_triton.cli.artifacts.aws import Aws
    from cdk_triton.cli.bench.plan import Plan
    from cdk_triton.cli.bench.report import Report
    from cdk_triton.cli.bench.sequences import Sequences
    from cdk_triton.cli.endpoints.reading import ReadEndpoint
    from cdk_triton.client.kserve import Body

__all__ = ["bench"]

_INTERRUPTED = 130
_MOST_REQUESTS = 10_000_000
_MOST_SEQUENCES = 100_000
_OF_SCHEDULERS = ("priority", "queue_timeout", "sequence_length", "sequence_interval")
"""The parameters that a stream does not use: Triton's generate protocol has no schedulers."""
_OF_A_RATE = (
    *("component", "variant", "rate", "max_rate", "duration", "warm_up", "arrivals", "seed", "stream", "plot"),
    *("custom_attributes", *_OF_SCHEDULERS),
)
"""The parameters of a load, which cold loads do not use."""


def bench(
    context: typer.Context,
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="The endpoint's name.", show_default=False)],
    target_model: TargetOption = None,
    component: ComponentOption = None,
    variant: VariantOption = None,
    data: DataOption = None,
    inputs: InputOption = None,
    random: RandomOption = False,
    repository: RepositoryOption = None,
    priority: PriorityOption = None,
    queue_timeout: QueueTimeoutOption = None,
    custom_attributes: CustomAttributesOption = None,
    sequence_length: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Send sequences of N requests, to a model that keeps state.")
    ] = None,
    sequence_interval: Annotated[
        float | None,
        typer.Option(
            min=0.001, callback=finite, metavar="SECONDS", help="The mean time between two requests of a sequence."
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.01, callback=finite, help="Requests per second, or the lowest rate of a sweep.")
    ] = 1.0,
    max_rate: Annotated[
        float | None, typer.Option(min=0.01, callback=finite, help="Sweep up to this rate, and find the knee.")
    ] = None,
    duration: Annotated[
        float, typer.Option(min=1, callback=finite, metavar="SECONDS", help="How long each rate is held.")
    ] = 60.0,
    warm_up: Annotated[
        float,
        typer.Option(
            min=0, callback=finite, metavar="SECONDS", help="Load at the lowest rate first, which is not counted."
        ),
    ] = 10.0,
    arrivals: Annotated[Arrivals, typer.Option(help="Times between requests: random, or equal.")] = Arrivals.POISSON,
    seed: Annotated[int, typer.Option(min=0, help="Requests of the same seed have the same times.")] = 0,
    cold: Annotated[
        bool, typer.Option("--cold", help="No load: call each target model of a multi-model endpoint twice.")
    ] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="For an endpoint that generates: measure each result of a stream.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the sweep, as SVG.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for a confirmation before a load on AWS.")] = False,
    output: Annotated[AnswerFormat, typer.Option("--format", help="How to print.")] = AnswerFormat.TEXT,
) -> None:
    """Put load on an endpoint, and print latency, throughput and the settings for scaling.

    Example: cdk-triton bench my-endpoint --random --rate 5 --max-rate 200

    The load is an open loop: requests leave at fixed times, and latency counts from these.
    """
    from cdk_triton.cli.artifacts.aws import Aws, sentences
    from cdk_triton.cli.extras import require_extra

    with usage_errors(), sentences(InvocationError):
        require_extra("bench", "`cdk-triton bench`")
        if cold:
            require_unused(context, "--cold", *_OF_A_RATE)
        if stream:
            require_unused(context, "--stream", *_OF_SCHEDULERS)
        if arrivals is Arrivals.CONSTANT:
            require_unused(context, "--arrivals constant", "seed")
        if plot is not None:
            from cdk_triton.cli.extras import require_plots

            require_plots(plot)
        if max_rate is not None and max_rate < rate:
            raise ConfigurationError(f"--max-rate is {max_rate:g}, below --rate {rate:g}: give a higher --max-rate")
        highest = rate if max_rate is None else max_rate
        _check_size(highest, duration)
        _check_size(rate, warm_up)
        sequences = _sequences(sequence_length, sequence_interval, rate, highest, duration)
        check_sources(context, data, inputs or (), random=random)
        aws = Aws()
        found = _ready(aws, endpoint)
        from cdk_triton.cli.bench.plan import Plan, run
        from cdk_triton.cli.invoke.streaming import check_protocol

        plan = Plan(
            *(endpoint, rate, max_rate, duration, warm_up, arrivals, seed),
            is_local=aws.is_local,
            stream=stream,
            sequences=sequences,
        )
        if cold:
            report = _cold(aws, found, plan, data, inputs, repository, random=random, yes=yes, target=target_model)
        else:
            asked = check_target(found, target_model, component)
            check_protocol(found, asked[1], stream=stream)
            body, _ = request_body(
                aws, found, asked, data=data, inputs=inputs or (), random=random, repository=repository
            )
            body = in_queue(replace(body, custom_attributes=custom_attributes), priority, queue_timeout)
            require_no_sequence(body)
            _confirm(aws, plan.question, yes=yes)
            report = run(aws, found, plan, body, asked, variant, say=_say)
    _print(report, output)
    if plot is not None and report.sweep:
        from cdk_triton.cli.bench.plots import write_plot

        write_plot(report, plot)
    if report.is_interrupted:
        raise typer.Exit(_INTERRUPTED)
    if not report.has_answers:
        raise typer.Exit(1)


def _check_size(rate: float, seconds: float) -> None:
    """The times of all requests are computed before the load, and must fit into the memory."""
    if rate * seconds > _MOST_REQUESTS:
        raise ConfigurationError(
            f"{rate:g} requests per second for {seconds:g} seconds are {rate * seconds:,.0f} requests, but bench plans "
            f"at most {_MOST_REQUESTS:,} at a time: give a lower rate or a shorter time"
        )


def _sequences(
    length: int | None, interval: float | None, rate: float, highest: float, duration: float
) -> Sequences | None:
    """With a fixed number of sequences, a sweep would end where each waits for its own answers."""
    from cdk_triton.cli.bench.sequences import Sequences

    if length is None and interval is None:
        return None
    if length is None or interval is None:
        missing = "--sequence-length" if length is None else "--sequence-interval"
        raise ConfigurationError(
            "--sequence-length and --sequence-interval belong together, because the interval and the rate give the "
            f"number of sequences at a time: add {missing}"
        )
    if rate * interval < 1:
        raise ConfigurationError(
            f"--rate {rate:g} is too low for one sequence with a request every {interval:g} seconds: give a --rate of "
            f"{ceil(100 / interval) / 100:g} or more"
        )
    if interval > duration:
        raise ConfigurationError(
            f"--sequence-interval is {interval:g}, longer than a rate is held, so no sequence would have two requests: "
            f"give a --duration of more than {interval:g}, or a shorter interval"
        )
    if highest * interval > _MOST_SEQUENCES:
        raise ConfigurationError(
            f"{highest:g} requests per second are {highest * interval:,.0f} sequences with a request every "
            f"{interval:g} seconds, but bench has at most {_MOST_SEQUENCES:,} at a time: give a lower rate or "
            "a shorter interval"
        )
    return Sequences(length, interval)


def _ready(aws: Aws, name: str) -> ReadEndpoint:
    from cdk_triton.cli.endpoints.reading import Kind, read_endpoint

    found = read_endpoint(aws, name)
    if found is None or not found.variants:
        raise InvocationError(
            f"you do not have the permission to describe the endpoint '{name}', so bench cannot read the number of its "
            "instances: get the permissions sagemaker:DescribeEndpoint, sagemaker:DescribeEndpointConfig and "
            "sagemaker:DescribeModel"
        )
    if found.status != "InService":
        raise InvocationError(
            f"the endpoint '{name}' is {found.status}, so its instances change and a measurement has no meaning: wait "
            "until the endpoint is InService"
        )
    if found.kind is Kind.ASYNC:
        raise ConfigurationError(
            f"the endpoint '{name}' is asynchronous: its queue accepts every rate, so there is no knee to find"
        )
    return found


def _confirm(aws: Aws, question: str, *, yes: bool) -> None:
    """Load on AWS costs money and may harm callers."""
    if aws.is_local or yes:
        return
    account = aws.client("sts").get_caller_identity()["Account"]
    text = f"bench sends {question} of the account {account} in {aws.region}"
    if not sys.stdin.isatty():
        raise ConfigurationError(f"{text}, but it cannot ask for confirmation without a terminal: add --yes to confirm")
    try:
        is_wanted = typer.confirm(f"{text}. Go on?", err=True)
    except typer.Abort as error:
        raise typer.Exit(_INTERRUPTED if isinstance(error.__context__, KeyboardInterrupt) else 1) from None
    if not is_wanted:
        raise typer.Exit(1)


def _cold(
    aws: Aws,
    endpoint: ReadEndpoint,
    plan: Plan,
    data: str | None,
    inputs: list[str] | None,
    repository: Path | None,
    *,
    random: bool,
    yes: bool,
    target: str | None,
) -> Report:
    from cdk_triton.cli.bench.plan import run_cold
    from cdk_triton.cli.endpoints.reading import Kind

    if endpoint.kind is not Kind.MULTI:
        raise ConfigurationError(f"the endpoint '{endpoint.name}' is not a multi-model endpoint: omit --cold")
    targets = [each.name for each in endpoint.current] if target is None else [endpoint.target(target)]

    def body_for(target: str) -> Body:
        body, _ = request_body(
            aws, endpoint, (target, None), data=data, inputs=inputs or (), random=random, repository=repository
        )
        require_no_sequence(body)
        return body

    bodies = [(each, body_for(each)) for each in targets]
    _confirm(aws, f"two requests to each of {len(targets)} target models of '{endpoint.name}'", yes=yes)
    return run_cold(aws, endpoint, plan, bodies)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print(report: Report, output: AnswerFormat) -> None:
    from cdk_triton.cli.bench.report import as_json, as_text

    if output is AnswerFormat.JSON:
        typer.echo(json.dumps(as_json(report), indent=2, ensure_ascii=False))
    else:
        for line in as_text(report):
            typer.echo(line)
    if report.ended and not report.is_interrupted:
        _say(f"no higher rate: {report.ended}")
