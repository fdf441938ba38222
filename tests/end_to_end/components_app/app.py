"""Synthesises what `test_components.py` deploys, one cloud assembly per version: an endpoint with two components.

Usage: `python app.py REPOSITORIES ASSETS OUTPUT`. ASSETS is the bucket of the assets: there is no bootstrap, which
other tests go through.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from cdk_triton import (
    ContainerEnvironment,
    ModelRepository,
    ServingPlatform,
    TritonArtifactStore,
    TritonComponents,
    TritonModel,
)

PLACE = cdk.Environment(account="123456789012", region="us-east-1")
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.12xlarge")


def main(repositories: str, assets: str, output: str) -> None:
    for version in ("first", "changed"):
        app = cdk.App(
            outdir=str(Path(output, version)),
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
            builtin_cloud_formation_validation=False,  # other tests have it
        )
        stack = cdk.Stack(app, "Shop", env=PLACE)
        store = TritonArtifactStore(
            stack, "Artifacts", removal_policy=cdk.RemovalPolicy.DESTROY, auto_delete_objects=True
        )
        endpoint = TritonComponents(stack, "Components", platform=PLATFORM, min_instance_count=0, max_instance_count=2)
        for name in ("text", "image"):
            model = TritonModel(
                stack,
                f"Model-{name}",
                repository=ModelRepository.from_directory(Path(repositories, version, name)),
                platform=PLATFORM,
                store=store,
                environment=ContainerEnvironment(log_verbose=0),
            )
            component = endpoint.add_component(name, model=model, accelerators=1, memory=cdk.Size.gibibytes(8))
            component.scale_to_zero("Idle", max_capacity=2, max_requests_per_second=40)
            cdk.CfnOutput(stack, f"Component{name}", value=component.component_name)
        cdk.CfnOutput(stack, "Endpoint", value=endpoint.endpoint_name)
        app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
