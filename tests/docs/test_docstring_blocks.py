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
    r"::\n\n((?: +.*\n|\n)+|\S[\s\S]*?(?=::\n\n|\Z))|^ *```\w*\n([\s\S]*?)^ *```$|^((?: *(?:>>>|\.\.\.).*\n)+)",
    re.MULTILINE,
)
DRAWINGS = {
    "cdk_triton.protocol.layout": "object keys, which hosting/store/test_store_layout.py compares",
    "cdk_triton.artifacts.recipes.documents": "a document with remarks",
    "cdk_triton.artifacts.recipes.tensorrt": "a document with remarks",
    "cdk_triton.hosting.models.publishing.definition": "the order of states",
    "cdk_triton_local": "a tree of processes",
}
"""The docstrings of modules with a block that is not code, and what it is."""
OUTPUT = {"name": "finaloutput", "shape": [1], "datatype": "FP32", "data": [0.25]}
ANSWER = json.dumps({"model_name": "model", "model_version": "1", "outputs": [OUTPUT]}).encode()


def blocks(docstring: str) -> list[str]:
    """Return the blocks of a docstring: below `::`, between fences, and after `>>>`."""
    return [textwrap.dedent("".join(match.groups(""))) for match in BLOCK.finditer(docstring)]


def docstrings(name: str, node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the qualified name of each module, class and function with a docstring, and its docstring."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        name = name if isinstance(node, ast.Module) else f"{name}.{node.name}"
        if text := ast.get_docstring(node):
            yield name, f"{text}\n"
    for child in ast.iter_child_nodes(node):
        yield from docstrings(name, child)


def library() -> dict[str, list[str]]:
    """Return the blocks of each docstring of the library that has blocks, by the qualified name."""
    found: dict[str, list[str]] = {}
    for path in sorted((*ROOT.glob("constructs/cdk_triton/**/*.py"), *ROOT.glob("local_aws/cdk_triton_local/**/*.py"))):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts[1:]).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text if BLOCK.search(text) else "")
        for name, docstring in docstrings(module, tree):
            if shown := blocks(docstring):
                found.setdefault(name, []).extend(shown)  # an overload has the name of its function
    return found


BLOCKS = library()


def commands(words: str, command: Any) -> dict[str, Any]:
    """Return every command that does something, by the words that call it."""
    if not hasattr(command, "commands"):
        return {words: command}
    found = [commands(f"{words} {name}".strip(), child) for name, child in command.commands.items()]
    return {words: leaf for leaves in found for words, leaf in leaves.items()}


COMMANDS = commands("", get_command(app))


def test_each_block_is_tested_or_a_drawing() -> None:
    tested = {"cdk_triton.client", "cdk_triton.errors", "cdk_triton_local.aws.LocalAws"}
    one_each = dict.fromkeys(tested | set(DRAWINGS), 1)
    assert {name: len(shown) for name, shown in BLOCKS.items()} == one_each, "add a test of the new block to this file"


@pytest.mark.parametrize(
    "docstring",
    [
        "Run::\n\n    one()\n\nThen run::\n\n    two()\n",
        "Run::\n\n  one()\n\nThen run::\n\n  two()\n",
        "Run::\n\none()\n\nThen run::\n\ntwo()\n",
        "Run:\n\n    ```python\n    one()\n    ```\n\n```\ntwo()\n```\n",
        "Run:\n\n    >>> one()\n    1\n\n>>> two()\n... + 1\n",
    ],
    ids=["indented", "by two spaces", "not indented", "fences", "prompts"],
)
def test_a_second_block_and_an_indented_one_are_found(docstring: str) -> None:
    one, two = blocks(docstring)
    assert "one()" in one
    assert "two()" in two


def test_methods_of_equal_name_have_names_of_their_own() -> None:
    source = "".join(f"class {name}:\n  def run(self):\n    'Run {name}.'\n" for name in "AB")
    assert dict(docstrings("m", ast.parse(source))) == {"m.A.run": "Run A.\n", "m.B.run": "Run B.\n"}


def test_the_example_of_the_client_runs(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": f"http://127.0.0.1:{endpoint.port}",
    }.items():
        monkeypatch.setenv(name, value)
    endpoint.answer = lambda: Answer(ANSWER, "application/json")
    (example,) = BLOCKS["cdk_triton.client"]
    names: dict[str, Any] = {"text_model": "text-0123456789.tar.gz"}
    exec(f"from cdk_triton.client import TritonClient\n{example}", names)
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
    imports = "import subprocess\nfrom pathlib import Path\nfrom cdk_triton_local.aws import LocalAws\n"
    (example,) = BLOCKS["cdk_triton_local.aws.LocalAws"]
    exec(imports + example, {})
    assert re.fullmatch(r"deploy http://127\.0\.0\.1:\d+\n", capfd.readouterr().out)


def test_the_tree_of_errors_is_that_of_the_classes() -> None:
    path: list[str] = []
    drawn = {}
    (tree,) = BLOCKS["cdk_triton.errors"]
    for line in tree.strip().splitlines():
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
    # Without its program above it, click would remember for this process that the command has no option `-h`.
    program = get_command(app).make_context("cdk-triton", words.split())
    arguments = shlex.split(called.removeprefix(f"cdk-triton {words}"))
    command.make_context(words, arguments, parent=program).close()
