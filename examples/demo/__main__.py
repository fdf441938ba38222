"""Two ensembles on one multi-model endpoint, deployed onto this machine by the unmodified `cdk` CLI.

What `make demo` runs: prepare the weights, start the local AWS, `cdk bootstrap`, `cdk deploy`, which builds a TensorRT
plan, invoke the endpoint with plain boto3, print a report, deploy again to show what is built then, and take everything
down again, also on Ctrl-C.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape

from builds import Builds
from cdk_triton.errors import CdkTritonError, LocalError
from cdk_triton.local import LocalAws, process
from report import ask_again, console, report, step

CHECKOUT = Path(__file__).resolve().parents[2]
VARIANTS = Path(__file__).with_name("variants.py")


def main() -> int:
    """Run the demo; the exit status is 0 when both ensembles answered."""
    # A plain `kill` takes the same way out as Ctrl-C: through every `with` and `finally`.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.monotonic()
    try:
        step("Preparing the example weights")
        run([sys.executable, "model_assets/prepare.py", "--without-wheels"], os.environ)
        with tempfile.TemporaryDirectory(prefix="cdk-triton-demo-") as work:
            step("Starting the local AWS")
            with LocalAws(Path(work) / "local") as aws:
                demo(aws, Path(work))
                step("Taking everything down")
    except KeyboardInterrupt:
        # Not by the console: what interrupts it in the middle of a line leaves it in want of the line's end.
        print("\nInterrupted. Everything that the demo started has been stopped.", flush=True)
        return 130
    except CdkTritonError as error:
        console.print("[red]error:[/]", escape(str(error)))
        return 1
    console.print(f"\nDone in {time.monotonic() - started:.0f} s. Nothing is left running.")
    return 0


def demo(aws: LocalAws, work: Path) -> None:
    """Everything between the local AWS's start and its end."""
    # The version check recommends aws-cdk 3.0.0, the accidental publish that package.json speaks of.
    quiet = {"NODE_NO_WARNINGS": "1", "CDK_DISABLE_VERSION_CHECK": "1", "CDK_DISABLE_CLI_TELEMETRY": "1"}
    environment = {**aws.process_environment(), **quiet}
    options = ["--no-notices", f"--output={work / 'cdk.out'}"]
    builds = Builds(aws.client)

    def deploy(stacks: Sequence[str], *variant: str) -> dict[str, str]:
        """`cdk deploy` of the example app, or of a variant of it; the outputs of the stack with the endpoint."""
        outputs = work / "outputs.json"
        command = ["cdk", "deploy", *stacks, "--exclusively", *options, "--require-approval=never"]
        command.append(f"--outputs-file={outputs}")
        if variant:
            command.append(f"--app={shlex.join([sys.executable, str(VARIANTS), *variant])}")
        run(command, environment)
        endpoint_stack: dict[str, str] = json.loads(outputs.read_text())["TwoEnsembles"]
        return endpoint_stack

    step("cdk bootstrap")
    run(["cdk", "bootstrap", *options], environment)
    step("cdk deploy TritonArtifacts TwoEnsembles: a build job makes the TensorRT plan of bert")
    outputs = deploy(["TritonArtifacts", "TwoEnsembles"])
    builds.tell()
    report(aws.environment(), outputs)
    step("cdk deploy TwoEnsembles: the same again")
    deploy(["TwoEnsembles"])
    builds.tell()
    step("cdk deploy TwoEnsembles: one recipe changed, the plan of bert is built with more effort")
    outputs = deploy(["TwoEnsembles"], "level")
    builds.tell()
    step("cdk deploy TwoEnsembles: bert gets a network that TensorRT cannot build")
    try:
        deploy(["TwoEnsembles"], "broken", str(work))
    except LocalError:
        console.print("  It failed, as it should; the sentence above is the stack's.")
    else:
        raise LocalError("the network that cannot be built was deployed; please report this")
    builds.tell()
    ask_again(aws.environment(), outputs)


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
