"""The network of an endpoint configuration, which all of its components share.

`VpcConfig` and `EnableNetworkIsolation` of an endpoint with components belong to the configuration (the API reference
of CreateEndpointConfig). The models of its components must have the same settings.
"""

from __future__ import annotations

import json
from typing import Final

from aws_cdk import Annotations
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.vpc_endpoints import await_network
from cdk_triton.hosting.models.execution_role import Execution, execution_of
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["SharedNetwork"]

OTHER_MODEL_WARNING: Final = "cdk-triton:ComponentOfOtherModel"


class SharedNetwork:
    """The network of the first component's model, which the models of all other components must have too.

    Args:
        scope: the endpoint.
        config: the L1 of its configuration.
    """

    def __init__(self, scope: Construct, config: sagemaker.CfnEndpointConfig) -> None:
        self._scope = scope
        self._config = config
        self._first: tuple[str, str] | None = None

    def check(self, model: ITritonModel) -> None:
        """Reject a model whose network differs from that of the models before it.

        Raises:
            ConfigurationError: the model differs in its subnets, security groups or isolation.
        """
        execution = execution_of(model)
        if execution is None or self._first is None:
            return
        path, settings = self._first
        if self._described(execution) != settings:
            raise ConfigurationError(
                f"{model.node.path} and {path} differ in vpc, vpc_subnets, security_groups or network_isolation, but "
                "all components of an endpoint share them: give both the same values; in a VPC, pass security_groups, "
                "because each model makes its own otherwise"
            )

    def take(self, model: ITritonModel) -> None:
        """Give the configuration the network of the first model; warn about a model whose network is unknown here."""
        execution = execution_of(model)
        if execution is None:
            Annotations.of(self._scope).add_warning_v2(
                OTHER_MODEL_WARNING,
                f"{model.node.path} is not a TritonModel of this app, so cdk-triton cannot check its network, archive "
                "and image. Make sure that the model has the network of the other components, and grant "
                "components.role the permissions of the model's own role. Then acknowledge this",
            )
            return
        if self._first is not None:
            return
        self._first = model.node.path, self._described(execution)
        if execution.network_isolation:
            self._config.enable_network_isolation = True
        if (network := execution.network) is not None:
            self._config.vpc_config = sagemaker.CfnEndpointConfig.VpcConfigProperty(
                subnets=list(network.subnets), security_group_ids=list(network.security_groups)
            )
            await_network(self._config, network, self._scope, "instances")

    def _described(self, execution: Execution) -> str:
        network = execution.network
        ids = None if network is None else [sorted(network.subnets), sorted(network.security_groups)]
        return json.dumps(stack_of(self._scope).resolve([ids, execution.network_isolation]), sort_keys=True)
