"""One run of an experiment in an account, after which nothing of it is left there."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

from cdk_triton.cli.artifacts.aws import is_loopback
from examples.local_run import CHECKOUT, run

if TYPE_CHECKING:
    from tools.verify.experiment import Experiment

__all__ = ["Interruptions", "Place", "Trial", "error_of", "place_of", "prefix_of"]

_LOCAL_SECONDS = 30
"""The local AWS does everything at once that it does."""


@dataclass(frozen=True)
class Place:
    """Where experiments run.

    Attributes:
        account: 12 digits.
        region: such as "us-east-1".
        is_local: whether this is the local AWS, whose behaviour confirms nothing about AWS.
    """

    account: str
    region: str
    is_local: bool


def place_of(test_account: str) -> Place:
    """The account and region of this shell's credentials.

    Args:
        test_account: the account that the user has named as one for tests.

    Raises:
        ValueError: the credentials belong to another account, or no region is set.
    """
    session = boto3.Session()
    if session.region_name is None:
        raise ValueError("no region is set, so nothing can be deployed; run: export AWS_REGION=us-east-1")
    account = session.client("sts").get_caller_identity()["Account"]
    if account != test_account:
        raise ValueError(
            f"the credentials of this shell belong to the account {account}, but --test-account is {test_account}, and "
            "experiments create and delete resources; use credentials of the account that you keep for tests"
        )
    return Place(account, session.region_name, is_loopback(os.environ.get("AWS_ENDPOINT_URL", "")))


def prefix_of(name: str) -> str:
    """What the names of an experiment's stacks begin with, and of all that it creates without a stack."""
    return f"CdkTritonVerify-{name.replace('_', '-')}"


class Trial:
    """One run of an experiment.

    Attributes:
        name: of the experiment.
        place: the account and region.
        prefix: what names have to begin with.
        at_end: takes what has to be undone before the stacks are destroyed.
    """

    def __init__(self, name: str, experiment: Experiment, place: Place) -> None:
        self.name = name
        self.place = place
        self.prefix = prefix_of(name)
        self.at_end = ExitStack()
        self._experiment = experiment
        self._directory = tempfile.TemporaryDirectory(prefix="cdk-triton-verify-", ignore_cleanup_errors=True)
        self._work = Path(self._directory.name)

    def __enter__(self) -> Trial:
        """Use the files of this run."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the files of this run, without a look at the account."""
        self._directory.cleanup()

    def client(self, service: str, region: str | None = None) -> Any:
        """A client of a service, with the credentials of this shell."""
        return boto3.client(service, region_name=region)  # type: ignore[call-overload]  # the stubs know only names written out

    def deploy(self, **context: str) -> dict[str, str]:
        """Deploy the stacks of the experiment, and return the outputs of all of them.

        Args:
            context: values that the app reads with `try_get_context`.

        Raises:
            LocalError: `cdk deploy` failed, and has said why.
        """
        outputs = self._work / "outputs.json"
        pairs = [f"--context={key}={value}" for key, value in context.items()]
        self._cdk("deploy", "--all", "--require-approval=never", f"--outputs-file={outputs}", *pairs)
        return {key: value for stack in json.loads(outputs.read_text()).values() for key, value in stack.items()}

    def deployed_since(self) -> timedelta | None:
        """How long ago the newest stack of the experiment was created; None if there is none."""
        pages = self.client("cloudformation").get_paginator("describe_stacks").paginate()
        created = [
            stack["CreationTime"]
            for page in pages
            for stack in page["Stacks"]
            if stack["StackName"].startswith(self.prefix)
        ]
        return datetime.now(UTC) - max(created) if created else None

    def assume(self, role_arn: str, session_name: str = "verify") -> Callable[[str], Any]:
        """Return a function that creates clients of a role."""
        found = self.client("sts").assume_role(RoleArn=role_arn, RoleSessionName=session_name)["Credentials"]
        session = boto3.Session(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])

        def client(service: str) -> Any:
            return session.client(service, region_name=self.place.region)  # type: ignore[call-overload]  # as above

        return client

    def until(self, question: Callable[[], Any], *, seconds: float, every: float = 5) -> Any:
        """Ask until an answer is true, and return it; or the last one after `seconds`."""
        if self.place.is_local:
            seconds, every = min(seconds, _LOCAL_SECONDS), 0.5
        end = time.monotonic() + seconds
        while not (answer := question()) and time.monotonic() < end:
            time.sleep(every)
        return answer

    def clean(self) -> None:
        """Undo what the experiment did, and destroy its stacks, whatever of them exists."""
        try:
            self.at_end.close()
        finally:
            if self._experiment.stacks is not None:
                self._cdk("destroy", "--all", "--force")
            self._directory.cleanup()

    def _cdk(self, *arguments: str) -> None:
        # The version check recommends aws-cdk 3.0.0, the accidental publish that package.json speaks of.
        quiet = {"NODE_NO_WARNINGS": "1", "CDK_DISABLE_VERSION_CHECK": "1", "CDK_DISABLE_CLI_TELEMETRY": "1"}
        temporary = {"TMPDIR": str(self._work)}  # what the programs leave behind goes with the files of this run
        run(
            [
                "cdk",
                *arguments,
                "--no-notices",
                f"--output={self._work / 'cdk.out'}",
                f"--app={sys.executable} -m tools.verify.app {self.name}",
            ],
            {**os.environ, **quiet, **temporary, "PYTHONPATH": str(CHECKOUT)},
        )


def error_of(call: Callable[..., Any], **arguments: Any) -> tuple[str, str]:
    """The code and message of the error that a call ends with; two empty texts if it succeeds."""
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["Error"]["Message"]
    return "", ""


class Interruptions:
    """Ctrl-C and its like: they end an experiment through every `finally`, but never stop the cleaning up."""

    _SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self._is_cleaning = False
        self._came = False

    def __enter__(self) -> Interruptions:
        """Handle the signals."""
        self._before = {number: signal.signal(number, self._handle) for number in self._SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the signals to whoever handled them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Let what is within end first; then an interruption that came meanwhile ends the run."""
        self._is_cleaning, self._came = True, False
        try:
            yield
        finally:
            self._is_cleaning = False
        if self._came:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        print("\nInterrupted. Cleaning up, which takes some minutes ...", flush=True)
        self._came = True
        if not self._is_cleaning:
            raise KeyboardInterrupt
