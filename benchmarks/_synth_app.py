"""The app that `synth.py` measures: ensembles on one multi-model endpoint, or a model on an endpoint of its own.

usage: python _synth_app.py CDK_OUT REPOSITORIES COUNT

COUNT repositories make a multi-model endpoint; 0 takes the first as a single model. Not a benchmark by itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

import aws_cdk as cdk

from cdk_triton import ModelRepository, ServingPlatform, TritonEndpoint, TritonModel, TritonMultiModel

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")


def main(outdir: str, repositories: str, count: int) -> None:
    """Synthesise."""
    app = cdk.App(outdir=outdir, builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Stack", env=cdk.Environment(account="123456789012", region="us-east-1"))
    model: TritonModel | TritonMultiModel
    if count:
        names = [f"ensemble{number:04}" for number in range(count)]
        ensembles = {name: ModelRepository.from_directory(Path(repositories, name)) for name in names}
        model = TritonMultiModel(stack, "Model", platform=PLATFORM, ensembles=ensembles)
    else:
        repository = ModelRepository.from_directory(Path(repositories, "ensemble0000"))
        model = TritonModel(stack, "Model", platform=PLATFORM, repository=repository)
    TritonEndpoint(stack, "Endpoint", model=model)
    app.synth()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
