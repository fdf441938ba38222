"""System 4: a generating model in the Python backend, with its packages in an environment that the deployment packs."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import (
    ContainerEnvironment,
    ModelRepository,
    TritonArtifactStore,
    TritonEndpoint,
    TritonMultiModel,
    WheelEnvironment,
)
from examples.reference_systems.alarms import alarm_topic
from examples.reference_systems.assets import ASSETS, PLATFORM


class TextGeneration(cdk.Stack):
    """SmolLM2 answers prompts: the archive has the weights, the tokenizer and the packages, and fetches nothing."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
        super().__init__(scope, id)
        smollm2 = ModelRepository.from_directory(ASSETS / "text_generation", recipes=[WheelEnvironment("generate")])
        multi_model = TritonMultiModel(
            self,
            "Models",
            store=store,
            platform=PLATFORM,
            ensembles={"smollm2": smollm2},
            # Prompts and answers are the only tensors between the server and the model's process: a few kB.
            environment=ContainerEnvironment(shm_default_byte_size=4 << 20),
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=multi_model)
        endpoint.monitor(topic=alarm_topic(self))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        cdk.CfnOutput(self, "TextModel", value=multi_model.target_model("smollm2"))
