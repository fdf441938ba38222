"""Two ensembles on one multi-model endpoint, deployed onto this machine by the unmodified `cdk` CLI.

`make demo` prepares the weights, starts the local AWS, and runs `cdk bootstrap` and `cdk deploy`, which builds a
TensorRT plan and rehearses both ensembles. Then it invokes the endpoint with plain boto3, prints a report, and deploys
again to show the builds of a change, and how a rehearsal and a build stop a faulty one. It takes everything down, also
on Ctrl-C, and at the end repeats the report.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from cdk_triton.errors import LocalError
from cdk_triton_local import LocalAws
from examples.demo.builds import Builds
from examples.demo.report import Report, ask, ask_again
from examples.local_run import Cdk, console, on_local_aws, step

VARIANTS = Path(__file__).with_name("variants.py")


NEXT = """
[bold]Next[/]
  cdk-triton init ../my-endpoint    writes a project of your own, with an example, or with your models (--from)
  docs/getting_started.md           explains such a project, and runs it on this machine
  make reference                    deploys all reference systems, and asks each"""


def demo(aws: LocalAws, work: Path) -> Report:
    """Everything between the local AWS's start and its end; what the endpoint answered."""
    cdk = Cdk(aws, work)
    builds = Builds(aws.client)

    def deploy(stacks: Sequence[str], *variant: str) -> dict[str, str]:
        """`cdk deploy` of the example app, or of a variant of it; the outputs of the stack with the endpoint."""
        outputs = work / "outputs.json"
        command = ["deploy", *stacks, "--exclusively", "--require-approval=never", f"--outputs-file={outputs}"]
        if variant:
            command.append(f"--app={shlex.join([sys.executable, str(VARIANTS), *variant])}")
        cdk(*command)
        endpoint_stack: dict[str, str] = json.loads(outputs.read_text())["TwoEnsembles"]
        return endpoint_stack

    step("cdk bootstrap: the bucket and the roles with which cdk deploys")
    console.print("  This takes up to half a minute, and prints nothing at first.")
    cdk("bootstrap")
    step("cdk deploy TritonArtifacts TwoEnsembles: a job makes the TensorRT plan of bert, and rehearses both ensembles")
    outputs = deploy(["TritonArtifacts", "TwoEnsembles"])
    builds.tell()
    report = ask(aws.environment(), outputs)
    report.show()
    step("cdk deploy TwoEnsembles: the same again")
    deploy(["TwoEnsembles"])
    builds.tell()
    step("cdk deploy TwoEnsembles: one recipe changed, the plan of bert is built with more effort")
    outputs = deploy(["TwoEnsembles"], "level")
    builds.tell()
    for variant, what in (
        ("forgetful", "the tokenizer forgets most of a text, and a golden request notices"),
        ("broken", "bert gets a network that TensorRT cannot build"),
    ):
        step(f"cdk deploy TwoEnsembles: {what}")
        try:
            deploy(["TwoEnsembles"], variant, str(work))
        except LocalError:
            console.print("  It failed, as it should; the sentence above is the stack's.")
        else:
            raise LocalError(f"the variant {variant!r} was deployed, but should have failed; please report this")
        builds.tell()
        ask_again(aws.environment(), outputs)
    return report


def main() -> int:
    """Run the demo; its last screen is the report."""
    reports: list[Report] = []
    status = on_local_aws("demo", lambda aws, work: reports.append(demo(aws, work)), prepare=["--without-wheels"])
    if status == 0:
        step("What the two ensembles answered")
        reports[0].show()
        console.print(NEXT)
    return status


if __name__ == "__main__":
    sys.exit(main())
