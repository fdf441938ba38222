"""The examples in docstrings hold: Python runs, the tree of errors is that of the classes, and commands are right."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Answer, Endpoint, endpoint
from tests.docs.blocks import ROOT
from typer.main import get_command

from cdk_triton import errors
from cdk_triton.cli.program import app

__all__ = ["endpoint"]  # a fixture

BLOCK = re.compile(
    r"::\n\n((?: {4}.*\n|\n)+|\S[\s\S]*)|^```\w*\n([\s\S]*?)^```$|^((?:(?:>>>|\.\.\.).*\n)+)", re.MULTILINE
)
DRAWINGS = {
    "cdk_triton.artifacts.layout": "object keys, which hosting/store/test_store_layout.py compares",
    "cdk_triton.artifacts.recipes.documents": "a document with remarks",
    "cdk_triton.artifacts.recipes.tensorrt": "a document with remarks",
    "cdk_triton.hosting.publishing.definition": "the order of states",
    "cdk_triton.local": "a tree of processes",
}
"""The docstrings of modules with a block that is not code, and what it is."""
OUTPUT = {"name": "finaloutput", "shape": [1], "datatype": "FP32", "data": [0.25]}
ANSWER = json.dumps({"model_name": "model", "model_version": "1", "outputs": [OUTPUT]}).encode()


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the name of each module, class and function of the library that has a docstring, and its docstring."""
    for path in sorted((ROOT / "constructs" / "cdk_triton").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "constructs").with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = module if isinstance(node, ast.Module) else f"{module}.{node.name}"
                if text := ast.get_docstring(node):
                    yield name, f"{text}\n"


BLOCKS = {
    name: textwrap.dedent("".join(match.groups("")))
    for name, docstring in docstrings()
    for match in BLOCK.finditer(docstring)
}


def commands(words: str, command: Any) -> dict[str, Any]:
    """Return every command that does something, by the words that call it."""
    if not hasattr(command, "commands"):
        return {words: command}
    found = [commands(f"{words} {name}".strip(), child) for name, child in command.commands.items()]
    return {words: leaf for leaves in found for words, leaf in leaves.items()}


COMMANDS = commands("", get_command(app))


def test_each_block_is_tested_or_a_drawing() -> None:
    tested = {"cdk_triton.client", "cdk_triton.errors", "cdk_triton.local.aws.LocalAws"}
    assert set(BLOCKS) == tested | set(DRAWINGS), "add a test of the new block to this file"


def test_the_example_of_the_client_runs(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": f"http://127.0.0.1:{endpoint.port}",
    }.items():
        monkeypatch.setenv(name, value)
    endpoint.answer = lambda: Answer(ANSWER, "application/json")
    names: dict[str, Any] = {"text_model": "text-0123456789.tar.gz"}
    exec(f"from cdk_triton.client import TritonClient\n{BLOCKS['cdk_triton.client']}", names)
    assert names["answer"]["finaloutput"].tolist() == [0.25]
    ((path, headers, _),) = endpoint.requests
    assert "/my-endpoint/" in path
    assert headers["x-amzn-sagemaker-target-model"] == names["text_model"]


def test_the_example_of_the_local_aws_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cdk = tmp_path / "cdk"
    cdk.write_text('#!/bin/sh\necho "$@" "$AWS_ENDPOINT_URL"\n')
    cdk.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    imports = "import subprocess\nfrom pathlib import Path\nfrom cdk_triton.local.aws import LocalAws\n"
    exec(imports + BLOCKS["cdk_triton.local.aws.LocalAws"], {})
    assert re.fullmatch(r"deploy http://127\.0\.0\.1:\d+\n", capfd.readouterr().out)


def test_the_tree_of_errors_is_that_of_the_classes() -> None:
    path: list[str] = []
    drawn = {}
    for line in BLOCKS["cdk_triton.errors"].strip().splitlines():
        (name,) = re.findall(r"^[│├└─ ]*(\w+)", line)
        depth = line.index(name) // 4
        path[depth:] = [name]
        drawn[name] = path[depth - 1] if depth else "Exception"
    assert drawn == {name: getattr(errors, name).__bases__[0].__name__ for name in errors.__all__}


@pytest.mark.parametrize("words", COMMANDS)
def test_the_example_of_a_command_has_its_arguments(words: str) -> None:
    """`eval "$(…)"` around a command, and the file that its output goes to, are the shell's."""
    command = COMMANDS[words]
    (example,) = re.findall(r"Example: (.*)", f"{command.help}\n{command.epilog or ''}")
    called = re.sub(r'^eval "\$\((.*)\)"$', r"\1", example).partition(" > ")[0]
    assert f"{called} ".startswith(f"cdk-triton {words} ")
    command.make_context(words, shlex.split(called.removeprefix(f"cdk-triton {words}"))).close()
