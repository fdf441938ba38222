"""Reads a CloudFormation template: JSON or YAML text in, one frozen `Template` out.

This module rejects everything that is not modelled, by name, before anything is created. Sections and attributes are
those of the CloudFormation user guide, "Template sections" and "Resource attribute reference".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import yaml

from cdk_triton.errors import TemplateError

__all__ = ["MAX_TEMPLATE_BYTES", "Policy", "Resource", "Template", "parse_template"]

MAX_TEMPLATE_BYTES = 1024 * 1024
"""Largest template in bytes (CloudFormation quotas, "Template body size in an Amazon S3 object": 1 MB)."""

MAX_RESOURCES = 500
"""Most resources in a template (CloudFormation quotas, "Resources")."""

Policy = Literal["Delete", "Retain", "RetainExceptOnCreate"]

_SECTIONS = {
    "AWSTemplateFormatVersion",
    "Conditions",
    "Description",
    "Mappings",
    "Metadata",
    "Outputs",
    "Parameters",
    "Resources",
    "Rules",
}
_RESOURCE_ATTRIBUTES = {
    "Condition",
    "DeletionPolicy",
    "DependsOn",
    "Metadata",
    "Properties",
    "Type",
    "UpdateReplacePolicy",
}
_POLICIES = {"Delete", "Retain", "RetainExceptOnCreate"}


@dataclass(frozen=True)
class Resource:
    """One entry of the `Resources` section, with its intrinsic functions unresolved.

    Attributes:
        depends_on: logical ids of the `DependsOn` attribute.
        deletion_policy: what happens to the resource when it leaves the stack.
        names_deletion_policy: whether the template names that policy, as each resource to import has to.
        update_replace_policy: what happens to the old physical resource of a replacement.
    """

    logical_id: str
    type: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    condition: str | None = None
    deletion_policy: Policy = "Delete"
    names_deletion_policy: bool = False
    update_replace_policy: Policy = "Delete"
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Template:
    """A template whose shape is sound; references are checked by `plan.make_plan`."""

    text: str
    description: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mappings: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    resources: Mapping[str, Resource] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def parse_template(text: str) -> Template:
    """Read `text` (JSON, or YAML with CloudFormation's short forms).

    Raises:
        TemplateError: the text is neither of them, is too large, or has a section or an attribute that is not modelled.
    """
    if (size := len(text.encode())) > MAX_TEMPLATE_BYTES:
        raise TemplateError(
            f"the template has {size:,} bytes, but CloudFormation accepts at most {MAX_TEMPLATE_BYTES:,}"
        )
    document = _load(text)
    if unknown := sorted(set(document) - _SECTIONS):
        raise TemplateError(
            f"the template's section {unknown[0]!r} is not modelled by the local CloudFormation, which models "
            f"{', '.join(sorted(_SECTIONS))}"
        )
    resources = _section(document, "Resources")
    if not resources:
        raise TemplateError("Template format error: At least one Resources member must be defined.")
    if len(resources) > MAX_RESOURCES:
        raise TemplateError(
            f"the template has {len(resources)} resources, but CloudFormation accepts at most {MAX_RESOURCES}"
        )
    return Template(
        text=text,
        description=str(document.get("Description", "")),
        metadata=_section(document, "Metadata"),
        parameters=_section(document, "Parameters"),
        mappings=_section(document, "Mappings"),
        conditions=_section(document, "Conditions"),
        rules=_section(document, "Rules"),
        resources={name: _resource(name, body) for name, body in resources.items()},
        outputs=_outputs(_section(document, "Outputs")),
    )


def _resource(name: str, body: Any) -> Resource:
    if not isinstance(body, dict) or not isinstance(body.get("Type"), str):
        raise TemplateError(f"Template format error: resource {name!r} must be an object with a string 'Type'")
    if unknown := sorted(set(body) - _RESOURCE_ATTRIBUTES):
        raise TemplateError(
            f"resource {name!r} has the attribute {unknown[0]!r}, which the local CloudFormation does not model; "
            f"it models {', '.join(sorted(_RESOURCE_ATTRIBUTES))}"
        )
    depends_on = body.get("DependsOn", [])
    return Resource(
        logical_id=name,
        type=body["Type"],
        properties=_object(body.get("Properties"), f"'Properties' of resource {name!r}"),
        depends_on=(depends_on,) if isinstance(depends_on, str) else tuple(depends_on),
        condition=body.get("Condition"),
        deletion_policy=_policy(body, "DeletionPolicy", name),
        names_deletion_policy="DeletionPolicy" in body,
        update_replace_policy=_policy(body, "UpdateReplacePolicy", name),
        metadata=_object(body.get("Metadata"), f"'Metadata' of resource {name!r}"),
    )


def _policy(body: Mapping[str, Any], attribute: str, name: str) -> Policy:
    value = body.get(attribute, "Delete")
    if value not in _POLICIES or (attribute == "UpdateReplacePolicy" and value == "RetainExceptOnCreate"):
        raise TemplateError(
            f"resource {name!r} has {attribute} {value!r}, which the local CloudFormation does not model; it "
            "models Delete and Retain, for DeletionPolicy also RetainExceptOnCreate (no modelled type has snapshots)"
        )
    return cast(Policy, value)


def _outputs(outputs: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    for name, body in outputs.items():
        if not isinstance(body, dict) or "Value" not in body:
            raise TemplateError(f"Template format error: output {name!r} must have a 'Value'")
        if unknown := sorted(set(body) - {"Condition", "Description", "Export", "Value"}):
            raise TemplateError(f"output {name!r} has the unknown attribute {unknown[0]!r}")
    return outputs


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _object(document.get(name), f"section {name!r}")


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TemplateError(f"Template format error: {what} must be an object and is {type(value).__name__}")
    return value


def _load(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, Loader=_Loader)  # noqa: S506  a safe loader
    except json.JSONDecodeError as error:
        raise TemplateError(
            f"Template format error: JSON not well-formed. (line {error.lineno}: {error.msg})"
        ) from error
    except yaml.YAMLError as error:
        raise TemplateError(f"Template format error: YAML not well-formed. ({error})") from error
    return _object(document, "the template")


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms (`!Ref`, `!GetAtt a.b`, …) and without dates: `2012-10-17` is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _short_form(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(cast(yaml.MappingNode, node), deep=True)
    if suffix in ("Ref", "Condition"):
        return {suffix: value}
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)
