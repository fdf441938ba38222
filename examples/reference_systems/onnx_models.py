"""System 2: two networks on the ONNX Runtime backend, tuned for CUDA and for TensorRT, on one multi-model endpoint."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import ModelRepository, TritonArtifactStore, TritonEndpoint, TritonMultiModel
from examples.reference_systems.alarms import alarm_topic
from examples.reference_systems.assets import ASSETS, PLATFORM


class OnnxModels(cdk.Stack):
    """ResNet-50 and a BERT encoder as they are exported: a build makes nothing of them before they serve."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
        super().__init__(scope, id)
        multi_model = TritonMultiModel(
            self,
            "Models",
            store=store,
            platform=PLATFORM,
            ensembles={
                name: ModelRepository.from_directory(ASSETS / "onnx_models" / name) for name in ("images", "texts")
            },
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=multi_model)
        endpoint.monitor(topic=alarm_topic(self))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "ImageModel", value=multi_model.target_model("images"))
        cdk.CfnOutput(self, "TextModel", value=multi_model.target_model("texts"))
