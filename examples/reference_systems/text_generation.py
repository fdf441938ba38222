"""System 4: a generating model in the Python backend, with its packages in an environment that the deployment packs.

`TextGeneration` answers at once, `TextStreaming` in parts. Both serve the same repository, so the second one of them
that is deployed finds its archive built.
"""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import (
    ContainerEnvironment,
    GoldenRequest,
    ModelRepository,
    Rehearsal,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    WheelEnvironment,
)
from examples.reference_systems.alarms import alarm_topic
from examples.reference_systems.assets import ASSETS, PLATFORM


def smollm2(rehearsal: Rehearsal | None = None) -> ModelRepository:
    """SmolLM2-135M-Instruct with its packages, which the deployment packs."""
    return ModelRepository.from_directory(
        ASSETS / "text_generation", recipes=[WheelEnvironment("generate")], rehearsal=rehearsal
    )


class TextGeneration(cdk.Stack):
    """SmolLM2 answers prompts: the archive has the weights, the tokenizer and the packages, and fetches nothing.

    The golden request is here and not in `cdk-triton.toml`, because a container that streams does not read it.
    """

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
        super().__init__(scope, id)
        capital = GoldenRequest("golden/capital.json", label="The capital of France is Paris.")
        multi_model = TritonMultiModel(
            self,
            "Models",
            store=store,
            platform=PLATFORM,
            ensembles={"smollm2": smollm2(Rehearsal([capital]))},
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=multi_model)
        endpoint.monitor(topic=alarm_topic(self))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "TextModel", value=multi_model.target_model("smollm2"))


class TextStreaming(cdk.Stack):
    """SmolLM2 sends its answers in parts: a single-model endpoint, because those of multi-model ones cannot stream."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
        super().__init__(scope, id)
        model = TritonModel(
            self,
            "Model",
            store=store,
            platform=PLATFORM,
            repository=smollm2(),
            environment=ContainerEnvironment(inference_type="generate_stream"),
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=model)
        endpoint.monitor(topic=alarm_topic(self))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
