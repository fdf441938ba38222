"""Synthesises what `test_async_endpoint.py` deploys, one cloud assembly per version of an asynchronous endpoint.

Usage: `python app.py REPOSITORY ASSETS OUTPUT`. ASSETS is the bucket of the assets: there is no bootstrap, which other
tests go through.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from cdk_triton import (
    AsyncInference,
    ContainerEnvironment,
    ModelRepository,
    ServingPlatform,
    TritonEndpoint,
    TritonModel,
)

PLACE = cdk.Environment(account="123456789012", region="us-east-1")


def main(repository: str, assets: str, output: str) -> None:
    for name, verbose in (("first", False), ("changed", True)):
        app = cdk.App(
            outdir=str(Path(output, name)),
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
            builtin_cloud_formation_validation=False,  # other tests have it
        )
        stack = cdk.Stack(app, "Queued", env=PLACE)
        model = TritonModel(
            stack,
            "Model",
            repository=ModelRepository.from_directory(Path(repository)),
            platform=ServingPlatform(release="26.05", instance_type="ml.g5.xlarge"),
            environment=ContainerEnvironment(log_verbose=int(verbose)),
            max_payload=cdk.Size.mebibytes(256),
        )
        endpoint = TritonEndpoint(
            stack,
            "Endpoint",
            model=model,
            ssm_parameter_path="/queued",
            asynchronous=AsyncInference(max_concurrent_invocations_per_instance=2),
        )
        count = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=2)
        count.scale_on_backlog("Backlog", target_backlog_per_instance=5)
        endpoint.grant_invoke(iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal()))
        app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
