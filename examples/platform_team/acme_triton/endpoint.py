"""`AcmeEndpoint`: the construct that product teams use."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Annotations, Tags
from constructs import Construct

from acme_triton.account import artifact_store, pager, private_network
from cdk_triton import ModelRepository, ServingPlatform, TritonEndpoint, TritonMultiModel, TritonVariant

__all__ = ["AcmeEndpoint"]

PLATFORM = ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")
RUNBOOK = "https://runbooks.acme.example/triton"


class AcmeEndpoint(Construct):
    """Serves a team's ensembles on GPUs, in Acme's network and under Acme's eyes.

    Attributes:
        endpoint: the endpoint: grant what calls it `endpoint.grant_invoke`.
        target_models: ensemble to what callers send as `TargetModel`.

    Args:
        scope: the team's stack.
        id: the construct's id.
        team: who pays and who is called; lower case.
        ensembles: repository by name.
        max_instances: how far the endpoint grows.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        team: str,
        ensembles: Mapping[str, ModelRepository],
        max_instances: int = 4,
    ) -> None:
        super().__init__(scope, id)
        store, vpc = artifact_store(self, team), private_network(self)
        multi_model = TritonMultiModel(self, "Fleet", store=store, platform=PLATFORM, ensembles=ensembles, vpc=vpc)
        variant = TritonVariant(model=multi_model, initial_instance_count=2)  # in two availability zones
        self.target_models = multi_model.target_models
        self.endpoint = TritonEndpoint(self, "Endpoint", variants=[variant])
        count = self.endpoint.auto_scale_instance_count(min_capacity=2, max_capacity=max_instances)
        count.scale_on_concurrent_requests("Requests", target_concurrent_requests=8)
        self.endpoint.monitor(topic=pager(self), runbook_url=RUNBOOK)
        Annotations.of(self.endpoint).acknowledge_warning("cdk-triton:TopicNotGranted", "the pager takes alarms")
        Tags.of(self).add("acme:team", team)
        Tags.of(self).add("acme:service", "triton")
