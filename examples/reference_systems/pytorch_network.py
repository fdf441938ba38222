"""A PyTorch network on a single-model endpoint, as TorchScript; the stack exists where `prepare.py` found PyTorch."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import ModelRepository, TritonArtifactStore, TritonEndpoint, TritonModel
from examples.reference_systems.alarms import alarm_topic
from examples.reference_systems.assets import ASSETS, PLATFORM

NETWORK = ASSETS / "pytorch_network/spirals/1/model.pt"


class PyTorchNetwork(cdk.Stack):
    """A network that says which of three spirals a point is on: the deployment builds nothing."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
        super().__init__(scope, id)
        repository = ModelRepository.from_directory(ASSETS / "pytorch_network")
        model = TritonModel(self, "Model", store=store, platform=PLATFORM, repository=repository)
        endpoint = TritonEndpoint(self, "Endpoint", model=model)
        endpoint.monitor(topic=alarm_topic(self))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
