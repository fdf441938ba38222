"""Runs a build plan by polling the store's handler, as CloudFormation's custom resources are polled.

All state is in the bucket, and every poll derives it again. So the same build continues, whoever polls and however
often. The command can take longer than an hour, can be interrupted, and can run beside a deployment of the same build
plan.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts.assembly import Planned, StackAssembly
from cdk_triton.cli.artifacts.aws import in_parallel
from cdk_triton.cli.artifacts.contents import find, read_locks, read_text
from cdk_triton.cli.artifacts.publishing import Publisher
from cdk_triton.cli.artifacts.store import Store
from cdk_triton.errors import ConfigurationError, StoreError
from cdk_triton.protocol import layout
from cdk_triton.protocol.documents import DocumentError
from cdk_triton.protocol.invocation import CALL_AGAIN
from cdk_triton.protocol.plan import PlannedRehearsal
from cdk_triton.protocol.rehearsal import RehearsalPass

__all__ = ["WAITED_SECONDS", "run"]

WAITED_SECONDS: Final = 40 * 60
"""The longest waiting time that the command reports to the handler. The handler gives a request up after 50 minutes,
because CloudFormation would; here nothing limits the time. But a request that always seems new would never fail. In its
first 3 minutes, the handler takes a missing permission for one that IAM has not propagated yet, and a build that failed
before the request began is built again. So the request began 40 minutes ago at most, which is far more than the time
between two polls."""

_CALL_PAUSE_SECONDS: Final = 10
_CALLS: Final = 60

_TOLD_SECONDS: Final = 300
"""A line at least this often, for a person and for a CI that ends what is silent."""


def run(
    store: Store,
    stack: StackAssembly,
    account: str,
    *,
    wait: Callable[[float], object],
    say: Callable[[str], None],
) -> int:
    """Make every artifact of a stack exist.

    Args:
        store: the store that gets them.
        stack: the stack that needs them.
        account: the account's id.
        wait: called between two polls with the seconds that the handler returns.
        say: called with a line for each event.

    Returns:
        The number of artifacts.

    Raises:
        ConfigurationError: the stack's assets lack what its build plan reads.
        StoreError: a build has failed, or the handler rejects the build plan.
        ClientError, BotoCoreError: AWS rejected a call.
    """
    publisher = Publisher(store.aws, account, say)
    for planned in stack.planned:
        _publish(store, stack, planned, publisher)
        _poll(store, planned, wait, say)
    return len({commit.artifact_key for planned in stack.planned for commit in planned.plan.commits})


def _publish(store: Store, stack: StackAssembly, planned: Planned, publisher: Publisher) -> None:
    for key in sorted(planned.needs(_committed(store, planned))):
        if key not in stack.assets:
            raise ConfigurationError(
                f"{stack.name} publishes no asset {key}, which its plan reads: run `cdk synth` again"
            )
        publisher.publish(stack.assets[key])
    publisher.publish_text(planned.asset, planned.properties["PlanKey"], planned.text)


def _poll(store: Store, planned: Planned, wait: Callable[[float], object], say: Callable[[str], None]) -> None:
    began = time.time()
    told, told_at = "", 0.0
    while (pause := _pause(store, planned, began, wait, say)) is not None:
        line = _progress(store, planned)
        if line != told or time.time() - told_at >= _TOLD_SECONDS:
            told, told_at = line, time.time()
            say(f"{line}, after {(told_at - began) / 60:.0f} min")
        wait(pause)


def _pause(
    store: Store, planned: Planned, began: float, wait: Callable[[float], object], say: Callable[[str], None]
) -> float | None:
    """One poll, with the event that the store's provider sends: the seconds until the next one; None after the last.

    Raises:
        StoreError: the function failed; its text is the handler's sentence.
        ClientError: Lambda does not run the function.
    """
    event = {
        "RequestType": "Create",
        "ResourceType": "Custom::TritonArtifacts",
        "LogicalResourceId": planned.name,
        "PhysicalResourceId": planned.properties["PlanSha256"],
        "ResourceProperties": planned.properties,
        "StartedAt": max(began, time.time() - WAITED_SECONDS),
    }
    answer = _invoke(store, json.dumps(event).encode(), wait, say)
    payload: Any = json.loads(answer["Payload"].read() or b"null")
    if answer.get("FunctionError"):
        reason = payload.get("errorMessage") if isinstance(payload, dict) else None
        raise StoreError(str(reason or f"the function {store.function} failed and gave no reason"))
    return None if payload["IsComplete"] else float(payload["Seconds"])


def _invoke(store: Store, event: bytes, wait: Callable[[float], object], say: Callable[[str], None]) -> Any:
    """Call the store's function; one that nobody called for weeks needs some minutes until Lambda runs it again."""
    client = store.aws.client("lambda")
    for attempt in range(_CALLS):
        try:
            return client.invoke(FunctionName=store.function, Payload=event)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code not in CALL_AGAIN:
                raise
        if attempt == 0:
            minutes = _CALLS * _CALL_PAUSE_SECONDS // 60
            say(f"Lambda does not run {store.function} yet ({code}): calling again for up to {minutes} minutes")
        wait(_CALL_PAUSE_SECONDS)
    return client.invoke(FunctionName=store.function, Payload=event)


def _progress(store: Store, planned: Planned) -> str:
    committed = _committed(store, planned)
    keys = {commit.artifact_key for commit in planned.plan.commits}
    rehearsals = {rehearsal.key for rehearsal in planned.plan.rehearsals}
    building = sum(lock.is_live and lock.key in keys - committed for lock in read_locks(store))
    artifacts = f"{len(committed & keys)} of {len(keys)} artifacts are committed, {building} are being built"
    passed = f", {len(committed & rehearsals)} of {len(rehearsals)} rehearsals have passed" if rehearsals else ""
    return f"{planned.name}: {artifacts}{passed}"


def _committed(store: Store, planned: Planned) -> set[str]:
    """The keys of committed archives and of the rehearsals that they have passed.

    An archive counts if it is committed under each name that the build plan has for it.
    """
    commits, rehearsals = planned.plan.commits, planned.plan.rehearsals
    manifests = in_parallel(lambda commit: find(store, commit.manifest), commits)
    passed = in_parallel(lambda rehearsal: _has_passed(store, rehearsal), rehearsals)
    missing = {commit.artifact_key for commit, manifest in zip(commits, manifests, strict=True) if manifest is None}
    passes = {rehearsal.key for rehearsal, has_passed in zip(rehearsals, passed, strict=True) if has_passed}
    return {commit.artifact_key for commit in commits} - missing | passes


def _has_passed(store: Store, rehearsal: PlannedRehearsal) -> bool:
    """Whether the archive in the store has passed; a pass for another archive of the same key does not count."""
    text = read_text(store, layout.pass_key(rehearsal.repository, rehearsal.artifact_key, rehearsal.key))
    archive = find(store, layout.archive_key(rehearsal.repository, rehearsal.artifact_key))
    if text is None or archive is None:
        return False
    try:
        rehearsed = RehearsalPass.parse(text).archive
    except DocumentError:  # of another version; it does not count for the handler either
        return False
    return (rehearsed.size, rehearsed.etag) == (archive.size, archive.etag)
