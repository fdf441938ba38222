"""CloudFormation's intrinsic functions, pseudo parameters, conditions and rule functions.

A `Resolver` turns a value of a template into plain data. A value that is not known yet (an attribute of a resource that
does not exist) becomes `UNKNOWN`, and so does everything computed from it. A change set reads a template in this way
before anything is created. Functions and their arguments follow the user guide, "Intrinsic function reference" and
"Rules section syntax".
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cdk_triton.errors import TemplateError

__all__ = ["NO_VALUE", "UNKNOWN", "Environment", "Resolver", "contains_unknown", "references"]


class _Marker:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __deepcopy__(self, memo: object) -> _Marker:
        return self


UNKNOWN = _Marker("(known after apply)")
"""Stands for a value that is known only at deployment."""

NO_VALUE = _Marker("AWS::NoValue")
"""The value of `Ref: AWS::NoValue`: a property with this value is omitted."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_DYNAMIC_REFERENCE = re.compile(r"\{\{resolve:[^}]*\}\}")


@dataclass(frozen=True)
class Environment:
    """The place of a stack; the source of the pseudo parameters."""

    region: str
    account: str
    stack_name: str
    stack_id: str
    partition: str = "aws"

    @property
    def url_suffix(self) -> str:
        """The domain of AWS's services in this partition."""
        return "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"

    def pseudo_parameters(self) -> dict[str, Any]:
        """The pseudo parameters (user guide, "Get AWS values using pseudo parameters")."""
        return {
            "AWS::AccountId": self.account,
            "AWS::NoValue": NO_VALUE,
            "AWS::NotificationARNs": [],
            "AWS::Partition": self.partition,
            "AWS::Region": self.region,
            "AWS::StackId": self.stack_id,
            "AWS::StackName": self.stack_name,
            "AWS::URLSuffix": self.url_suffix,
        }


def _nothing_exists(logical_id: str) -> Any:
    return UNKNOWN


def _no_attributes(logical_id: str, attribute: str) -> Any:
    return UNKNOWN


@dataclass
class Resolver:
    """Resolves values of one template.

    Attributes:
        parameters: the parameters' values, lists already split.
        reference: logical id to what `Ref` gives, or `UNKNOWN`.
        attribute: logical id and attribute name to what `Fn::GetAtt` gives, or `UNKNOWN`.
        exports: every export of this account and region.
        outputs: the outputs of every other stack of this account and region, by its name.
    """

    environment: Environment
    parameters: Mapping[str, Any] = field(default_factory=dict)
    mappings: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    reference: Callable[[str], Any] = _nothing_exists
    attribute: Callable[[str, str], Any] = _no_attributes
    exports: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pseudo = self.environment.pseudo_parameters()

    def resolve(self, value: Any) -> Any:
        """The value with every intrinsic function computed, without the members that are `AWS::NoValue`.

        Raises:
            TemplateError: an unknown function, a wrong argument, or a name that does not exist.
        """
        if isinstance(value, dict):
            if len(value) == 1:
                (name, argument), *_ = value.items()
                if name == "Ref":
                    return self._ref(argument)
                if name.startswith("Fn::"):
                    return self._call(name, argument)
            members = {name: self.resolve(member) for name, member in value.items()}
            return {name: member for name, member in members.items() if member is not NO_VALUE}
        if isinstance(value, list):
            return [item for item in map(self.resolve, value) if item is not NO_VALUE]
        if isinstance(value, str) and (dynamic := _DYNAMIC_REFERENCE.search(value)):
            raise TemplateError(f"the dynamic reference {dynamic[0]!r} is not modelled by the local CloudFormation")
        return value

    def condition(self, name: str) -> bool:
        """The value of the condition `name`.

        Raises:
            TemplateError: there is no such condition.
        """
        if name not in self.conditions:
            raise TemplateError(f"Template error: condition {name!r} is used, but 'Conditions' does not define it")
        return self.predicate(self.conditions[name])

    def predicate(self, expression: Any) -> bool:
        """The truth of a condition expression or of a rule's assertion."""
        if isinstance(expression, bool):
            return expression
        if not isinstance(expression, dict) or len(expression) != 1:
            raise TemplateError(f"Template error: {expression!r} is not a condition expression")
        (name, argument), *_ = expression.items()
        if name not in _PREDICATES:
            raise TemplateError(
                f"Template error: {name!r} cannot be used in a condition; known are {_known(_PREDICATES)}"
            )
        return _PREDICATES[name](self, argument)

    def _ref(self, name: Any) -> Any:
        if name in self._pseudo:
            return self._pseudo[name]
        if name in self.parameters:
            return self.parameters[name]
        return self.reference(str(name))

    def _call(self, name: str, argument: Any) -> Any:
        if name not in _FUNCTIONS:
            raise TemplateError(
                f"the intrinsic function {name!r} is not modelled by the local CloudFormation, which models "
                f"{_known(_FUNCTIONS)}"
            )
        try:
            return _FUNCTIONS[name](self, argument)
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise TemplateError(f"Template error: {name} cannot use {argument!r}: {error}") from error


