"""Stacks, resources, events and change sets in the shapes of CloudFormation's API reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cdk_triton_local.cloudformation.engine import ChangeSet
from cdk_triton_local.cloudformation.intrinsics import UNKNOWN, contains_unknown
from cdk_triton_local.cloudformation.parameters import ParameterValue
from cdk_triton_local.cloudformation.plan import Change, PropertyChange
from cdk_triton_local.cloudformation.resource_types import registered
from cdk_triton_local.cloudformation.stacks import Event, Stack, StackResource, Target

__all__ = [
    "describe_change_set",
    "describe_event",
    "describe_resource",
    "describe_stack",
    "describe_template",
    "summarise_change_set",
    "summarise_resource",
    "summarise_stack",
]

_NO_DRIFT = {"StackDriftStatus": "NOT_CHECKED"}
_KNOWN_AFTER_APPLY = "{{changeSet:KNOWN_AFTER_APPLY}}"


def present(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members, without those of the value `None`."""
    return {name: value for name, value in members.items() if value is not None}


def describe_stack(stack: Stack) -> dict[str, Any]:
    """The API type Stack."""
    current = stack.shown
    return present(
        {
            "StackId": stack.id,
            "StackName": stack.name,
            "ChangeSetId": stack.change_set_id,
            "Description": (current.template.description or None) if current else None,
            "Parameters": [_parameter(value) for value in current.parameters.values()] if current else [],
            "CreationTime": stack.created,
            "LastUpdatedTime": stack.updated,
            "DeletionTime": stack.deleted,
            "RollbackConfiguration": {},
            "StackStatus": stack.status,
            "StackStatusReason": stack.reason or None,
            "DisableRollback": False,
            "NotificationARNs": list(stack.settings.notification_arns),
            "Capabilities": list(stack.settings.capabilities),
            "Outputs": [
                present(
                    {
                        "OutputKey": output.key,
                        "OutputValue": output.value,
                        "Description": output.description or None,
                        "ExportName": output.export,
                    }
                )
                for output in stack.outputs
            ],
            "RoleARN": stack.settings.role_arn,
            "Tags": _tags(current),
            "EnableTerminationProtection": stack.termination_protection,
            "DriftInformation": _NO_DRIFT,
        }
    )


def summarise_stack(stack: Stack) -> dict[str, Any]:
    """The API type StackSummary."""
    return present(
        {
            "StackId": stack.id,
            "StackName": stack.name,
            "TemplateDescription": (stack.shown.template.description or None) if stack.shown else None,
            "CreationTime": stack.created,
            "LastUpdatedTime": stack.updated,
            "DeletionTime": stack.deleted,
            "StackStatus": stack.status,
            "StackStatusReason": stack.reason or None,
            "DriftInformation": _NO_DRIFT,
        }
    )


def describe_event(stack: Stack, event: Event) -> dict[str, Any]:
    """The API type StackEvent."""
    return present(
        {
            "StackId": stack.id,
            "EventId": event.id,
            "StackName": stack.name,
            "OperationId": event.operation or None,
            "LogicalResourceId": event.logical_id,
            "PhysicalResourceId": event.physical_id,
            "ResourceType": event.type,
            "Timestamp": event.timestamp,
            "ResourceStatus": event.status,
            "ResourceStatusReason": event.reason or None,
            "ResourceProperties": None if event.properties is None else json.dumps(event.properties),
            "ClientRequestToken": event.token or None,
        }
    )


def describe_resource(stack: Stack, name: str, resource: StackResource) -> dict[str, Any]:
    """The API type StackResource."""
    return {"StackName": stack.name, "StackId": stack.id, "Timestamp": resource.updated, **_resource(name, resource)}


def summarise_resource(name: str, resource: StackResource) -> dict[str, Any]:
    """The API type StackResourceSummary."""
    return {"LastUpdatedTimestamp": resource.updated, **_resource(name, resource)}


def _resource(name: str, resource: StackResource) -> dict[str, Any]:
    return present(
        {
            "LogicalResourceId": name,
            "PhysicalResourceId": None if resource.physical is None else resource.physical.id,
            "ResourceType": resource.definition.type,
            "ResourceStatus": resource.status,
            "ResourceStatusReason": resource.reason or None,
            "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
        }
    )


