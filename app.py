"""The example app: the artifact store, and one stack per way to serve the reference ensembles.

`cdk deploy TritonArtifacts TwoEnsembles` puts both ensembles behind one multi-model endpoint, `cdk deploy
ImageClassification` one of them behind a single-model endpoint. Both stacks use the store, which goes first.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import aws_cdk as cdk
    from constructs import Construct
except ImportError as error:
    # Without the distribution `constructs`, the name means the directory of the same name beside this file.
    sys.exit(
        f"app.py: {error}\nThe environment lacks a package of this app: run `make setup` and put .venv/bin on PATH."
    )

from cdk_triton import (
    ContainerEnvironment,
    ModelRepository,
    ServingPlatform,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
)
from cdk_triton.errors import CdkTritonError

ASSETS = Path(__file__).parent / "model_assets"
PREPARED = (
    "sentence_embedding/preprocess/1/tokenizer.json",
    "sentence_embedding/preprocess/1/vendor",
    "sentence_embedding/bert/1/model.onnx",
    "image_classification/inception/1/model.onnx",
)

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")


class TwoEnsembles(cdk.Stack):
    """Both ensembles on one multi-model endpoint: text in, embedding out; JPEG in, classes out."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:  # noqa: A002 - CDK's name
        super().__init__(scope, id)
        fleet = TritonMultiModel(
            self,
            "Fleet",
            store=store,
            platform=PLATFORM,
            ensembles={
                "text": ModelRepository.from_directory(ASSETS / "sentence_embedding"),
                "image": ModelRepository.from_directory(ASSETS / "image_classification"),
            },
            # Otherwise DALI keeps its memory when SageMaker unloads the image ensemble to make room for others.
            environment=ContainerEnvironment(additional_args=("--backend-config=dali,release_after_unload=true",)),
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=fleet)
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "TextModel", value=fleet.target_model("text"))
        cdk.CfnOutput(self, "ImageModel", value=fleet.target_model("image"))


class ImageClassification(cdk.Stack):
    """The image ensemble on an endpoint of its own."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:  # noqa: A002 - CDK's name
        super().__init__(scope, id)
        model = TritonModel(
            self,
            "Model",
            store=store,
            platform=PLATFORM,
            repository=ModelRepository.from_directory(ASSETS / "image_classification"),
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=model)
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)


def add_stacks(app: cdk.App) -> None:
    """The store in a stack of its own, which outlives the two that use it."""
    store = TritonArtifactStore(cdk.Stack(app, "TritonArtifacts"), "Store")
    TwoEnsembles(app, "TwoEnsembles", store=store)
    ImageClassification(app, "ImageClassification", store=store)


def main() -> None:
    """Synthesise the app; the CDK CLI says where to."""
    missing = [name for name in PREPARED if not (ASSETS / name).exists()]
    if missing:
        sys.exit(
            f"app.py: the weights of the reference ensembles are not prepared ({ASSETS / missing[0]} is missing): run "
            "`python model_assets/prepare.py`"
        )
    app = cdk.App()
    add_stacks(app)
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except CdkTritonError as error:
        sys.exit(f"app.py: {error}")
