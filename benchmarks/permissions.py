"""What the judging of permissions costs: the recording of a deployment's calls, and a judge for 5,000 of them.

A store, a multi-model endpoint and a publisher are deployed to the local AWS by turns with and without the recording
(`tests/permissions`). The processor time is that of this process and of the functions that it runs, from the first
call of CloudFormation to the end of the deployment. The recorded calls, repeated with other resources, are then judged
at once.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from _figures import progress, report
from cdk_triton import ServingPlatform
from cdk_triton_local.aws import LocalAws

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "tests" / "doubles")]

from tests.permissions.judging import Decision, judge  # noqa: E402
from tests.permissions.recording import Recording, recorder  # noqa: E402

from deployed_fleet import DeployedFleet  # noqa: E402

ROUNDS = 5
CALLS = 5_000
PLATFORM = ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")


class Deployment(DeployedFleet):
    """A deployment that knows when its assets are uploaded."""

    def _deploy(self, template: Path) -> None:
        self.began = used()
        super()._deploy(template)


def used() -> float:
    """The processor time of this process and of those that it has waited for, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def seconds() -> float:
    """The processor time of a deployment."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-benchmark-") as directory:
        with LocalAws(Path(directory) / "aws") as aws:
            deployment = Deployment(aws, Path(directory), PLATFORM)
        return used() - deployment.began


def main() -> None:
    """Measure and report."""
    progress("permissions: a deployment that is not measured ...")
    seconds()
    recordings: dict[str, Recording] = {}
    without, with_recording = [], []
    for number in range(ROUNDS):
        progress(f"permissions: round {number + 1} of {ROUNDS} ...")
        without.append(seconds())
        LocalAws.on_call = recorder(recordings)
        with_recording.append(seconds())
        LocalAws.on_call = None
    share = 100 * (median(with_recording) / median(without) - 1)
    report("permissions.recording", share, "% more processor time of a deployment", at_most=10)

    ((account, recording),) = recordings.items()
    asked = [numbered(each, number) for number, each in enumerate(islice(cycle(recording.decisions.values()), CALLS))]
    progress(f"permissions: {CALLS} of {len(recording.decisions)} different decisions ...")
    began = time.perf_counter()
    judge(asked, account)
    report("permissions.judging", time.perf_counter() - began, f"s for {CALLS} calls", at_most=20)


def numbered(decision: Decision, number: int) -> Decision:
    """The decision about another resource of the same kind."""
    request = decision.request
    if request.resource is None or request.resource == "*":
        return decision
    return replace(decision, request=replace(request, resource=f"{request.resource}{number}"))


if __name__ == "__main__":
    main()