def summarise_change_set(change_set: ChangeSet) -> dict[str, Any]:
    """The API type ChangeSetSummary."""
    return present(
        {
            "StackId": change_set.stack.id,
            "StackName": change_set.stack.name,
            "ChangeSetId": change_set.id,
            "ChangeSetName": change_set.name,
            "ExecutionStatus": _execution_status(change_set),
            "Status": change_set.status,
            "StatusReason": change_set.reason or None,
            "CreationTime": change_set.created,
            "Description": change_set.description or None,
            "IncludeNestedStacks": False,
        }
    )


def describe_change_set(change_set: ChangeSet, *, property_values: bool) -> dict[str, Any]:
    """The answer of DescribeChangeSet.

    Args:
        change_set: the change set.
        property_values: whether to include the values before and after (`IncludePropertyValues`).
    """
    changes = () if change_set.plan is None else change_set.plan.changes
    return {
        **summarise_change_set(change_set),
        "Parameters": [_parameter(value) for value in change_set.target.parameters.values()],
        "NotificationARNs": [],
        "RollbackConfiguration": {},
        "Capabilities": list(change_set.settings.capabilities),
        "Tags": _tags(change_set.target),
        "Changes": [{"Type": "Resource", "ResourceChange": _change(change, property_values)} for change in changes],
    }


def describe_template(target: Target) -> dict[str, Any]:
    """The answer of GetTemplateSummary."""
    template = target.template
    by_type: dict[str, list[str]] = {}
    for name, resource in template.resources.items():
        by_type.setdefault(resource.type, []).append(name)
    return present(
        {
            "Description": template.description or None,
            "ResourceTypes": sorted(by_type),
            "ResourceIdentifierSummaries": [
                {
                    "ResourceType": type_name,
                    "LogicalResourceIds": by_type[type_name],
                    "ResourceIdentifiers": [",".join(resource_type.schema.primary_identifier)],
                }
                for type_name, resource_type in registered().items()
                if resource_type.importable and type_name in by_type
            ],
            "Metadata": json.dumps(template.metadata) if template.metadata else None,
            "DeclaredTransforms": [],
            "Parameters": [
                present(
                    {
                        "ParameterKey": key,
                        "DefaultValue": None if "Default" not in body else str(body["Default"]),
                        "ParameterType": body["Type"],
                        "NoEcho": str(body.get("NoEcho", False)).lower() == "true",
                        "Description": body.get("Description"),
                    }
                )
                for key, body in template.parameters.items()
            ],
        }
    )


def _execution_status(change_set: ChangeSet) -> str:
    return "UNAVAILABLE" if change_set.plan is None else change_set.execution_status


def _change(change: Change, property_values: bool) -> dict[str, Any]:
    details = [_detail(each, property_values) for each in change.properties]
    return present(
        {
            "PolicyAction": "Retain" if change.retained else "Delete" if change.action == "Remove" else None,
            "Action": change.action,
            "LogicalResourceId": change.logical_id,
            "PhysicalResourceId": change.physical_id,
            "ResourceType": change.type,
            "Replacement": change.replacement,
            "Scope": ["Properties"] if change.properties else [],
            "Details": details,
        }
    )


def _detail(change: PropertyChange, property_values: bool) -> dict[str, Any]:
    target = {
        "Attribute": "Properties",
        "Name": change.name,
        "RequiresRecreation": change.recreation,
    }
    if property_values:
        target["Path"] = f"/Properties/{change.name}"
        target["AttributeChangeType"] = (
            "Add" if change.before is None else "Remove" if change.after is None else "Modify"
        )
        if change.before is not None:
            target["BeforeValue"] = _value(change.before)
        if change.after is not None:
            target["AfterValue"] = _value(change.after)
    dynamic = contains_unknown(change.after)
    return {
        "Target": target,
        "Evaluation": "Dynamic" if dynamic else "Static",
        "ChangeSource": "ResourceReference" if dynamic else "DirectModification",
    }


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is UNKNOWN:
        return _KNOWN_AFTER_APPLY
    return json.dumps(value, default=lambda _: _KNOWN_AFTER_APPLY)


def _parameter(value: ParameterValue) -> dict[str, Any]:
    shown = {"ParameterKey": value.key, "ParameterValue": "****" if value.no_echo else value.given}
    if value.from_ssm:
        shown["ResolvedValue"] = ",".join(value.resolved) if isinstance(value.resolved, list) else value.resolved
    return shown


def _tags(target: Target | None) -> list[dict[str, str]]:
    return [] if target is None else [{"Key": key, "Value": value} for key, value in target.tags.items()]