def contains_unknown(value: Any) -> bool:
    """Whether `UNKNOWN` is `value` or somewhere in it."""
    if isinstance(value, dict):
        return any(map(contains_unknown, value.values()))
    if isinstance(value, list):
        return any(map(contains_unknown, value))
    return value is UNKNOWN


def references(value: Any) -> Iterator[tuple[str, str | None]]:
    """Every name that `value` refers to, in `Fn::Sub` too: with None for `Ref`, with the attribute for `Fn::GetAtt`."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        if set(value) == {"Ref"}:
            yield str(value["Ref"]), None
        elif set(value) == {"Fn::GetAtt"}:
            yield _get_att_names(value["Fn::GetAtt"])
        elif set(value) == {"Fn::Sub"}:
            yield from _sub_references(value["Fn::Sub"])
        else:
            for member in value.values():
                yield from references(member)


def _sub_references(argument: Any) -> Iterator[tuple[str, str | None]]:
    text, local = argument if isinstance(argument, list) else (argument, {})
    for match in _VARIABLE.finditer(str(text)):
        variable = match[1].strip()
        if not variable.startswith("!") and variable not in local:
            name, _, attribute = variable.partition(".")
            yield name, attribute or None
    yield from references(local)


def _get_att_names(argument: Any) -> tuple[str, str]:
    if isinstance(argument, str):
        argument = argument.split(".", 1)
    if not isinstance(argument, list) or len(argument) != 2 or not isinstance(argument[0], str):
        raise TemplateError(f"Template error: Fn::GetAtt needs a logical id and an attribute, not {argument!r}")
    return argument[0], str(argument[1])


def _scalar_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        raise ValueError(f"{value!r} is not a string")
    return str(value)


def _get_att(resolver: Resolver, argument: Any) -> Any:
    if isinstance(argument, list) and len(argument) == 2 and isinstance(argument[1], dict):
        argument = [argument[0], resolver.resolve(argument[1])]
    return resolver.attribute(*_get_att_names(argument))


def _join(resolver: Resolver, argument: Any) -> Any:
    separator, items = argument
    items = resolver.resolve(items)
    if contains_unknown(items):
        return UNKNOWN
    if not isinstance(items, list):
        raise ValueError(f"{items!r} is not a list")
    return str(separator).join(map(_scalar_text, items))


def _sub(resolver: Resolver, argument: Any) -> Any:
    text, local = argument if isinstance(argument, list) else (argument, {})
    values = resolver.resolve(local)
    unknown = False

    def replace(match: re.Match[str]) -> str:
        nonlocal unknown
        variable = match[1].strip()
        if variable.startswith("!"):
            return "${" + variable[1:] + "}"
        if variable in values:
            value = values[variable]
        elif "." in variable:
            value = resolver.attribute(*_get_att_names(variable))
        else:
            value = resolver.resolve({"Ref": variable})
        unknown = unknown or contains_unknown(value)
        return "" if value is UNKNOWN else _scalar_text(value)

    resolved = _VARIABLE.sub(replace, str(text))
    return UNKNOWN if unknown else resolved


def _select(resolver: Resolver, argument: Any) -> Any:
    index, items = resolver.resolve(argument[0]), resolver.resolve(argument[1])
    if items is UNKNOWN or index is UNKNOWN:
        return UNKNOWN
    if not 0 <= int(index) < len(items):
        raise IndexError(f"item {index} does not exist in a list of {len(items)}")
    return items[int(index)]


def _split(resolver: Resolver, argument: Any) -> Any:
    text = resolver.resolve(argument[1])
    return UNKNOWN if text is UNKNOWN else _scalar_text(text).split(str(argument[0]))


def _if(resolver: Resolver, argument: Any) -> Any:
    name, then, otherwise = argument
    return resolver.resolve(then if resolver.condition(name) else otherwise)


def _find_in_map(resolver: Resolver, argument: Any) -> Any:
    options = argument[3] if len(argument) == 4 else {}
    keys = resolver.resolve(argument[:3])
    if contains_unknown(keys):
        return UNKNOWN
    try:
        return resolver.mappings[keys[0]][keys[1]][keys[2]]
    except KeyError:
        if "DefaultValue" in options:
            return resolver.resolve(options["DefaultValue"])
        raise TemplateError(f"Template error: Unable to get mapping for {'::'.join(map(str, keys))}") from None


def _import_value(resolver: Resolver, argument: Any) -> Any:
    name = resolver.resolve(argument)
    if name is UNKNOWN:
        return UNKNOWN
    if name not in resolver.exports:
        raise TemplateError(f"No export named {name} found.")
    return resolver.exports[name]


def _get_stack_output(resolver: Resolver, argument: Any) -> Any:
    """The current output of another stack (template reference, `Fn::GetStackOutput`)."""
    if unknown := sorted(set(argument) - {"StackName", "OutputName", "Region", "RoleArn"}):
        raise ValueError(f"it has no parameter {unknown[0]!r}")
    where = resolver.resolve(dict(argument))
    if contains_unknown(where):
        return UNKNOWN
    if "RoleArn" in where:
        raise TemplateError("Fn::GetStackOutput with a RoleArn is not modelled by the local CloudFormation")
    stack, output = where["StackName"], where["OutputName"]
    region = where.get("Region", resolver.environment.region)
    if region != resolver.environment.region:
        raise TemplateError(
            f"Fn::GetStackOutput names the region {region}, but this local AWS has {resolver.environment.region} only"
        )
    if stack not in resolver.outputs:
        raise TemplateError(f"Stack with id {stack} does not exist")
    if output not in resolver.outputs[stack]:
        raise TemplateError(f"Output {output} does not exist in stack {stack}")
    return resolver.outputs[stack][output]


def _base64(resolver: Resolver, argument: Any) -> Any:
    text = resolver.resolve(argument)
    return UNKNOWN if text is UNKNOWN else base64.b64encode(_scalar_text(text).encode()).decode()


def _get_azs(resolver: Resolver, argument: Any) -> Any:
    region = resolver.resolve(argument) or resolver.environment.region
    return [f"{region}{zone}" for zone in "abc"]


def _to_json_string(resolver: Resolver, argument: Any) -> Any:
    value = resolver.resolve(argument)
    return UNKNOWN if contains_unknown(value) else json.dumps(value, separators=(",", ":"))


def _length(resolver: Resolver, argument: Any) -> Any:
    items = resolver.resolve(argument)
    return UNKNOWN if items is UNKNOWN else len(items)


_FUNCTIONS: dict[str, Callable[[Resolver, Any], Any]] = {
    "Fn::Base64": _base64,
    "Fn::FindInMap": _find_in_map,
    "Fn::GetAZs": _get_azs,
    "Fn::GetAtt": _get_att,
    "Fn::GetStackOutput": _get_stack_output,
    "Fn::If": _if,
    "Fn::ImportValue": _import_value,
    "Fn::Join": _join,
    "Fn::Length": _length,
    "Fn::Select": _select,
    "Fn::Split": _split,
    "Fn::Sub": _sub,
    "Fn::ToJsonString": _to_json_string,
}


def _equals(resolver: Resolver, argument: Any) -> bool:
    left, right = resolver.resolve(argument)
    return bool(left == right or (not isinstance(left, (dict, list)) and _scalar_text(left) == _scalar_text(right)))


def _not(resolver: Resolver, argument: Any) -> bool:
    (expression,) = argument
    return not resolver.predicate(expression)


def _contains(resolver: Resolver, argument: Any) -> bool:
    items, item = resolver.resolve(argument)
    return _scalar_text(item) in map(_scalar_text, items)


def _each_member_equals(resolver: Resolver, argument: Any) -> bool:
    items, item = resolver.resolve(argument)
    return all(_scalar_text(each) == _scalar_text(item) for each in items)


def _each_member_in(resolver: Resolver, argument: Any) -> bool:
    items, allowed = resolver.resolve(argument)
    return set(map(_scalar_text, items)) <= set(map(_scalar_text, allowed))


_PREDICATES: dict[str, Callable[[Resolver, Any], bool]] = {
    "Condition": lambda resolver, name: resolver.condition(name),
    "Fn::And": lambda resolver, items: all(map(resolver.predicate, items)),
    "Fn::Contains": _contains,
    "Fn::EachMemberEquals": _each_member_equals,
    "Fn::EachMemberIn": _each_member_in,
    "Fn::Equals": _equals,
    "Fn::Not": _not,
    "Fn::Or": lambda resolver, items: any(map(resolver.predicate, items)),
}


def _known(table: Mapping[str, Any]) -> str:
    return ", ".join(sorted(table))
