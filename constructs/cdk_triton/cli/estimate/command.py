"""The command `estimate`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.cli.given import finite, require_unused
from cdk_triton.cli.invoke.command import AnswerFormat, usage_errors
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.cli.estimate.policies import Policy
    from cdk_triton.cli.estimate.price import Price
    from cdk_triton.cli.estimate.report import Report, Row
    from cdk_triton.cli.estimate.trace import Instance, Trace

__all__ = ["estimate"]

_DEFAULT_APP = Path("cdk.out")

_OTHER_MINUTES = 7
"""Until an instance begins to load its models: it is provided, and gets the image and the archive. A guess."""


def estimate(
    context: typer.Context,
    requests_per_second: Annotated[
        float,
        typer.Option(
            min=0.001, callback=finite, help="The most that one instance answers, as `cdk-triton bench` prints it."
        ),
    ],
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Requests over time: CSV, or JSON of CloudWatch.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option(metavar="SHAPE", help="A week of requests, such as 'mon-fri 9-17=40, else=2'.")
    ] = None,
    application: Annotated[
        Path | None,
        typer.Option(
            "--app", "-a", metavar="DIR", help="The cloud assembly with the policies.", show_default="cdk.out"
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="POLICY", help="A policy, such as 'min=1 max=8 safety_factor=0.7'; may be repeated."
        ),
    ] = None,
    instance_type: Annotated[str | None, typer.Option(help="The instance type for --policy.")] = None,
    gpu_percent: Annotated[
        float | None, typer.Option(min=0.1, max=100, help="The utilization of one GPU at that rate.")
    ] = None,
    start_up: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=120,
            metavar="MINUTES",
            help="Minutes until a new instance answers.",
            show_default="8, more if a rehearsal of the app took over a minute to load",
        ),
    ] = None,
    price_per_hour: Annotated[
        float | None,
        typer.Option(min=0, callback=finite, metavar="USD", help="The price of an instance; AWS's own by default."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw instances over time, as SVG.")] = None,
    output: Annotated[AnswerFormat, typer.Option("--format", help="How to print.")] = AnswerFormat.TEXT,
) -> None:
    """Estimate instances, GPU-hours and cost of scaling policies: a model, not AWS.

    Example: cdk-triton estimate --requests-per-second 40 --shape '9-17=100, else=5' --policy 'min=1 max=8'

    A trace with several ensembles also compares one multi-model endpoint with an endpoint for each.

    MOST is the most instances at one time. OVER CAPACITY is the share of the requests beyond what the instances answer:
    they wait, or fail.
    """
    with usage_errors():
        if not policies:
            require_unused(context, "an estimate without --policy", "instance_type")
        if plot is not None:
            from cdk_triton.cli.extras import require_plots

            require_plots(plot)
        requests = _trace(trace, shape)
        chosen, omitted = _policies(application, policies or (), instance_type)
        from cdk_triton.cli.estimate.trace import Instance

        loaded, notes = _rehearsals(application, policies)
        minutes = _start_up(loaded) if start_up is None else start_up
        instance = Instance(requests_per_second * 60, gpu_percent, minutes)
        notes = [*_jobs(application, policies), *notes]
        report = _report(requests, chosen, omitted, instance, price_per_hour, notes)
        if plot is not None:
            from cdk_triton.cli.estimate.plots import write_plot

            write_plot(report, requests, plot)
    from cdk_triton.cli.estimate.report import as_json, as_text

    if output is AnswerFormat.JSON:
        typer.echo(json.dumps(as_json(report), indent=2, ensure_ascii=False))
    else:
        for line in as_text(report):
            typer.echo(line)


def _trace(file: Path | None, text: str | None) -> Trace:
    from cdk_triton.cli.estimate.trace import read_trace, shape

    if (file is None) == (text is None):
        raise ConfigurationError("an estimate needs one source of requests: give either --trace FILE or --shape SHAPE")
    if file is not None:
        return read_trace(file)
    assert text is not None
    return shape(text)


def _policies(
    app: Path | None, written: Sequence[str], instance_type: str | None
) -> tuple[Sequence[Policy], Sequence[str]]:
    """The policies of the app, if it is named or no policy is written, then the written ones; and what is omitted."""
    from cdk_triton.cli.estimate.policies import of_app, of_text
    from cdk_triton.sagemaker import gpu_instance

    chosen, omitted = of_app(app or _DEFAULT_APP) if app is not None or not written else ([], [])
    if not chosen and not written:
        reason = f"not modelled: {'; '.join(omitted)}" if omitted else "it has no endpoint with models"
        raise ConfigurationError(f"{app or _DEFAULT_APP} has nothing to estimate ({reason}): add --policy")
    if instance_type is not None:
        gpu_instance(instance_type)
    if app is None and written and (_DEFAULT_APP / "manifest.json").is_file():
        omitted = [f"the policies of {_DEFAULT_APP}, because --policy is given: add --app {_DEFAULT_APP}"]
    return [*chosen, *(of_text(each, instance_type) for each in written)], omitted


def _jobs(app: Path | None, written: Sequence[str] | None) -> Sequence[str]:
    """What the cost leaves out: the jobs of the app's deployments."""
    from cdk_triton.artifacts.served_repositories import SERVED_METADATA, gpu_minutes
    from cdk_triton.cli.artifacts.assembly import read_metadata

    if app is None and written:
        return []
    found = gpu_minutes(document for _, document, _ in read_metadata(app or _DEFAULT_APP, SERVED_METADATA))
    return [] if found is None else [f"the cost is that of instances: {found.sentence}"]


