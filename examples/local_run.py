"""A run on the local AWS: commands with their output in view, and an end after which nothing is left.

`examples/demo` and `examples/reference_systems` are run by it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import boto3
from botocore.config import Config
from rich.console import Console
from rich.markup import escape

from cdk_triton.errors import CdkTritonError, LocalError
from cdk_triton_local import LocalAws, conflicting_variables, process

CHECKOUT = Path(__file__).resolve().parents[1]
_EVENT = re.compile(r"(?P<stack>\S+) +\| +\d+/\d+ +\| [^|]+ \| (?P<status>\w+) +\| (?P<type>[\w:]+) +\|")
"""A line in which `cdk` prints an event of CloudFormation."""

console = Console(highlight=False, soft_wrap=True)


def step(title: str) -> None:
    """Print the next step."""
    console.print(f"\n[bold]==> {title}[/]")


def on_local_aws(name: str, work: Callable[[LocalAws, Path], None], *, prepare: Sequence[str] = ()) -> int:
    """Prepare the weights, start a local AWS, do the work, and take everything down.

    It is taken down on Ctrl-C, on `kill`, and at the end of the terminal too.

    Args:
        name: the run, as it is called in messages: "demo".
        work: gets the local AWS and a temporary directory.
        prepare: options of `prepare.py`.

    Returns:
        The exit status: 0 if the work was done.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as below nohup
            signal.signal(number, _interrupt)
    for name in conflicting_variables(os.environ):
        del os.environ[name]  # a profile that does not exist would stop boto3
    started = time.monotonic()
    try:
        step("Preparing the example weights")
        run([sys.executable, "model_assets/prepare.py", *prepare], os.environ)
        with tempfile.TemporaryDirectory(prefix=f"cdk-triton-{name}-") as directory:
            step("Starting the local AWS")
            with LocalAws(Path(directory) / "local") as aws:
                work(aws, Path(directory))
                step("Taking everything down")
    except KeyboardInterrupt:
        # Not by the console: what interrupts it in the middle of a line leaves it in want of the line's end.
        print(f"\nInterrupted. Everything that the {name} started has been stopped.", flush=True)
        return 130
    except CdkTritonError as error:
        console.print("[red]error:[/]", escape(str(error)))
        return 1
    console.print(f"\nDone in {time.monotonic() - started:.0f} s. Nothing is left running.")
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Leave through every `with` and `finally`; a build takes half a minute to end, so the user hears of it first."""
    with contextlib.suppress(OSError):  # the terminal may be what has ended
        os.write(sys.stdout.fileno(), b"\nInterrupted. Stopping what was started ...\n")
    raise KeyboardInterrupt


class Cdk:
    """The `cdk` command of package.json, led to a local AWS.

    Args:
        aws: the local AWS.
        work: a temporary directory.
        output: where its output goes.
    """

    def __init__(self, aws: LocalAws, work: Path, output: TextIO | None = None) -> None:
        # The version check recommends aws-cdk 3.0.0, the accidental publish that package.json speaks of.
        quiet = {"NODE_NO_WARNINGS": "1", "CDK_DISABLE_VERSION_CHECK": "1", "CDK_DISABLE_CLI_TELEMETRY": "1"}
        self._environment = {**aws.process_environment(), **quiet}
        self._options = ["--no-notices", f"--output={work / 'cdk.out'}"]
        self._console = console if output is None else Console(file=output, highlight=False, soft_wrap=True)

    def __call__(self, *arguments: str) -> None:
        """Run a command: `cdk("bootstrap")`.

        Raises:
            LocalError: the command failed.
        """
        run(["cdk", *arguments, *self._options], self._environment, self._console)


def run(command: Sequence[str], environment: Mapping[str, str], shown: Console = console) -> None:
    """Run a program with its output in view, and to its end, whatever ends the run; `cdk` is package.json's.

    Raises:
        LocalError: the program failed.
    """
    title = f"{Path(command[0]).name} {command[1]}"
    path = f"{CHECKOUT / 'node_modules/.bin'}:{environment['PATH']}"
    environment = {**environment, "PATH": path, "PYTHONUNBUFFERED": "1"}
    child = process.start(command, environment=environment, directory=CHECKOUT, output=subprocess.PIPE)
    assert child.stdout is not None
    try:
        # The line that turns below the output tells that something goes on while a program is silent.
        with child.stdout as output, shown.status(f"{title} ..."):
            for line in _without_events(each.decode(errors="replace").rstrip() for each in output):
                shown.print(line, markup=False, emoji=False)
        status = child.wait()
    finally:
        child.kill()
    if status != 0:
        raise LocalError(f"{title} ended with status {status}; its own message is above")


def _without_events(lines: Iterable[str]) -> Iterator[str]:
    """A line for each service of a stack in place of two events for each resource; failures stay."""
    told = set()
    for line in lines:
        event = _EVENT.match(line)
        if event is None or "FAILED" in event["status"]:
            yield line
        elif event["type"] not in ("AWS::CloudFormation::Stack", "AWS::CDK::Metadata"):
            service = event["type"] if event["type"].startswith("Custom::") else event["type"].rpartition("::")[0]
            if (event["stack"], service) not in told:
                yield f"  {event['stack']}: {service} ..."
            told.add((event["stack"], service))


def runtime(environment: Mapping[str, str]) -> Any:
    """A client of the local endpoint runtime that does not retry."""
    return boto3.client(
        "sagemaker-runtime",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        config=Config(retries={"total_max_attempts": 1}),
    )


def dali_line() -> str:
    """The DALI that decoded the pictures, for the list of what was real."""
    try:
        from nvidia.dali import __version__
    except ImportError:
        return "the pipeline ran in numpy and Pillow (the extra `dali` brings the real one, 0.9 GB)"
    return f"the pipeline ran in DALI {__version__}, on the CPU"
