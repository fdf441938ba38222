"""Synthesises what `test_many_models.py` deploys: a stack with a store and many models, each from its own repository.

Usage: `python app.py REPOSITORIES ASSETS OUTPUT`. ASSETS is the bucket of the assets. A network `net` is built.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from cdk_triton import (
    CodeBuildGpuBuilder,
    ModelRepository,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonModel,
)


def main(repositories: str, assets: str, output: str) -> None:
    app = cdk.App(
        outdir=output,
        default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
        builtin_cloud_formation_validation=False,  # other tests have it
    )
    stack = cdk.Stack(app, "Crowded", env=cdk.Environment(account="123456789012", region="us-east-1"))
    store = TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder()])
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    for directory in sorted(Path(repositories).iterdir()):
        recipes = [TensorRTPlan("net")] if (directory / "net").is_dir() else []
        repository = ModelRepository.from_directory(directory, recipes=recipes)
        TritonModel(stack, f"Model{directory.name}", repository=repository, platform=platform, store=store)
    app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
