"""Starts an execution of a publisher's state machine and follows it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as LostConnectionError

from cdk_triton.cli.artifacts.aws import code_of, in_parallel
from cdk_triton.cli.fleet.map_progress import MapProgress
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.cli.fleet.publication import Publication
from cdk_triton.cli.progress import time_left
from cdk_triton.errors import ConfigurationError, StoreError
from cdk_triton.protocol.documents import DocumentError
from cdk_triton.protocol.outcome import Failure, has_reasons_of_others

__all__ = ["Outcome", "find", "follow", "start"]

POLL_SECONDS: Final = 2.0
OFFLINE_SECONDS: Final = 600
"""How long the command goes on without a connection. The execution goes on anyway."""


@dataclass(frozen=True)
class Outcome:
    """The end of an execution.

    Attributes:
        name: the execution.
        succeeded: whether every ensemble was changed as requested.
        cause: the reason of a failure; "" after a success.
        failures: the reason by ensemble.
    """

    name: str
    succeeded: bool
    cause: str
    failures: dict[str, str]

    def reason(self, ensemble: str) -> str:
        """Why an ensemble was not changed; the cause may contain the reasons of other ensembles, which this omits."""
        if ensemble in self.failures or not has_reasons_of_others(self.cause):
            return self.failures.get(ensemble, self.cause)
        return "the execution ended before it changed this ensemble; run the same command again"


def start(fleet: Fleet, publication: Publication) -> str:
    """Start an execution, or find the one that is already running for the same publication; return its ARN.

    An execution has the id of its publication and a number. Step Functions does not start a second execution with the
    same name, so a lost response does not lead to two executions.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    states = fleet.aws.client("stepfunctions")
    for number in count(1):
        name = f"{publication.id}-{number}"
        text = json.dumps({"publish": publication.name})
        try:
            answer = states.start_execution(stateMachineArn=fleet.machine, name=name, input=text)
        except ClientError as error:
            if code_of(error) != "ExecutionAlreadyExists":
                raise
            arn = _arn(fleet, name)
            if states.describe_execution(executionArn=arn)["status"] == "RUNNING":
                return arn
        else:
            return str(answer["executionArn"])
    raise AssertionError  # count never ends


def find(fleet: Fleet, name: str) -> str:
    """The ARN of an execution by its name.

    Raises:
        ConfigurationError: the publisher does not have an execution of this name.
        ClientError, BotoCoreError: AWS rejected a call.
    """
    arn = _arn(fleet, name)
    try:
        fleet.aws.client("stepfunctions").describe_execution(executionArn=arn)
    except ClientError as error:
        if code_of(error) not in ("ExecutionDoesNotExist", "InvalidArn"):
            raise
        raise ConfigurationError(
            f"the publisher of {fleet.name} has no execution {name!r}: give the name that the command printed"
        ) from error
    return arn


def follow(
    fleet: Fleet,
    arn: str,
    *,
    ensembles: int | None = None,
    wait: Callable[[float], object] = time.sleep,
    say: Callable[[str], object],
) -> Outcome:
    """Wait for the end of an execution, through lost connections.

    Args:
        fleet: the publisher.
        arn: the execution.
        ensembles: how many it changes; None if that is not known.
        wait: waits for seconds.
        say: is called with the progress.

    Raises:
        StoreError: the recorded reason of an ensemble cannot be read.
        ClientError: AWS rejected a call.
        BotoCoreError: there was no connection for a long time.
    """
    began, answered = time.monotonic(), time.monotonic()
    progress = MapProgress(fleet.aws.client("stepfunctions"), arn)
    while True:
        try:
            found = fleet.aws.client("stepfunctions").describe_execution(executionArn=arn)
            if found["status"] != "RUNNING":
                return _outcome(fleet, arn, found)
            say(_progress(progress, ensembles, time.monotonic() - began))
            answered = time.monotonic()
        except (LostConnectionError, HTTPClientError):
            if time.monotonic() - answered > OFFLINE_SECONDS:
                raise
            say("no connection; the execution goes on, and this command tries again")
        wait(POLL_SECONDS)


def _arn(fleet: Fleet, name: str) -> str:
    return f"{fleet.machine.replace(':stateMachine:', ':execution:')}:{name}"


def _outcome(fleet: Fleet, arn: str, found: dict[str, Any]) -> Outcome:
    name = arn.rsplit(":", 1)[-1]
    keys = list(fleet.keys(fleet.failures(arn)))
    failures = dict(in_parallel(lambda key: _failure(fleet, key), keys))
    succeeded = found["status"] == "SUCCEEDED"
    cause = "" if succeeded else _message(str(found.get("cause") or found["status"]))
    return Outcome(name, succeeded, cause, failures)


def _failure(fleet: Fleet, key: str) -> tuple[str, str]:
    try:
        failure = Failure.parse(fleet.aws.client("s3").get_object(Bucket=fleet.bucket, Key=key)["Body"].read())
    except DocumentError as error:
        raise StoreError(
            f"s3://{fleet.bucket}/{key} is not a failure of this version of cdk-triton ({error}); install the version "
            "that deployed the publisher"
        ) from error
    return failure.ensemble, failure.reason


def _message(cause: str) -> str:
    """The message of the function that failed, within the cause of Step Functions."""
    try:
        return str(json.loads(cause)["errorMessage"])
    except (ValueError, LookupError, TypeError):
        return cause


def _progress(progress: MapProgress, ensembles: int | None, seconds: float) -> str:
    counts = progress.counts()
    if not counts or not counts["total"]:
        return f"the execution runs, {seconds:.0f} s"
    done, total = counts["total"] - counts["pending"] - counts["running"], counts["total"]
    if progress.unit == "ensembles" and ensembles is not None:
        total = ensembles  # the count of a map run may lack items that it has not read yet
    # Not the time since the command follows: builds precede ensembles, and a command can be attached late.
    return f"{done:,} of {total:,} {progress.unit}{time_left(progress.seconds, done, total - done)}"
