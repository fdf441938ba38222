"""Inference components of SageMaker's endpoints."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

from typing import Any

from cdk_triton.errors import LocalError
from cdk_triton_local.cloudformation.resource_types._calls import missing_is_fine, picked
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    NotAttemptedError,
    PhysicalResource,
    Properties,
    ResourceFailedError,
    ResourceType,
    register,
)

_POLL_SECONDS = 0.05

_FIXED = ("EndpointName", "InferenceComponentName", "VariantName")
"""Properties that CloudFormation's schema lets change in place, and that UpdateInferenceComponent does not take."""


@register
class InferenceComponent(ResourceType):
    """AWS::SageMaker::InferenceComponent."""

    type_name = "AWS::SageMaker::InferenceComponent"
    note = (
        "Each copy of a `ModelName` has a real server. A copy fails if the instances do not have the GPUs, CPUs or "
        "memory that it needs. The number of instances follows the copies. An update starts new copies before it ends "
        "the old copies, and keeps the number of copies if `RuntimeConfig` is unchanged."
    )
    modelled = frozenset({*_FIXED, "RuntimeConfig", "Specification"})
    recorded = frozenset({"DeploymentConfig", "Tags"})
    attributes = frozenset({"InferenceComponentArn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("InferenceComponentName") or context.generated_name(63)
        request = {**properties, "InferenceComponentName": name, "Tags": context.tag_list(properties)}
        request.pop("DeploymentConfig", None)
        arn = context.client("sagemaker").create_inference_component(**request)["InferenceComponentArn"]
        # Ref returns the primary identifier, the ARN; its last part is no name where the name has capitals.
        physical = PhysicalResource(arn, {"InferenceComponentArn": arn, "Name": name})
        context.initiated(arn)
        try:
            self._wait(context, name)
        except LocalError as error:
            raise ResourceFailedError(str(error), physical) from error  # a failed one exists until it is deleted
        return physical

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        if moved := [each for each in _FIXED if properties.get(each) != previous.get(each)]:
            raise NotAttemptedError(
                f"{moved[0]} of an inference component cannot change: UpdateInferenceComponent does not take it"
            )
        name = physical.attributes["Name"]
        changed = [each for each in ("RuntimeConfig", "Specification") if properties.get(each) != previous.get(each)]
        if changed:
            client = context.client("sagemaker")
            client.update_inference_component(InferenceComponentName=name, **picked(properties, *changed))
            self._wait(context, name)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            name = physical.attributes["Name"]
            context.client("sagemaker").delete_inference_component(InferenceComponentName=name)
            while self._described(context, name)["InferenceComponentStatus"] == "Deleting":
                context.services.sleep(_POLL_SECONDS)

    def _wait(self, context: Context, name: str) -> None:
        while (now := self._described(context, name))["InferenceComponentStatus"] in ("Creating", "Updating"):
            context.services.sleep(_POLL_SECONDS)
        if now["InferenceComponentStatus"] != "InService" or "FailureReason" in now:
            raise LocalError(now.get("FailureReason", f"component {name} is {now['InferenceComponentStatus']}"))

    @staticmethod
    def _described(context: Context, name: str) -> Any:
        return context.client("sagemaker").describe_inference_component(InferenceComponentName=name)
