"""System 0: a DALI pipeline and a classifier as one ensemble, on an endpoint of their own."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import ModelRepository, TritonArtifactStore, TritonEndpoint, TritonModel
from examples.reference_systems.assets import ASSETS, PLATFORM


class ImageClassification(cdk.Stack):
    """The image ensemble on an endpoint of its own."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
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
