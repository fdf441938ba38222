"""The app that `redeployment.py` synthesises: a multi-model endpoint with a recipe and a golden request per repository.

usage: python _redeployed_app.py CDK_OUT REPOSITORIES INSTANCES CHANGED

A process of its own, because PYTHONPATH sets which release of the library it uses. Not a benchmark by itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from cdk_triton import (
    GoldenRequest,
    ModelRepository,
    Rehearsal,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonMultiModel,
    TritonVariant,
)


def main(outdir: str, repositories: str, instances: int, changed: str) -> None:
    """Synthesise; the repository `changed` gets another recipe than the others."""
    app = cdk.App(outdir=outdir)
    environment = cdk.Environment(account="123456789012", region="us-east-1")
    store = TritonArtifactStore(cdk.Stack(app, "Store", env=environment), "Store")
    stack = cdk.Stack(app, "Models", env=environment)
    ensembles = {
        directory.name: ModelRepository.from_directory(
            directory,
            recipes=[
                TensorRTPlan("network", onnx="network.onnx", optimization_level=5 if directory.name == changed else 3)
            ],
            rehearsal=Rehearsal([GoldenRequest("golden/one.json")]),
        )
        for directory in sorted(Path(repositories).iterdir())
    }
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
    multi_model = TritonMultiModel(stack, "Fleet", store=store, platform=platform, ensembles=ensembles)
    variant = TritonVariant(model=multi_model, initial_instance_count=instances)
    TritonEndpoint(stack, "Endpoint", variants=[variant])
    app.synth()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
