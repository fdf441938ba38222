"""Compares what the app's rehearsals have measured with what its endpoints allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cdk_triton._wording import listed_in_quotes
from cdk_triton.cli.artifacts.assembly import read_metadata, read_templates
from cdk_triton.cli.artifacts.measured import Figures, Measured, measured
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.endpoints import endpoints, referred
from cdk_triton.sagemaker.limits import MAX_INVOCATION_SECONDS
from cdk_triton.sagemaker.timeouts import LOAD_MARGIN, START_SECONDS, start_timeout_after_load

__all__ = ["SUBJECT", "rehearsals"]

SUBJECT = "rehearsals of the app"

_LOGICAL_ID = "aws:cdk:logicalId"


def rehearsals(account: Account, app: Path) -> Iterator[Answer]:
    """Compare the times to load with the timeouts of the endpoints, and the memory with that of a GPU.

    An archive that is not rehearsed yet has no figures, and is not mentioned.

    Args:
        account: the account that the app would be deployed to.
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError, BotoCoreError: AWS rejects a call, or cannot be reached.
    """
    found = measured(app)
    if not found:
        return
    ids = {path: data for path, data, _ in read_metadata(app, _LOGICAL_ID)}
    given = _timeouts(account, app)
    for each in found:
        if each.is_multi_model:
            yield _cold_loads(each)
        else:
            (figures,) = each.ensembles.values()
            yield _start_up(each, figures, given.get(ids.get(f"{each.construct}/Resource", "")))
        if each.memory is not None:
            yield Answer(subject=SUBJECT, state=State.OK, found=f"{each.construct}: {each.memory}")


def _start_up(of: Measured, figures: Figures, given: int | None) -> Answer:
    needed = start_timeout_after_load(figures.load_seconds)
    found = f"{of.construct}: the models took {figures.load_seconds:.0f} s to load"
    if given is None:
        return Answer(subject=SUBJECT, state=State.OK, found=f"{found}, so give an instance {needed} s to start")
    if given >= needed:
        return Answer(subject=SUBJECT, state=State.OK, found=f"{found}, and an instance has {given} s to start")
    return Answer(
        subject=SUBJECT,
        state=State.WARNING,
        found=f"{found}, but an instance has {given} s to start, although it may be slower than the rehearsal",
        fix=f"set container_startup_timeout=Duration.seconds({needed}) of the variant",
    )


def _cold_loads(of: Measured) -> Answer:
    seconds = {name: each.load_seconds for name, each in of.ensembles.items()}
    slow = [name for name, each in seconds.items() if LOAD_MARGIN * each > MAX_INVOCATION_SECONDS]
    found = f"{of.construct}: its ensembles took up to {max(seconds.values()):.0f} s to load"
    if not slow:
        last = f"and the first request for an ensemble waits up to {MAX_INVOCATION_SECONDS} s"
        return Answer(subject=SUBJECT, state=State.OK, found=f"{found}, {last}")
    return Answer(
        subject=SUBJECT,
        state=State.WARNING,
        found=f"{found}, and the first request for an ensemble waits only {MAX_INVOCATION_SECONDS} s, also for the "
        f"download: it may fail for {listed_in_quotes(slow, shown=5)}",
        fix="make their models load faster, or serve each with a TritonModel",
    )


def _timeouts(account: Account, app: Path) -> dict[str, int]:
    """How long an instance has to start, by the logical id of its model; the shortest if several variants serve it."""
    found: dict[str, int] = {}
    for _, template in read_templates(app, account.id, account.region):
        for endpoint in endpoints(template).values():
            for variant in (*endpoint.variants.values(), *endpoint.shadows.values()):
                for model in _models(variant):
                    seconds = variant.get("ContainerStartupHealthCheckTimeoutInSeconds", START_SECONDS)
                    if model is not None and isinstance(seconds, int):
                        found[model] = min(seconds, found.get(model, seconds))
    return found


def _models(variant: Mapping[str, Any]) -> Iterator[str | None]:
    pools = variant.get("InstancePools")
    for each in (variant, *(pools if isinstance(pools, list) else ())):
        names = (value for name, value in each.items() if name.startswith("ModelName"))
        yield from map(referred, names)
