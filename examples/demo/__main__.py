"""Two ensembles on one multi-model endpoint, deployed onto this machine by the unmodified `cdk` CLI.

`make demo` prepares the weights, starts the local AWS, and runs `cdk bootstrap` and `cdk deploy`, which builds a
TensorRT plan. Then it invokes the endpoint with plain boto3, prints a report, and deploys again to show the builds of a
change. It takes everything down at the end, also on Ctrl-C.
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
from examples.demo.report import ask_again, report
from examples.local_run import Cdk, console, on_local_aws, step

VARIANTS = Path(__file__).with_name("variants.py")


def demo(aws: LocalAws, work: Path) -> None:
    """Everything between the local AWS's start and its end."""
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

    step("cdk bootstrap")
    cdk("bootstrap")
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


if __name__ == "__main__":
    sys.exit(on_local_aws("demo", demo, prepare=["--without-wheels"]))
