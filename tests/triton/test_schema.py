"""The types that the library declares for Triton's messages, against the messages themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from cdk_triton.triton import ModelConfig
from cdk_triton.triton.releases import releases
from cdk_triton.triton.schema import SCHEMA_RELEASE


def declared(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Every attribute of the classes in the stub."""
    for node in body:
        match node:
            case ast.ClassDef():
                yield from declared(node.body, f"{prefix}{node.name}.")
            case ast.FunctionDef():
                yield f"{prefix}{node.name}"
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield f"{prefix}{name}"


def attributes(message: Any, prefix: str = "") -> Iterator[str]:
    """Every field and enum value of a message, at any depth."""
    path = f"{prefix}{message.name}."
    yield from (f"{path}{field.name}" for field in message.fields)
    yield from (f"{path}{value.name}" for enum in message.enum_types for value in enum.values)
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry:
            yield from attributes(nested, path)


def test_the_stub_declares_every_field() -> None:
    stub = ast.parse(files("cdk_triton.triton").joinpath("schema.pyi").read_text(encoding="utf-8"))
    messages = ModelConfig.DESCRIPTOR.file.message_types_by_name.values()
    expected = {name for message in messages for name in attributes(message)}
    keywords = {"ModelRateLimiter.Resource.global"}  # cannot be declared
    assert (
        set(declared(stub.body)) - {"SCHEMA_RELEASE", "DataType", "enum_name", "is_newer_than_schema"}
        == expected - keywords
    )


def test_the_schema_is_that_of_the_installed_client_or_older() -> None:
    """Release 26.08 is Triton 2.72; every month adds one."""
    known = {row.triton.rsplit(".", 1)[0]: row.release for row in releases() if row.triton is not None}
    assert known["2.72"] == "26.08"
    major, minor = version("tritonclient").split(".")[:2]
    assert (int(major), int(minor)) >= (2, 73)
    assert SCHEMA_RELEASE == "26.09"
