"""Lambda functions and permissions, and the state machines that wait for them."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.intrinsics import UNKNOWN
from cdk_triton_local.cloudformation.resource_types._calls import missing_is_fine, picked, tag_map
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceType,
    register,
)
from cdk_triton_local.services import not_modelled

WAITER_TASK = "framework-isComplete-task"
"""The state of the Provider framework's state machine that calls `isComplete` again and again."""

_CONFIGURATION = ("Description", "Environment", "Handler", "MemorySize", "Role", "Runtime", "Timeout", "VpcConfig")

_NO_VPC: dict[str, list[str]] = {"SecurityGroupIds": [], "SubnetIds": []}


@register
class Function(ResourceType):
    """AWS::Lambda::Function."""

    type_name = "AWS::Lambda::Function"
    note = (
        "A Python function runs in a process of its own, with its own environment and timeout; memory is not limited. "
        "Of its LoggingConfig, the log group is used. Its VpcConfig has an effect only with [faults](#faults). "
        "The CDK Provider framework (`framework.*`) is replaced by the local CloudFormation. Other runtimes do not run."
    )
    modelled = frozenset(
        {
            "Code",
            "Description",
            "Environment",
            "FunctionName",
            "Handler",
            "LoggingConfig",
            "MemorySize",
            "Role",
            "Runtime",
            "Tags",
            "Timeout",
            "VpcConfig",
        }
    )
    recorded = frozenset(
        {
            "Architectures",
            "DeadLetterConfig",
            "EphemeralStorage",
            "KmsKeyArn",
            "ReservedConcurrentExecutions",
            "TracingConfig",
        }
    )
    attributes = frozenset({"Arn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        created = context.client("lambda").create_function(
            FunctionName=properties.get("FunctionName") or context.generated_name(64),
            Code=_code(properties),
            Tags=tag_map(context.tag_list(properties)),
            **_configuration(properties),
        )
        _log_as_configured(context, created["FunctionName"], properties)
        return PhysicalResource(created["FunctionName"], {"Arn": created["FunctionArn"]})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        client = context.client("lambda")
        if properties["Code"] != previous["Code"]:
            client.update_function_code(FunctionName=physical.id, **_code(properties))
        settings = {"Description": "", "Environment": {"Variables": {}}, "MemorySize": 128, "Timeout": 3}
        client.update_function_configuration(
            FunctionName=physical.id, **{**settings, "VpcConfig": _NO_VPC, **_configuration(properties)}
        )
        _log_as_configured(context, physical.id, properties)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("lambda").delete_function(FunctionName=physical.id)


def _configuration(properties: Properties) -> dict[str, Any]:
    found = picked(properties, *_CONFIGURATION)
    if "VpcConfig" in found:
        found["VpcConfig"] = {**_NO_VPC, **found["VpcConfig"]}  # moto needs both lists
    return found


def _log_as_configured(context: Context, function: str, properties: Properties) -> None:
    group = properties.get("LoggingConfig", {}).get("LogGroup")
    context.services.function_log_groups[function] = group or f"/aws/lambda/{function}"


@register
class Permission(ResourceType):
    """AWS::Lambda::Permission."""

    type_name = "AWS::Lambda::Permission"
    note = "A statement of the function's resource policy, which is not enforced."
    modelled = frozenset({"Action", "FunctionName", "Principal", "SourceAccount", "SourceArn"})
    attributes = frozenset({"Id"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        statement = context.generated_name(100)
        context.client("lambda").add_permission(
            StatementId=statement,
            **picked(properties, "Action", "FunctionName", "Principal", "SourceAccount", "SourceArn"),
        )
        return PhysicalResource(statement, {"Id": statement})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        return physical  # every property is create-only

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("lambda").remove_permission(FunctionName=properties["FunctionName"], StatementId=physical.id)


@register
class StateMachine(ResourceType):
    """AWS::StepFunctions::StateMachine."""

    type_name = "AWS::StepFunctions::StateMachine"
    note = (
        "Tasks of Lambda functions, choices and waits run, as in the waiter of an artifact store; waits are shorter "
        "here. Moto's interpreter runs a state machine with a distributed map, such as that of a publisher. The "
        "waiter of the CDK Provider framework does not run. The local CloudFormation polls the custom resource "
        "instead, at most until the timeout of that waiter."
    )
    modelled = frozenset({"DefinitionString", "RoleArn", "StateMachineName", "Tags"})
    recorded = frozenset(
        {"EncryptionConfiguration", "LoggingConfiguration", "StateMachineType", "TracingConfiguration"}
    )
    attributes = frozenset({"Arn", "Name"})

    def coerce(self, properties: Properties) -> dict[str, Any]:
        coerced = super().coerce(properties)
        definition = coerced.get("DefinitionString", "{}")
        if definition is UNKNOWN or WAITER_TASK in json.loads(definition).get("States", {}):
            return coerced
        if fault := not_modelled(json.loads(definition)):
            raise TemplateError(
                "AWS::StepFunctions::StateMachine is modelled for waiters of custom resources and for distributed maps "
                f"over a JSON file, but this definition has {fault}"
            )
        return coerced

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("StateMachineName") or context.generated_name(80)
        created = context.client("stepfunctions").create_state_machine(
            name=name,
            definition=properties["DefinitionString"],
            roleArn=properties["RoleArn"],
            tags=[{"key": tag["Key"], "value": tag["Value"]} for tag in context.tag_list(properties)],
            **_logging(properties),
        )
        arn = created["stateMachineArn"]
        return PhysicalResource(arn, {"Arn": arn, "Name": name})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        context.client("stepfunctions").update_state_machine(
            stateMachineArn=physical.id,
            definition=properties["DefinitionString"],
            roleArn=properties["RoleArn"],
            **_logging(properties),
        )
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("stepfunctions").delete_state_machine(stateMachineArn=physical.id)


def _logging(properties: Properties) -> dict[str, Any]:
    """Where a state machine would log; only a fault reads it (`full-log-policy`)."""
    groups = [
        {"cloudWatchLogsLogGroup": {"logGroupArn": each["CloudWatchLogsLogGroup"]["LogGroupArn"]}}
        for each in properties.get("LoggingConfiguration", {}).get("Destinations", [])
    ]
    return {"loggingConfiguration": {"level": "ALL", "destinations": groups}} if groups else {}


def _code(properties: Properties) -> dict[str, Any]:
    """Inline code becomes a ZIP with one file (Code property, `ZipFile`)."""
    code = properties["Code"]
    if "ZipFile" in code:
        file = "index.py" if str(properties.get("Runtime", "")).startswith("python") else "index.js"
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(zipfile.ZipInfo(file), code["ZipFile"])
        return {"ZipFile": buffer.getvalue()}
    if "S3Bucket" in code:
        return picked(code, "S3Bucket", "S3Key", "S3ObjectVersion")
    raise TemplateError(
        f"AWS::Lambda::Function is modelled with code in S3 or inline, not with {', '.join(sorted(code))}"
    )
