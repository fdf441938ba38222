"""CloudFormation's schema of a resource type: properties, attributes, and changes that need a replacement.

The source is the CloudFormation registry's own schemas, which `cfn-lint` ships and `moto[server]` installs; so the
facts about replacement (`createOnlyProperties`) and attributes (`readOnlyProperties`) are AWS's, not ours. See
"Resource type schema" in the CloudFormation CLI user guide.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.intrinsics import UNKNOWN

__all__ = ["ResourceSchema", "resource_schema"]

_REGION = "us-east-1"


@functools.cache
def resource_schema(type_name: str) -> ResourceSchema:
    """The registry's schema of `type_name`.

    Raises:
        TemplateError: CloudFormation has no such type.
    """
    # Imported here: it takes half a second, and only a deployment needs it.
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError

    try:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(_REGION, type_name).schema
        attributes = frozenset(PROVIDER_SCHEMA_MANAGER.get_type_getatts(type_name, _REGION))
    except ResourceNotFoundError:
        raise TemplateError(f"CloudFormation has no resource type {type_name!r}") from None
    return ResourceSchema(type_name, schema, attributes)


class ResourceSchema:
    """The registry's schema of one resource type.

    Attributes:
        attributes: names that `Fn::GetAtt` accepts.
        create_only: top-level properties whose change needs a replacement.
        primary_identifier: the properties that identify a resource of this type, such as a name or an ARN.
        properties: the names of all properties that a template can set.
    """

    def __init__(self, type_name: str, schema: Mapping[str, Any], attributes: frozenset[str]) -> None:
        self.type_name = type_name
        self._schema = schema
        self.attributes = attributes
        self.create_only = _top_level(schema.get("createOnlyProperties", []))
        self.primary_identifier = tuple(pointer.split("/")[-1] for pointer in schema.get("primaryIdentifier", []))
        read_only = _top_level(pointer for pointer in schema.get("readOnlyProperties", []) if pointer.count("/") == 2)
        self.properties = frozenset(schema.get("properties", {})) - read_only

    def coerce(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The properties with the types that the schema requires.

        As CloudFormation does, this converts `"60"` to 60 and `"true"` to true, and the other way round. `UNKNOWN` is
        accepted.

        Raises:
            TemplateError: an unknown, missing or mistyped property, with its path.
        """
        if unknown := sorted(set(properties) - self.properties):
            raise TemplateError(f"{self.type_name} has no property {unknown[0]!r}")
        coerced = self._coerce(dict(properties), self._schema, "")
        assert isinstance(coerced, dict)  # an object schema gives an object
        return coerced

    def _coerce(self, value: Any, schema: Mapping[str, Any], path: str) -> Any:
        if value is UNKNOWN:
            return value
        schema = self._dereferenced(schema)
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if not kinds and ("properties" in schema or "patternProperties" in schema):
            kinds = ["object"]
        if not kinds:
            return value
        if isinstance(value, dict):
            return self._object(value, schema, kinds, path)
        if isinstance(value, list):
            return self._array(value, schema, kinds, path)
        scalar = self._scalar(value, kinds, path)
        allowed = schema.get("enum")
        if allowed and scalar not in allowed:
            raise self._fault(path, f"must be one of {', '.join(map(str, allowed))}, not {value!r}")
        return scalar

    def _dereferenced(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while reference := schema.get("$ref"):
            target: Any = self._schema
            for key in str(reference).removeprefix("#/").split("/"):
                target = target[key]
            schema = target
        return schema

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], kinds: list[str], path: str) -> Any:
        if "object" not in kinds:
            raise self._fault(path, f"must be {_of(kinds)}, not an object")
        known = schema.get("properties", {})
        if missing := [name for name in schema.get("required", []) if name not in value]:
            raise self._fault(path, f"lacks the required property {missing[0]!r}")
        closed = schema.get("additionalProperties") is False and not schema.get("patternProperties")
        if closed and (unknown := sorted(set(value) - set(known))):
            raise self._fault(path, f"has no property {unknown[0]!r}")
        return {name: self._coerce(item, known.get(name, {}), f"{path}.{name}") for name, item in value.items()}

    def _array(self, value: list[Any], schema: Mapping[str, Any], kinds: list[str], path: str) -> Any:
        if "array" not in kinds:
            raise self._fault(path, f"must be {_of(kinds)}, not a list")
        items = schema.get("items", {})
        return [self._coerce(item, items, f"{path}[{index}]") for index, item in enumerate(value)]

    def _scalar(self, value: Any, kinds: list[str], path: str) -> Any:
        for kind in kinds:
            try:
                return _CONVERTERS[kind](value)
            except (ValueError, KeyError):
                continue
        raise self._fault(path, f"must be {_of(kinds)}, not {value!r}")

    def _fault(self, path: str, what: str) -> TemplateError:
        return TemplateError(f"{self.type_name}{path} {what}")


def _of(kinds: list[str]) -> str:
    return f"{'an' if kinds[0][0] in 'aeiou' else 'a'} {' or '.join(kinds)}"


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError(value)
    number = float(value)
    if number != int(number):
        raise ValueError(value)
    return int(number)


def _number(value: Any) -> float | int:
    if isinstance(value, bool):
        raise ValueError(value)
    number = float(value)
    return int(number) if number == int(number) else number


def _boolean(value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ValueError(value)
    return text == "true"


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_CONVERTERS = {"integer": _integer, "number": _number, "boolean": _boolean, "string": _string}


def _top_level(pointers: Any) -> frozenset[str]:
    return frozenset(pointer.split("/")[2] for pointer in pointers)
