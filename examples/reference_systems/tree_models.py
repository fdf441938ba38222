"""Tree models of three tenants on one multi-model endpoint: of scikit-learn, XGBoost and LightGBM, on FIL."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from cdk_triton import ModelRepository, TritonArtifactStore, TritonEndpoint, TritonMultiModel
from examples.reference_systems.alarms import alarm_topic
from examples.reference_systems.assets import ASSETS, PLATFORM

TENANTS = ("wine", "cancer", "diabetes")
"""The tenants, each with a repository in `model_assets/tree_models/`."""


class TreeModels(cdk.Stack):
    """A model for each tenant, as its library saved it: the deployment builds nothing, and copies some kilobytes."""

    def __init__(self, scope: Construct, id: str, *, store: TritonArtifactStore) -> None:
        super().__init__(scope, id)
        multi_model = TritonMultiModel(
            self,
            "Models",
            store=store,
            platform=PLATFORM,
            ensembles={name: ModelRepository.from_directory(ASSETS / "tree_models" / name) for name in TENANTS},
        )
        endpoint = TritonEndpoint(self, "Endpoint", model=multi_model)
        endpoint.monitor(topic=alarm_topic(self))
        cdk.CfnOutput(self, "EndpointName", value=endpoint.endpoint_name)
        for name in TENANTS:
            cdk.CfnOutput(self, f"{name.title()}Model", value=multi_model.target_model(name))
