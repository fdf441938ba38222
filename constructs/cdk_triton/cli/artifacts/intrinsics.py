"""Resolves a property that names no other resource: pseudo parameters, joined and looked up in mappings.

That is all that the templates of this library use in a `Custom::TritonArtifacts`: the names of the asset bucket and of
the build image. The local CloudFormation has every function; it comes with an extra that this command does not need.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cdk_triton.errors import ConfigurationError

__all__ = ["resolve"]

_VARIABLE = re.compile(r"\$\{(?P<literal>!)?(?P<name>[^}]*)\}")


def resolve(value: Any, pseudo: Mapping[str, str], mappings: Mapping[str, Any], where: str) -> Any:
    """The value with every intrinsic function computed.

    Args:
        value: the value of a property in a template.
        pseudo: the pseudo parameters.
        mappings: the template's `Mappings`.
        where: the name of the property, for the error.

    Raises:
        ConfigurationError: the value refers to something without a value before the deployment.
    """
    return _Resolver(pseudo, mappings, where).value(value)


class _Resolver:
    def __init__(self, pseudo: Mapping[str, str], mappings: Mapping[str, Any], where: str) -> None:
        self._pseudo = pseudo
        self._mappings = mappings
        self._where = where

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref" or name.startswith("Fn::"):
                return self._call(name, argument)
        return {name: self.value(each) for name, each in value.items()}

    def _call(self, name: str, argument: Any) -> Any:
        if name == "Ref":
            return self._parameter(argument)
        if name == "Fn::Sub":
            return self._sub(argument)
        if name == "Fn::Join":
            return str(argument[0]).join(map(str, self.value(argument[1])))
        if name == "Fn::Split":
            return str(self.value(argument[1])).split(str(argument[0]))
        if name == "Fn::Select":
            return self.value(argument[1])[int(argument[0])]
        if name == "Fn::FindInMap":
            return self._find_in_map(*map(self.value, argument[:3]))
        raise self._unknown(name)

    def _parameter(self, name: str) -> str:
        if name not in self._pseudo:
            raise self._unknown(name)
        return self._pseudo[name]

    def _sub(self, argument: Any) -> str:
        text, local = argument if isinstance(argument, list) else (argument, {})
        values = self.value(local)

        def replaced(match: re.Match[str]) -> str:
            if match["literal"]:
                return f"${{{match['name']}}}"
            name = match["name"].strip()
            return str(values[name]) if name in values else self._parameter(name)

        return _VARIABLE.sub(replaced, text)

    def _find_in_map(self, table: str, top: str, second: str) -> Any:
        try:
            return self._mappings[table][top][second]
        except KeyError:
            raise ConfigurationError(
                f"the property {self._where} looks up the mapping entry {table}/{top}/{second}, but the template does "
                "not have this entry, because the stack was not synthesised for this region; synthesise the stack for "
                "the region"
            ) from None

    def _unknown(self, name: str) -> ConfigurationError:
        return ConfigurationError(
            f"the property {self._where} uses {name}, which has no value before a deployment; deploy the stack instead"
        )
