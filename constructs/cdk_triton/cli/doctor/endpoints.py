"""The endpoints of a template, with what belongs to them in other resources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Endpoint", "Template", "endpoints", "flat", "of_type", "referred"]

Template = Mapping[str, Any]


class Endpoint(NamedTuple):
    """An endpoint of a template.

    Attributes:
        name: the endpoint's name: None, a string or an intrinsic function.
        variants: the production variants, by name.
        shadows: the shadow variants, by name.
        most: how many instances a variant may have, by the name of each variant that is scaled.
        policy: how the endpoint is updated (`DeploymentConfig`).
        keeps_counts: whether an update keeps the numbers of instances.
        is_asynchronous: whether it takes asynchronous requests only.
    """

    name: Any
    variants: Mapping[str, Mapping[str, Any]]
    shadows: Mapping[str, Mapping[str, Any]]
    most: Mapping[str, Any]
    policy: Mapping[str, Any]
    keeps_counts: bool
    is_asynchronous: bool

    @property
    def text(self) -> str:
        """The quoted name in parentheses, if the template has it as a text."""
        return f" ({self.name!r})" if isinstance(self.name, str) else ""


def endpoints(template: Template) -> dict[str, Endpoint]:
    """The endpoints by logical id."""
    configurations = of_type(template, "AWS::SageMaker::EndpointConfig")
    targets = of_type(template, "AWS::ApplicationAutoScaling::ScalableTarget").values()
    capacities = {flat(each.get("ResourceId")): each.get("MaxCapacity") for each in targets}
    found = {}
    for id, properties in of_type(template, "AWS::SageMaker::Endpoint").items():
        configuration = configurations.get(referred(properties.get("EndpointConfigName")) or "", {})
        name = properties.get("EndpointName")
        owners = "|".join(re.escape(each) for each in (f"<{id}>", name) if isinstance(each, str))
        scaled = [(re.fullmatch(rf"endpoint/(?:{owners})/variant/(.+)", id), most) for id, most in capacities.items()]
        found[id] = Endpoint(
            name=name,
            variants=_by_name(configuration.get("ProductionVariants", ())),
            shadows=_by_name(configuration.get("ShadowProductionVariants", ())),
            most={match[1]: most for match, most in scaled if match},
            policy=properties.get("DeploymentConfig", {}),
            keeps_counts=properties.get("RetainAllVariantProperties") is True,
            is_asynchronous="AsyncInferenceConfig" in configuration,
        )
    return found


def _by_name(variants: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {str(each.get("VariantName")): each for each in variants}


def of_type(template: Template, kind: str) -> dict[str, Mapping[str, Any]]:
    """The properties of the resources of a type, by logical id."""
    resources = template.get("Resources", {}).items()
    return {id: each.get("Properties", {}) for id, each in resources if each.get("Type") == kind}


def referred(value: Any) -> str | None:
    """The logical id that a `Ref` or `Fn::GetAtt` names."""
    if isinstance(value, Mapping) and len(value) == 1:
        ((function, argument),) = value.items()
        if function == "Ref":
            return str(argument)
        if function == "Fn::GetAtt":
            return str(argument[0] if isinstance(argument, list) else argument.partition(".")[0])
    return None


def flat(value: Any) -> str:
    """A text with `<logical id>` for each reference."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(map(flat, parts)) if isinstance(parts, list) else ""
    return f"<{referred(value)}>"