def _rehearsals(app: Path | None, written: Sequence[str] | None) -> tuple[float, Sequence[str]]:
    """The longest time to load of a model of the app, in seconds, and notes, from the rehearsals that have passed."""
    if app is None and written:
        return 0.0, []
    from botocore.exceptions import BotoCoreError, ClientError

    from cdk_triton.cli.artifacts.measured import measured
    from cdk_triton.cli.progress import working

    try:
        with working("reading the figures of rehearsals"):
            found = measured(app or _DEFAULT_APP)
    except (BotoCoreError, ClientError) as error:
        return 0.0, [f"the figures of rehearsals are not used, because AWS did not answer: {str(error).rstrip('.')}"]
    alone = [each for each in found if not each.is_multi_model]  # an instance starts with no ensemble of several
    loaded = {each.construct: figures.load_seconds for each in alone for figures in each.ensembles.values()}
    notes = [f"{name}: its models took {seconds:.0f} s to load in a rehearsal" for name, seconds in loaded.items()]
    return max(loaded.values(), default=0.0), [
        *notes,
        *(f"{each.construct}: {each.memory}" for each in found if each.memory),
    ]


def _start_up(loaded: float) -> int:
    """The minutes until an instance answers: 8 if its models load within one, a guess."""
    return _OTHER_MINUTES + max(1, math.ceil(loaded / 60))


def _report(
    trace: Trace,
    policies: Sequence[Policy],
    omitted: Sequence[str],
    instance: Instance,
    per_hour: float | None,
    last: Sequence[str],
) -> Report:
    from cdk_triton.cli.estimate.report import Report

    types = sorted({each.instance_type for each in policies if each.instance_type is not None})
    prices, notes = _prices(types, per_hour)
    rows = [_row(trace, each, instance, prices) for each in policies]
    if instance.gpu_percent is not None and not any(each.follows_gpu for each in policies):
        notes.append("--gpu-percent is not used: no policy follows the GPU")
    notes += [f"not modelled: {what}" for what in (*omitted, *(one for each in policies for one in each.not_modelled))]
    return Report(trace.source, trace.minutes, instance.requests / 60, rows, [*notes, *last])


def _row(trace: Trace, policy: Policy, instance: Instance, prices: dict[str | None, Price]) -> Row:
    from cdk_triton.cli.estimate.model import simulate
    from cdk_triton.cli.estimate.report import Row
    from cdk_triton.sagemaker import gpu_instance

    kind = policy.instance_type
    apart = trace.requests.values() if len(trace.requests) > 1 else ()
    return Row(
        policy,
        None if kind is None else gpu_instance(kind).gpu_count,
        prices.get(kind, prices.get(None)),
        simulate(_share(trace.total, policy), trace.start, policy, instance),
        [simulate(_share(each, policy), trace.start, policy, instance) for each in apart],
    )


def _share(requests: Sequence[float], policy: Policy) -> Sequence[float]:
    """The requests that the variant of a policy gets."""
    return requests if policy.share == 1 else [each * policy.share for each in requests]


def _prices(types: Sequence[str], per_hour: float | None) -> tuple[dict[str | None, Price], list[str]]:
    """By instance type, or under None for all types; and notes on missing prices."""
    from cdk_triton.cli.estimate.price import given, of_api
    from cdk_triton.cli.progress import working
    from cdk_triton.cli.region import deployment_region

    if per_hour is not None:
        notes = [f"--price-per-hour is the price of each type: {', '.join(types)}"] if len(types) > 1 else []
        return {None: given(per_hour)}, notes
    region = deployment_region()
    if not types or region is None:
        missing = "an instance type" if not types else "a region (AWS_REGION)"
        return {}, [f"no price without {missing}: add --price-per-hour"]
    found: dict[str | None, Price] = {}
    notes = []
    with working("asking AWS's Price List API"):
        for each in types:
            price = of_api(each, region)
            if isinstance(price, str):
                notes.append(price)
            else:
                found[each] = price
    return found, notes
