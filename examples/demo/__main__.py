"""Two ensembles on one multi-model endpoint, deployed onto this machine by the unmodified `cdk` CLI.

What `make demo` runs: prepare the weights, start the local AWS, `cdk bootstrap`, `cdk deploy`, invoke the endpoint with
plain boto3, print a report, and take everything down again, also on Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich.markup import escape

from cdk_triton.errors import CdkTritonError, LocalError
from cdk_triton.local import LocalAws, process
from report import console, report, step

CHECKOUT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run the demo; the exit status is 0 when both ensembles answered."""
    # A plain `kill` takes the same way out as Ctrl-C: through every `with` and `finally`.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    try:
        step("Preparing the example weights")
        run([sys.executable, "model_assets/prepare.py"], os.environ)
        with tempfile.TemporaryDirectory(prefix="cdk-triton-demo-") as work:
            step("Starting the local AWS")
            with LocalAws(Path(work) / "local") as aws:
                outputs = deploy(aws.process_environment(), Path(work))
                report(aws.environment(), outputs)
                step("Taking everything down")
    except KeyboardInterrupt:
        console.print("\nInterrupted. Everything that the demo started has been stopped.")
        return 130
    except CdkTritonError as error:
        console.print("[red]error:[/]", escape(str(error)))
        return 1
    console.print(f"\nDone in {time.monotonic() - started:.0f} s. Nothing is left running.")
    return 0


def deploy(environment: Mapping[str, str], work: Path) -> dict[str, str]:
    """`cdk bootstrap` and `cdk deploy`; the outputs of the stack with the endpoint."""
    options = ["--no-notices", f"--output={work / 'cdk.out'}"]
    # The version check recommends aws-cdk 3.0.0, the accidental publish that package.json speaks of.
    quiet = {"NODE_NO_WARNINGS": "1", "CDK_DISABLE_VERSION_CHECK": "1", "CDK_DISABLE_CLI_TELEMETRY": "1"}
    environment = {**environment, **quiet}
    step("cdk bootstrap")
    run(["cdk", "bootstrap", *options], environment)
    step("cdk deploy TritonArtifacts TwoEnsembles")
    outputs = work / "outputs.json"
    stacks = ["TritonArtifacts", "TwoEnsembles"]
    run(["cdk", "deploy", *stacks, *options, "--require-approval=never", f"--outputs-file={outputs}"], environment)
    endpoint_stack: dict[str, str] = json.loads(outputs.read_text())["TwoEnsembles"]
    return endpoint_stack


def run(command: list[str], environment: Mapping[str, str]) -> None:
    """Run a program with its output in view, and to its end, whatever ends the demo; `cdk` is package.json's.

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
        with child.stdout as output, console.status(f"{title} ..."):
            for line in output:
                console.print(line.decode(errors="replace").rstrip(), markup=False, emoji=False)
        status = child.wait()
    finally:
        child.kill()
    if status != 0:
        raise LocalError(f"{title} ended with status {status}; its own message is above")


if __name__ == "__main__":
    sys.exit(main())
