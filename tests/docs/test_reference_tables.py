"""The pages of environment variables and of keys contain what the code reads and takes."""

from __future__ import annotations

import ast
import inspect
import re

import pytest
from tests.docs.blocks import ROOT

import cdk_triton

SOURCES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "lambda").rglob("*.py"))]


def section(page: str, heading: str) -> str:
    """The text below a heading of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def variables_of(source: str) -> list[str]:
    """The variables that a module reads as `os.environ["NAME"]` or `os.environ.get("NAME")`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name)))
                | ast.Call(
                    func=ast.Attribute(value=ast.Attribute(attr="environ")), args=[ast.Constant(value=str(name)), *_]
                )
            ):
                found.append(name)
    return found


def key_parameters() -> list[str]:
    """The public parameters for a key of encryption, such as `TritonEndpoint(encryption_key=)`."""
    classes = {name: public for name in cdk_triton.__all__ if inspect.isclass(public := getattr(cdk_triton, name))}
    return [
        f"{name}(encryption_key=)"
        for name, public in classes.items()
        if "encryption_key" in inspect.signature(public.__init__).parameters
    ]


def test_every_variable_that_a_function_reads_is_on_its_page() -> None:
    read = {name for source in SOURCES for name in variables_of(source)}
    assert read - set(re.findall(r"`([A-Z_]+)`", section("environment.md", "In the functions"))) == set()


def test_no_function_reads_a_variable_in_another_way() -> None:
    """Otherwise the test above would not see the variable."""
    for source in SOURCES:
        assert len(variables_of(source)) == len(re.findall(r"\b(?:environ|getenv)\b", source))


@pytest.mark.parametrize("parameter", key_parameters())
def test_every_parameter_for_a_key_is_on_its_page(parameter: str) -> None:
    assert f"`{parameter}`" in section("keys.md", "Which key where")
