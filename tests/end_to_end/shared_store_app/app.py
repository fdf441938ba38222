"""Synthesises what `test_shared_store.py` deploys: an app that owns a store, one that uses it, and the latter alone.

Usage: `python app.py REPOSITORY SHA256 ASSETS OUTPUT`. REPOSITORY is a model without its network, which SHA256 is the
hash of and which lies in the bucket `networks`; ASSETS is the bucket of the assets: there is no bootstrap, which other
tests go through.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from cdk_triton import (
    CodeBuildGpuBuilder,
    ModelRepository,
    S3File,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
)
from cdk_triton.hosting import ITritonArtifactStore

PLACE = cdk.Environment(account="123456789012", region="us-east-1")
PLATFORM = ServingPlatform(
    release="25.09",
    instance_type="ml.g5.xlarge",
    image=f"123456789012.dkr.ecr.us-east-1.amazonaws.com/company/triton@sha256:{'a' * 64}",
)


def main(repository: str, sha256: str, assets: str, output: str) -> None:
    network = S3File(bucket="networks", key="net.onnx", sha256=sha256)
    built = ModelRepository.from_directory(Path(repository), recipes=[TensorRTPlan("net", onnx=network)])

    def app(name: str) -> cdk.App:
        return cdk.App(
            outdir=str(Path(output, name)),
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
            builtin_cloud_formation_validation=False,  # other tests have it
        )

    def serve(stack: cdk.Stack, store: ITritonArtifactStore) -> None:
        model = TritonModel(stack, "Model", repository=built, platform=PLATFORM, store=store)
        TritonEndpoint(stack, "Endpoint", model=model)

    owner = app("owner")
    home = cdk.Stack(owner, "Home", env=PLACE)
    store = TritonArtifactStore(home, "Store", builders=[CodeBuildGpuBuilder()], export_prefix="triton-artifacts")
    serve(cdk.Stack(owner, "Translation", env=PLACE), store)
    owner.synth()

    alone = app("alone")
    search = cdk.Stack(alone, "Search", env=PLACE)
    serve(search, TritonArtifactStore(search, "Store", builders=[CodeBuildGpuBuilder()]))
    alone.synth()

    intruding = app("intruding")
    home = cdk.Stack(intruding, "Home", env=PLACE)
    store = TritonArtifactStore(home, "Store", builders=[CodeBuildGpuBuilder()], export_prefix="triton-artifacts")
    serve(cdk.Stack(intruding, "Search", env=PLACE), store)
    intruding.synth()

    sharing = app("sharing")
    search = cdk.Stack(sharing, "Search", env=PLACE)
    builders = [CodeBuildGpuBuilder()]
    serve(search, TritonArtifactStore.from_exports(search, "Store", "triton-artifacts", builders=builders))
    sharing.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
