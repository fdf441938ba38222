"""SageMaker models, endpoint configurations and endpoints."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from cdk_triton.errors import LocalError
from cdk_triton_local.cloudformation.resource_types._calls import has_to_exist, missing_is_fine, picked
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceFailedError,
    ResourceType,
    register,
)

POLL_SECONDS, _POLL_SECONDS = 30, 0.05
"""Between two looks at an endpoint: on AWS, about, and here."""

_OF_AN_UPDATE = (
    "DeploymentConfig",
    "ExcludeRetainedVariantProperties",
    "RetainAllVariantProperties",
    "RetainDeploymentConfig",
)
"""Properties of an endpoint that UpdateEndpoint takes; of them, CreateEndpoint takes the first."""


class _NamedType(ResourceType):
    """The physical id is the ARN, and tags can change in place."""

    noun: ClassVar[str]
    """As in the name of the API's operations and members."""

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get(f"{self.noun}Name") or context.generated_name(63)
        request = {**properties, f"{self.noun}Name": name, "Tags": context.tag_list(properties)}
        for unknown_to_the_api in _OF_AN_UPDATE[1:]:
            request.pop(unknown_to_the_api, None)
        return self._physical(name, self._call(context, "create", request)[f"{self.noun}Arn"])

    def existing(self, context: Context, identifier: Mapping[str, str]) -> PhysicalResource:
        arn = identifier[f"{self.noun}Arn"]
        missing = f"Resource of type '{self.type_name}' with identifier '{arn}' was not found."
        with has_to_exist(missing):
            described = self._call(context, "describe", {f"{self.noun}Name": _name(arn)})
        if described[f"{self.noun}Arn"] != arn:
            raise LocalError(missing)
        return self._physical(described[f"{self.noun}Name"], arn)

    def add_tags(self, context: Context, physical: PhysicalResource) -> None:
        context.client("sagemaker").add_tags(ResourceArn=physical.id, Tags=context.tag_list({}))

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        client, tags = context.client("sagemaker"), context.tag_list(properties)
        gone = {each["Key"] for each in context.tag_list(previous)} - {each["Key"] for each in tags}
        client.add_tags(ResourceArn=physical.id, Tags=tags)
        if gone:
            client.delete_tags(ResourceArn=physical.id, TagKeys=sorted(gone))
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            self._call(context, "delete", {f"{self.noun}Name": physical.attributes[f"{self.noun}Name"]})

    def _physical(self, name: str, arn: str) -> PhysicalResource:
        return PhysicalResource(arn, {f"{self.noun}Name": name, f"{self.noun}Arn": arn})

    def _call(self, context: Context, verb: str, request: dict[str, Any]) -> Any:
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in self.noun)
        return getattr(context.client("sagemaker"), f"{verb}{snake}")(**request)


@register
class Model(_NamedType):
    """AWS::SageMaker::Model."""

    type_name = "AWS::SageMaker::Model"
    noun = "Model"
    note = (
        "The container's mode, archive or uncompressed files, cache setting and environment are served; image, role, "
        "network and isolation are recorded."
    )
    modelled = frozenset({"ExecutionRoleArn", "ModelName", "PrimaryContainer", "Tags"})
    recorded = frozenset({"EnableNetworkIsolation", "VpcConfig"})
    attributes = frozenset({"ModelArn", "ModelName"})


@register
class EndpointConfig(_NamedType):
    """AWS::SageMaker::EndpointConfig."""

    type_name = "AWS::SageMaker::EndpointConfig"
    noun = "EndpointConfig"
    note = (
        "Each variant, with its model and weight, has one server, whatever the instance type and count. If a variant "
        "has instance pools, its server is that of the first pool for which `cdk-triton local capacity` leaves "
        "instances. A shadow gets copies of requests, but its answers are discarded. Data capture writes to the local "
        "S3; encryption, routing, volumes, timeouts and capacity reservations are recorded. A variant without a model "
        "has as many inference components as fit on the instances that the limits of ManagedInstanceScaling allow. "
        "Asynchronous endpoints have a queue and write to the local S3; the key of their answers is recorded. "
        "Serverless inference is rejected."
    )
    modelled = frozenset(
        {
            "AsyncInferenceConfig",
            "DataCaptureConfig",
            "EndpointConfigName",
            "ProductionVariants",
            "ShadowProductionVariants",
            "Tags",
        }
    )
    recorded = frozenset({"EnableNetworkIsolation", "ExecutionRoleArn", "KmsKeyId", "MetricsConfig", "VpcConfig"})
    attributes = frozenset({"EndpointConfigArn", "EndpointConfigName"})


@register
class Endpoint(_NamedType):
    """AWS::SageMaker::Endpoint."""

    type_name = "AWS::SageMaker::Endpoint"
    noun = "Endpoint"
    note = (
        "A real server behind the local runtime API. An update moves the requests as DeploymentConfig says, and rolls "
        "back when one of its alarms goes off. The local AWS models the weights and instance counts that an update "
        "retains."
    )
    modelled = frozenset(
        {
            "DeploymentConfig",
            "EndpointConfigName",
            "EndpointName",
            "ExcludeRetainedVariantProperties",
            "RetainAllVariantProperties",
            "RetainDeploymentConfig",
            "Tags",
        }
    )
    attributes = frozenset({"EndpointArn", "EndpointName"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        physical = super().create(context, properties)
        context.initiated(physical.id)
        try:
            self._wait(context, physical, properties["EndpointConfigName"])
        except LocalError as error:
            raise ResourceFailedError(str(error), physical) from error  # a failed endpoint exists until it is deleted
        return physical

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        if properties.get("Tags") != previous.get("Tags"):
            super().update(context, physical, properties, previous)
        context.client("sagemaker").update_endpoint(
            EndpointName=physical.attributes["EndpointName"],
            EndpointConfigName=_name(properties["EndpointConfigName"]),
            **picked(properties, *_OF_AN_UPDATE),
        )
        self._wait(context, physical, properties["EndpointConfigName"])
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            super().delete(context, physical, properties)
            while True:
                now = context.client("sagemaker").describe_endpoint(EndpointName=physical.attributes["EndpointName"])
                if now["EndpointStatus"] != "Deleting":
                    raise LocalError(now.get("FailureReason", "the endpoint was not deleted"))
                context.services.sleep(POLL_SECONDS, _POLL_SECONDS)

    def _wait(self, context: Context, physical: PhysicalResource, wanted: str) -> None:
        name = physical.attributes["EndpointName"]
        while True:
            now = context.client("sagemaker").describe_endpoint(EndpointName=name)
            if now["EndpointStatus"] not in ("Creating", "Updating", "RollingBack"):
                break
            context.services.sleep(POLL_SECONDS, _POLL_SECONDS)
        if now["EndpointStatus"] != "InService" or now["EndpointConfigName"] != _name(wanted):
            raise LocalError(now.get("FailureReason", f"endpoint {name} is {now['EndpointStatus']}"))


def _name(name_or_arn: str) -> str:
    """`Ref` of these types gives an ARN."""
    return name_or_arn.rsplit("/", 1)[-1]
