"""CodeBuild projects."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

from typing import Any

from cdk_triton_local.cloudformation.resource_types._calls import missing_is_fine
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceType,
    register,
)

_DEFAULTS: dict[str, Any] = {
    "Description": "",
    "LogsConfig": {"CloudWatchLogs": {"Status": "ENABLED"}},
    "TimeoutInMinutes": 60,
}


@register
class Project(ResourceType):
    """AWS::CodeBuild::Project."""

    type_name = "AWS::CodeBuild::Project"
    note = (
        "The builds of the project really run, in bash on this machine. Source and artifacts are folders in S3. "
        "Phases, timeout and log are as in CodeBuild. The image is recorded, but not pulled; `trtexec` and "
        "`nvidia-smi` are stand-ins for the GPU of the compute type."
    )
    modelled = frozenset(
        {"Artifacts", "Description", "Environment", "LogsConfig", "Name", "Source", "Tags", "TimeoutInMinutes"}
    )
    recorded = frozenset({"Cache", "EncryptionKey", "QueuedTimeoutInMinutes", "ServiceRole", "VpcConfig"})
    attributes = frozenset({"Arn"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("Name") or context.generated_name(150)
        project = context.client("codebuild").create_project(**_project(context, properties, name))["project"]
        return PhysicalResource(name, {"Arn": project["arn"]})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        # UpdateProject keeps omitted members, but CloudFormation resets properties that a template no longer has.
        gone = {name: value for name, value in _DEFAULTS.items() if name in previous}
        properties = {**gone, **properties}
        context.client("codebuild").update_project(**_project(context, properties, physical.id))
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        with missing_is_fine():
            context.client("codebuild").delete_project(name=physical.id)


def _project(context: Context, properties: Properties, name: str) -> dict[str, Any]:
    """CodeBuild's API begins the names of members with a small letter."""
    request = {key: value for key, value in properties.items() if key != "Tags"}
    tags = [{"key": tag["Key"], "value": tag["Value"]} for tag in context.tag_list(properties)]
    named: dict[str, Any] = _renamed(request)
    return {**named, "name": name, "tags": tags}


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if isinstance(value, dict):
        return {_name(key): _renamed(item) for key, item in value.items()}
    return value


def _name(key: str) -> str:
    return "buildspec" if key == "BuildSpec" else key[:1].lower() + key[1:]
