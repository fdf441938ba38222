"""Synthesises what `test_stream.py` deploys: an endpoint whose ensemble streams.

Usage: `python app.py REPOSITORY ASSETS OUTPUT`. ASSETS is the bucket of the assets: there is no bootstrap, which other
tests go through.
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
    TritonEndpoint,
    TritonModel,
)


def main(repository: str, assets: str, output: str) -> None:
    app = cdk.App(
        outdir=output,
        default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
        builtin_cloud_formation_validation=False,  # other tests have it
    )
    stack = cdk.Stack(app, "Words", env=cdk.Environment(account="123456789012", region="us-east-1"))
    store = TritonArtifactStore(stack, "Artifacts", removal_policy=cdk.RemovalPolicy.DESTROY, auto_delete_objects=True)
    model = TritonModel(
        stack,
        "Model",
        repository=ModelRepository.from_directory(Path(repository)),
        platform=ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge"),
        store=store,
        environment=ContainerEnvironment(inference_type="generate_stream"),
    )
    TritonEndpoint(stack, "Endpoint", model=model, ssm_parameter_path="/words")
    app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
