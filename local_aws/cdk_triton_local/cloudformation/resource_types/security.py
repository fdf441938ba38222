"""KMS keys and aliases, SSM parameters, and the CDK's metadata resource."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

from cdk_triton_local.cloudformation.resource_types._calls import document, missing_is_fine, picked
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceType,
    register,
)


@register
class Key(ResourceType):
    """AWS::KMS::Key."""

    type_name = "AWS::KMS::Key"
    note = "A key with its policy; nothing here is encrypted with it."
    modelled = frozenset(
        {"Description", "EnableKeyRotation", "KeyPolicy", "KeySpec", "KeyUsage", "PendingWindowInDays", "Tags"}
    )
    recorded = frozenset({"Enabled", "MultiRegion", "RotationPeriodInDays"})
    attributes = frozenset({"Arn", "KeyId"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        policy = {"Policy": document(properties["KeyPolicy"])} if "KeyPolicy" in properties else {}
        tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in context.tag_list(properties)]
        metadata = context.client("kms").create_key(
            Tags=tags, **policy, **picked(properties, "Description", "KeySpec", "KeyUsage")
        )["KeyMetadata"]
        physical = PhysicalResource(metadata["KeyId"], {"Arn": metadata["Arn"], "KeyId": metadata["KeyId"]})
        self._rotate(context, physical, properties)
        return physical

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        kms = context.client("kms")
        kms.update_key_description(KeyId=physical.id, Description=properties.get("Description", ""))
        if "KeyPolicy" in properties:
            kms.put_key_policy(KeyId=physical.id, PolicyName="default", Policy=document(properties["KeyPolicy"]))
        self._rotate(context, physical, properties)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("kms").schedule_key_deletion(
                KeyId=physical.id, PendingWindowInDays=properties.get("PendingWindowInDays", 30)
            )

    @staticmethod
    def _rotate(context: Context, physical: PhysicalResource, properties: Properties) -> None:
        if properties.get("EnableKeyRotation"):
            context.client("kms").enable_key_rotation(KeyId=physical.id)


@register
class Alias(ResourceType):
    """AWS::KMS::Alias."""

    type_name = "AWS::KMS::Alias"
    note = "A name for a key."
    modelled = frozenset({"AliasName", "TargetKeyId"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        context.client("kms").create_alias(**picked(properties, "AliasName", "TargetKeyId"))
        return PhysicalResource(properties["AliasName"])

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        context.client("kms").update_alias(**picked(properties, "AliasName", "TargetKeyId"))
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("kms").delete_alias(AliasName=physical.id)


@register
class Parameter(ResourceType):
    """AWS::SSM::Parameter."""

    type_name = "AWS::SSM::Parameter"
    note = "A parameter of the Parameter Store."
    modelled = frozenset({"AllowedPattern", "DataType", "Description", "Name", "Tags", "Tier", "Type", "Value"})
    attributes = frozenset({"Type", "Value"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("Name") or context.generated_name(500)
        context.client("ssm").put_parameter(Name=name, Tags=context.tag_list(properties), **self._settings(properties))
        return PhysicalResource(name, picked(properties, "Type", "Value"))

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        context.client("ssm").put_parameter(Name=physical.id, Overwrite=True, **self._settings(properties))
        return PhysicalResource(physical.id, picked(properties, "Type", "Value"))

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("ssm").delete_parameter(Name=physical.id)

    def _settings(self, properties: Properties) -> dict[str, str]:
        return picked(properties, *sorted(self.modelled - {"Name", "Tags"}))


@register
class Metadata(ResourceType):
    """AWS::CDK::Metadata."""

    type_name = "AWS::CDK::Metadata"
    note = "The CDK's usage metadata; kept with the stack and sent nowhere."
    modelled = frozenset({"Analytics", "Modules"})
    attributes = frozenset({"Id"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = context.generated_name(128)
        return PhysicalResource(name, {"Id": name})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        """Nothing to do: it exists in the stack only."""
