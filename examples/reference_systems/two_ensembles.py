"""System 1: two ensembles on one multi-model endpoint."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_triton import (
    ContainerEnvironment,
    ModelRepository,
    Parity,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonMultiModel,
)
from examples.reference_systems.assets import ASSETS, PLATFORM

# A plan takes the shapes that it was built for: smallest, usual and largest, each as texts and tokens. The tokenizer
# makes 256 tokens of a text at most. With real token ids and no padding the comparison with ONNX Runtime means most.
SHAPES = ((1, 1), (8, 64), (16, 256))
BERT = TensorRTPlan(
    "bert",
    onnx="bert.onnx",
    precision="fp16",
    profiles=[{"token_ids": SHAPES, "attn_mask": SHAPES}],
    parity=Parity(ranges={"token_ids": (0, 30521), "attn_mask": (1, 1)}),
)


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
        key = kms.Key(self, "AlarmsKey", description="Alarms of the two ensembles", enable_key_rotation=True)
        endpoint.monitor(topic=sns.Topic(self, "Alarms", master_key=key, enforce_ssl=True))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "TextModel", value=multi_model.target_model("text"))
        cdk.CfnOutput(self, "ImageModel", value=multi_model.target_model("image"))
