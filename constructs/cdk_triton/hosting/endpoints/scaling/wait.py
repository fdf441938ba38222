"""Two custom resources that delay a deployment while an endpoint is being scaled.

While the number of instances changes, an endpoint is `Updating`. SageMaker then answers UpdateEndpoint and
DeleteEndpoint with "Cannot update in-progress endpoint". CloudFormation does not wait: the deployment would fail, and
if the deployment itself caused the scaling, so would its rollback. `lambda/artifacts/endpoint_wait.py` does the
waiting.
"""

from __future__ import annotations

from aws_cdk import CfnResource, CustomResource, Duration
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton.hosting.access.network import Network
from cdk_triton.hosting.access.vpc_endpoints import await_vpc_endpoints
from cdk_triton.hosting.naming.logical_ids import change_id_with

__all__ = ["EndpointWait"]

SERVICE_TIMEOUT = Duration.minutes(58)
"""For a handler that never answers: it should end a wait after 50 minutes, and CloudFormation waits an hour."""


class EndpointWait(Construct):
    """Two custom resources: CloudFormation deletes one before the endpoint, and changes the other before the endpoint.

    The first resource depends on the endpoint, so it can have the endpoint's name as its physical id. The endpoint
    depends on the second resource, which therefore cannot refer to the name, and gets the logical id of the first
    resource instead.

    Args:
        scope: the endpoint.
        id: the construct's id.
        endpoint: the endpoint's L1 construct.
        config: the L1 construct of the endpoint's configuration.
        service_token: the provider of the artifact store of the endpoint's models.
        network: the network of that store's functions; None for Lambda's own.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: sagemaker.CfnEndpoint,
        config: sagemaker.CfnEndpointConfig,
        service_token: str,
        network: Network | None,
    ) -> None:
        super().__init__(scope, id)
        self._token = service_token
        self.deletion = self._resource("BeforeDeletion", {"EndpointName": endpoint.attr_endpoint_name})
        of_name = self.deletion.node.default_child
        assert isinstance(of_name, CfnResource)  # as CDK makes it
        if network is not None:  # not before the update: the policy of a VPC endpoint may name the endpoint
            await_vpc_endpoints(of_name, network, scope, "waits for scaled endpoints")
        self._update = self._resource(
            "BeforeUpdate",
            {"EndpointConfigName": config.attr_endpoint_config_name, "NameIsIdOf": of_name.logical_id},
        )
        endpoint.node.add_dependency(self._update)

    def set_deployment(self, deployment: sagemaker.CfnEndpoint.DeploymentConfigProperty) -> None:
        """Also wait before a change of the deployment policy and its alarms, which updates the endpoint."""
        resource = self._update.node.default_child
        assert isinstance(resource, CfnResource)  # as CDK makes it
        resource.add_property_override("DeploymentConfig", deployment)

    def _resource(self, id: str, properties: dict[str, str]) -> CustomResource:
        made = CustomResource(
            self,
            id,
            resource_type="Custom::TritonEndpointWait",
            service_token=self._token,
            service_timeout=SERVICE_TIMEOUT,
            properties=properties,
        )
        change_id_with(made, self._token)  # "Modifying service token is not allowed"
        return made
