"""Writes the CDK app that somebody would write by hand, with L1 constructs alone, for a template that is given.

Resources come in the order of their references, and refer to each other by their attributes, as in an app, not by
logical ids, as in a template. The program is text, so that finding out which classes and structs it takes costs the app
that is measured nothing.
"""

from __future__ import annotations

import importlib
import json
import re
import typing
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

__all__ = ["l1_program"]

_HEAD = """
import sys
import aws_cdk as cdk
{imports}

app = cdk.App(outdir=sys.argv[1], builtin_cloud_formation_validation=False)
stack = cdk.Stack(app, "Stack", env=cdk.Environment(account="123456789012", region="us-east-1"))
partition = cdk.Aws.PARTITION
"""


def l1_program(assembly: Path) -> str:
    """The app whose stack has the template of the stack `Stack` of an assembly, and assets of the same contents."""
    template = json.loads((assembly / "Stack.template.json").read_text())
    manifest = json.loads((assembly / "Stack.assets.json").read_text())
    modules = {"aws_s3_assets"}
    paths = (assembly / file["source"]["path"] for file in manifest["files"].values())
    body = [
        f"aws_s3_assets.Asset(stack, {path.name!r}, path={str(path)!r})"
        for path in paths
        if path.name != "Stack.template.json"
    ]
    resources = template["Resources"]
    for name in TopologicalSorter(
        {name: _referred(each) & set(resources) for name, each in resources.items()}
    ).static_order():
        body.append(f"{name} = {_resource(name, resources[name], modules)}")
        rest = {key: value for key, value in resources[name].items() if key not in ("Type", "Properties")}
        body += [f"{name}.add_override({key!r}, {value!r})" for key, value in rest.items()]
    imports = "\n".join(f"from aws_cdk import {module}" for module in sorted(modules))
    return "\n".join([_HEAD.format(imports=imports), *body, "app.synth()", ""])


def _resource(name: str, resource: dict[str, Any], modules: set[str]) -> str:
    vendor, service, *kind = resource["Type"].split("::")
    properties = resource.get("Properties", {})
    if vendor != "AWS":
        return f"cdk.CfnResource(stack, {name!r}, type={resource['Type']!r}, properties={_plain(properties)})"
    module = f"aws_{service.lower()}"
    modules.add(module)
    construct = getattr(importlib.import_module(f"aws_cdk.{module}"), f"Cfn{kind[0]}")
    return f"{module}.Cfn{kind[0]}(stack, {name!r}, {_arguments(module, construct, properties)})"


def _arguments(module: str, construct: type, properties: dict[str, Any]) -> str:
    """Properties as keywords: jsii writes them in snake case, with underscores where it finds words."""
    hints = typing.get_type_hints(vars(construct)["__init__"])
    keywords = {keyword.replace("_", ""): keyword for keyword in hints}
    arguments = []
    for key, value in properties.items():
        keyword = keywords[key.lower()]
        arguments.append(f"{keyword}={_value(module, hints[keyword], value)}")
    return ", ".join(arguments)


def _value(module: str, hint: Any, value: Any) -> str:
    alternatives = _alternatives(hint)
    if _is_intrinsic(value) or alternatives == [Any]:
        return _plain(value)
    if isinstance(value, dict):
        struct = next((each for each in alternatives if getattr(each, "__name__", "").endswith("Property")), None)
        if struct is not None:
            return f"{module}.{struct.__qualname__}({_arguments(module, struct, value)})"
        values = next((typing.get_args(each)[1] for each in alternatives if len(typing.get_args(each)) == 2), Any)
        return f"{{{', '.join(f'{key!r}: {_value(module, values, each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        items = next((typing.get_args(each)[0] for each in alternatives if typing.get_args(each)), Any)
        return f"[{', '.join(_value(module, items, each) for each in value)}]"
    return repr(value)


def _plain(value: Any) -> str:
    """The Python of a token, or of a value without a type of jsii; resources refer to each other by attributes."""
    match value:
        case {"Ref": "AWS::Partition"}:
            return "partition"
        case {"Ref": str(name)} if name.startswith("AWS::"):
            return f"cdk.Fn.ref({name!r})"
        case {"Ref": str(name)}:
            return f"{name}.ref"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"{name}.attr_{_snake(attribute)}"
        case {"Fn::Join": ["", [*parts]]}:
            return f"''.join([{', '.join(_plain(part) for part in parts)}])"
        case dict():
            return f"{{{', '.join(f'{key!r}: {_plain(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(_plain(each) for each in value)}]"
    return repr(value)


def _referred(value: Any) -> set[str]:
    """The names that something refers to."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
            return {name}
        case dict():
            return set().union(*map(_referred, value.values()))
        case list():
            return set().union(*map(_referred, value))
    return set()


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _is_intrinsic(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


def _alternatives(hint: Any) -> list[Any]:
    """The types of a union, also where it is in another one."""
    if typing.get_origin(hint) is typing.Union:
        return [each for part in typing.get_args(hint) for each in _alternatives(part)]
    return [hint]
