"""System 1: two ensembles on one multi-model endpoint."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import (
    ContainerEnvironment,
    ModelRepository,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonMultiModel,
)
from examples.reference_systems.alarms import alarm_topic
from examples.reference_systems.assets import ASSETS, PLATFORM
from examples.reference_systems.bert import BERT


def text_repository(directory: Path = ASSETS / "sentence_embedding", bert: TensorRTPlan = BERT) -> ModelRepository:
    """The text ensemble, whose network becomes a TensorRT plan during the deployment."""
    return ModelRepository.from_directory(directory, recipes=[bert])


class TwoEnsembles(cdk.Stack):
    """Both ensembles on one multi-model endpoint, scaled and watched: text in, embedding out; JPEG in, classes out."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        store: TritonArtifactStore,
        text: ModelRepository,
    ) -> None:
        super().__init__(scope, id)
        multi_model = TritonMultiModel(
            self,
            "Fleet",
            store=store,
            platform=PLATFORM,
            ensembles={
                "text": text,
                "image": ModelRepository.from_directory(ASSETS / "image_classification"),
            },
            # Otherwise DALI keeps its memory when SageMaker unloads the image ensemble to make room for others.
            environment=ContainerEnvironment(additional_args=("--backend-config=dali,release_after_unload=true",)),
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=multi_model)
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        count.scale_on_invocations("Requests", max_requests_per_second=40)
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
        endpoint.monitor(topic=alarm_topic(self))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "TextModel", value=multi_model.target_model("text"))
        cdk.CfnOutput(self, "ImageModel", value=multi_model.target_model("image"))
