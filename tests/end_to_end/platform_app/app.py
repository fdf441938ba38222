"""Synthesises what `test_platform_change.py` deploys, one cloud assembly per step of a change of the release.

Usage: `python app.py ASSETS OUTPUT`. ASSETS is the bucket of the assets: there is no bootstrap, which other tests go
through.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs

from cdk_triton import (
    CodeBuildGpuBuilder,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonMultiModel,
)

PLACE = cdk.Environment(account="123456789012", region="us-east-1")
PRESENT = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
NEXT = ServingPlatform(release="26.05", instance_type="ml.g5.xlarge")


def main(assets: str, output: str) -> None:
    def serve(
        name: str, platform: ServingPlatform, next_platform: ServingPlatform | None = None, *, fails: bool = False
    ) -> None:
        app = cdk.App(
            outdir=str(Path(output, name)),
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
            builtin_cloud_formation_validation=False,  # other tests have it
        )
        home, stack = (cdk.Stack(app, each, env=PLACE) for each in ("Home", "Serving"))
        store = TritonArtifactStore(home, "Store", builders=[CodeBuildGpuBuilder()])
        fleet = TritonMultiModel(stack, "Fleet", platform=platform, store=store)
        publisher = fleet.add_publisher(recipes=[TensorRTPlan("net")], next_platform=next_platform)
        publisher.grant_publish_all(
            iam.Role(stack, "Publishes", role_name="publishes", assumed_by=iam.AccountRootPrincipal())
        )
        endpoint = TritonEndpoint(stack, "Endpoint", model=fleet, ssm_parameter_path="/serving")
        if fails:
            group = logs.LogGroup(stack, "Taken", log_group_name="taken")
            group.node.add_dependency(endpoint)
        app.synth()

    serve("first", PRESENT)
    serve("early", NEXT)
    serve("prepared", PRESENT, NEXT)
    serve("failing", NEXT, fails=True)
    serve("changed", NEXT)


if __name__ == "__main__":
    main(*sys.argv[1:])
