"""Nested stacks: each is a stack of its own, deployed by the operations that a caller would use."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from cdk_triton.errors import LocalError
from cdk_triton_local.cloudformation.resource_types._calls import picked
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceFailedError,
    ResourceType,
    register,
)

POLL_SECONDS = 0.05

CAPABILITIES = ["CAPABILITY_NAMED_IAM"]
"""The parent's deployment has needed them already."""


@register
class NestedStack(ResourceType):
    """AWS::CloudFormation::Stack."""

    type_name = "AWS::CloudFormation::Stack"
    note = (
        "A stack of its own, with parameters, outputs and events. It deletes replaced resources when its own update "
        "ends. CloudFormation deletes them when the update of the parent ends."
    )
    modelled = frozenset({"Parameters", "Tags", "TemplateURL"})
    recorded = frozenset({"NotificationARNs", "TimeoutInMinutes"})

    def check_attribute(self, attribute: str) -> None:
        """Accept any output: only the nested template lists them."""
        if not attribute.startswith("Outputs."):
            super().check_attribute(attribute)

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        """Create the stack; one that failed is left to the parent's rollback."""
        client, name = context.client("cloudformation"), context.generated_name(128)
        identifier = client.create_stack(StackName=name, **_request(context, properties))["StackId"]
        context.initiated(identifier)
        stack = _wait_until_finished(context, identifier)
        if stack["StackStatus"] != "CREATE_COMPLETE":
            raise ResourceFailedError(
                f"Embedded stack {identifier} was not successfully created: {_reason(stack)}",
                PhysicalResource(identifier),
            )
        return _physical(stack)

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        """Update the stack, which rolls itself back if that fails."""
        client = context.client("cloudformation")
        try:
            client.update_stack(StackName=physical.id, **_request(context, properties))
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
            return _physical(_wait_until_finished(context, physical.id))
        stack = _wait_until_finished(context, physical.id)
        if stack["StackStatus"] != "UPDATE_COMPLETE":
            raise LocalError(f"Embedded stack {physical.id} was not successfully updated: {_reason(stack)}")
        return _physical(stack)

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        """Delete the stack and all that it has."""
        context.client("cloudformation").delete_stack(StackName=physical.id)
        stack = _wait_until_finished(context, physical.id)
        if stack["StackStatus"] != "DELETE_COMPLETE":
            raise LocalError(f"Embedded stack {physical.id} was not successfully deleted: {_reason(stack)}")


def _request(context: Context, properties: Properties) -> dict[str, Any]:
    parameters = properties.get("Parameters", {})
    return {
        **picked(properties, "TemplateURL"),
        "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        "Tags": context.tag_list(properties),
        "Capabilities": CAPABILITIES,
    }


def _wait_until_finished(context: Context, identifier: str) -> dict[str, Any]:
    while True:
        stack: dict[str, Any] = context.client("cloudformation").describe_stacks(StackName=identifier)["Stacks"][0]
        if not stack["StackStatus"].endswith("_IN_PROGRESS"):
            return stack
        context.services.sleep(POLL_SECONDS)


def _reason(stack: dict[str, Any]) -> str:
    return f"{stack['StackStatus']}. {stack.get('StackStatusReason', '')}".rstrip()


def _physical(stack: dict[str, Any]) -> PhysicalResource:
    outputs = {f"Outputs.{each['OutputKey']}": each["OutputValue"] for each in stack.get("Outputs", [])}
    return PhysicalResource(stack["StackId"], outputs)
