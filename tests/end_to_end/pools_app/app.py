"""Synthesises what `test_instance_pools.py` deploys: one repository with a recipe, for an A10G and for a T4.

Usage: `python app.py REPOSITORY ASSETS OUTPUT`. The assemblies `0`, `1` and `2` below OUTPUT differ in their endpoint
configurations alone. ASSETS is the bucket of the assets: there is no bootstrap, which other tests go through.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from cdk_triton import ModelRepository, ServingPlatform, TensorRTPlan, TritonEndpoint, TritonModel, TritonVariant

TYPES = {"A10G": "ml.g5.2xlarge", "T4": "ml.g4dn.2xlarge"}


def main(repository: str, assets: str, output: str) -> None:
    network = ModelRepository.from_directory(Path(repository), recipes=[TensorRTPlan("net")])
    for number in range(3):
        app = cdk.App(
            outdir=str(Path(output, str(number))),
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
            builtin_cloud_formation_validation=False,  # other tests have it
        )
        stack = cdk.Stack(app, "Pools", env=cdk.Environment(account="123456789012", region="us-east-1"))
        on_a10g, on_t4 = (
            TritonModel(
                stack, gpu, repository=network, platform=ServingPlatform(release="25.09", instance_type=instance_type)
            )
            for gpu, instance_type in TYPES.items()
        )
        variant = TritonVariant(
            model=on_a10g, fallback_models=[on_t4], instance_provision_timeout=cdk.Duration.minutes(10 + number)
        )
        TritonEndpoint(stack, "Endpoint", variants=[variant], endpoint_name="pools")
        for gpu, model in {"A10G": on_a10g, "T4": on_t4}.items():
            cdk.CfnOutput(stack, f"Model{gpu}", value=model.model_name)
        app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
