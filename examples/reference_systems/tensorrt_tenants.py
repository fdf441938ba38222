"""System 3: one TensorRT plan for many tenants, each a target model of one multi-model endpoint."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import ModelRepository, TritonArtifactStore, TritonEndpoint, TritonMultiModel
from cdk_triton.errors import ConfigurationError
from examples.reference_systems.alarms import alarm_topic
from examples.reference_systems.assets import ASSETS, PLATFORM
from examples.reference_systems.bert import BERT

MOST_TENANTS = 190
"""CloudFormation takes 200 outputs of a stack, and each tenant has one here."""


class TensorRTTenants(cdk.Stack):
    """A plan that is built and stored once, however many tenants there are: `cdk deploy -c tenants=16`.

    Each tenant has a copy of the archive below the prefix of the endpoint, because SageMaker loads, evicts and counts
    an object for each target model. S3 makes the copy, and charges for its bytes.
    """

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
        super().__init__(scope, id)
        repository = ModelRepository.from_directory(ASSETS / "tensorrt_tenants", recipes=[BERT])
        multi_model = TritonMultiModel(
            self,
            "Tenants",
            store=store,
            platform=PLATFORM,
            ensembles={f"tenant-{number}": repository for number in range(1, tenants(self) + 1)},
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=multi_model)
        endpoint.monitor(topic=alarm_topic(self))  # its dashboard has LoadedModelCount and ModelCacheHit
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        for tenant, target_model in multi_model.target_models.items():
            cdk.CfnOutput(self, tenant.title().replace("-", ""), value=target_model)


def tenants(scope: Construct) -> int:
    """The number of tenants, from the context value `tenants`: 6 by default.

    Raises:
        ConfigurationError: the value is not a number from 1 to `MOST_TENANTS`.
    """
    given = scope.node.try_get_context("tenants")
    text = "6" if given is None else str(given)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_TENANTS:
        raise ConfigurationError(
            f"the context value tenants is {text!r}; give a number from 1 to {MOST_TENANTS}, such as -c tenants=6"
        )
    return int(text)
