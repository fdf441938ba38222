"""The local AWS could be a distribution of its own: who imports it, what it imports, and in which order it is built."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cdk_triton.local

LOCAL = "cdk_triton.local"
CLI = "constructs/cdk_triton/cli/local.py"

# Which packages of the local AWS a package of it may import. The modules at its top put everything together.
MAY_IMPORT = {
    "process": set(),
    "wire": set(),
    "endpoints": set(),
    "lambdas": {"process"},
    "triton": {"endpoints", "process"},
    "build_tools": {"triton"},
    "jobs": {"build_tools", "process", "wire"},
    "services": {"lambdas", "wire"},
    "cloudformation": {"lambdas", "services", "wire"},
    "moto_state": {"endpoints", "lambdas", "process", "services", "wire"},
    "front": {"endpoints", "lambdas", "moto_state", "services", "wire"},
}
TOP = {"__init__.py", "aws.py", "daemon.py", "fidelity.py", "logs.py", "running.py"}

# What the programs of this repository may import beside the public names: the generator of the user guide's table.
FOR_PROGRAMS = {f"{LOCAL}.fidelity"}

# What a distribution of its own would have a copy of: it is small, and imports nothing of the library.
COPIED = {"cdk_triton._lazy", "cdk_triton._load_failures"}

CHILD_PROGRAMS = [
    "cdk_triton.local.build_tools.nvidia_smi",
    "cdk_triton.local.build_tools.trtexec",
    "cdk_triton.local.triton.backends.dali_recorder",
    "cdk_triton.local.triton.backends.onnx_model",
    "cdk_triton.local.triton.backends.plan",
]


class Import(NamedTuple):
    """A name that a file imports; the name is "" for `import module`."""

    module: str
    name: str
    line: int


def imports(tree: ast.Module) -> Iterator[Import]:
    """Every absolute import in a file, also inside functions and for type checking only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, "", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from (Import(node.module, alias.name, node.lineno) for alias in node.names)


def is_local(each: Import) -> bool:
    return f"{each.module}.{each.name}.".startswith(f"{LOCAL}.")


def is_public(each: Import) -> bool:
    """Whether a name is in the list of public names of a package at the first level below `cdk_triton`."""
    package = each.module.partition(".")[2]
    return package.isidentifier() and not package.startswith("_") and each.name in import_module(each.module).__all__


def test_nothing_in_the_library_but_its_command_imports_the_local_aws(library_source: Any) -> None:
    if library_source.package == "local":
        return
    found = [each for each in imports(library_source.tree) if is_local(each)]
    assert str(library_source) == CLI or not found
    assert [each for each in found if not is_public(each)] == []


def test_the_command_imports_the_local_aws(root: Path) -> None:
    assert any(is_local(each) for each in imports(ast.parse((root / CLI).read_text(encoding="utf-8"))))


@pytest.mark.parametrize("directory", ["docs", "examples", "tools"])
def test_programs_import_only_public_names_of_the_local_aws(root: Path, directory: str) -> None:
    for path in (root / directory).rglob("*.py"):
        for each in imports(ast.parse(path.read_text(encoding="utf-8"))):
            allowed = not is_local(each) or is_public(each) or each.module in FOR_PROGRAMS
            assert allowed, f"{path}:{each.line} imports {each.module}.{each.name}"


def test_the_local_aws_imports_only_public_names_of_the_rest(library_source: Any) -> None:
    if library_source.package != "local":
        return
    for each in imports(library_source.tree):
        if each.module.split(".")[0] == "cdk_triton" and not is_local(each):
            assert is_public(each) or each.module in COPIED, f"line {each.line} imports {each.module}.{each.name}"


def test_every_package_of_the_local_aws_has_its_import_rule_and_is_on_the_map(package: Path) -> None:
    entries = {path.name for path in (package / "local").iterdir() if path.name != "__pycache__"}
    assert entries == MAY_IMPORT.keys() | TOP
    for name in MAY_IMPORT:
        assert f"* `{name}`: " in str(cdk_triton.local.__doc__)
        assert import_module(f"{LOCAL}.{name}").__doc__


def test_the_import_rules_have_no_cycle() -> None:
    built: set[str] = set()
    for name, below in MAY_IMPORT.items():
        assert below <= built, name
        built.add(name)


def test_a_package_of_the_local_aws_imports_only_those_below_it(library_source: Any) -> None:
    parts = str(library_source).split("/")[2:]
    if parts[0] != "local" or len(parts) == 2:
        return
    allowed = MAY_IMPORT[parts[1]] | {parts[1]}
    for each in imports(library_source.tree):
        if is_local(each):
            imported = f"{each.module}.{each.name}".split(".")[2]
            assert imported in allowed, f"line {each.line} imports {each.module}.{each.name}"


@pytest.mark.parametrize("module", CHILD_PROGRAMS)
def test_a_child_process_imports_neither_the_cdk_nor_aws(module: str) -> None:
    program = f"import sys, {module}; print(*sorted({{'aws_cdk', 'boto3', 'jsii', 'moto'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.slow
def test_the_process_of_the_local_aws_imports_no_cdk() -> None:
    packages = ", ".join(f"{LOCAL}.{name}" for name in ("aws", "daemon", "fidelity", *MAY_IMPORT, "triton.host"))
    program = f"import sys, {packages}; print(*sorted({{'aws_cdk', 'constructs', 'jsii'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
