"""The rules of the house that no linter knows: who imports whom, who prints, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cdk_triton

# Who may import whom, by package. Everybody may import `cdk_triton.errors` and the private modules beside it, which
# import no package.
MAY_IMPORT = {
    "": {
        "artifacts",
        "checks",
        "hosting",
        "sagemaker",
        "triton",
    },  # the package itself: its lazily imported public names
    "cli": {"artifacts", "checks", "client", "local", "sagemaker", "triton"},
    "local": {"artifacts", "sagemaker", "triton"},
    "client": {"sagemaker", "triton"},
    "hosting": {"artifacts", "checks", "sagemaker", "triton"},
    "artifacts": {"checks", "sagemaker", "triton"},
    "checks": {"sagemaker", "triton"},
    "sagemaker": {"triton"},
    "triton": set(),
}
# The one import upwards: `ModelRepository.check` and `.report` are a facade of the checks.
FACADE = ("constructs/cdk_triton/triton/repository.py", {"checks", "sagemaker"})
CDK = {"aws_cdk", "constructs", "jsii"}
WITHOUT_CDK = ["triton", "sagemaker", "checks", "artifacts", "client"]
LAMBDA_HAS = {"boto3", "botocore"}
FOR_TYPE_CHECKING = {"mypy_boto3_s3", "_typeshed"}
BUILD_PROGRAM = Path(cdk_triton.__file__).parent / "artifacts" / "build_program"
MAX_LINES = 450


def test_every_package_has_its_import_rule(package: Path) -> None:
    packages = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(MAY_IMPORT) - {""}


def test_a_package_imports_only_the_packages_below_it(library_source: Any) -> None:
    is_private_module = library_source.package == "" and library_source.path.name != "__init__.py"
    allowed = set() if is_private_module else MAY_IMPORT[library_source.package] | {library_source.package}
    if library_source.package == "" and library_source.path.name == "__main__.py":
        allowed = {"cli"}  # the command
    if str(library_source) == FACADE[0]:
        allowed |= FACADE[1]
    for name in library_source.imported():
        parts = name.split(".")
        if parts[0] == "cdk_triton" and len(parts) > 1 and parts[1] in MAY_IMPORT:
            assert parts[1] in allowed, f"{library_source} imports {name}"


def test_only_the_constructs_import_the_cdk(library_source: Any) -> None:
    imported = {name.split(".")[0] for name in library_source.imported()}
    # `_jsii` imports jsii in functions that only the constructs call.
    may_import = library_source.package == "hosting" or library_source.path.name == "_jsii.py"
    assert may_import or not imported & CDK


def test_the_library_imports_by_absolute_names(library_source: Any) -> None:
    # Except the build program: its package has another name in the file that a build runs.
    if BUILD_PROGRAM in library_source.path.parents:
        return
    for node in ast.walk(library_source.tree):
        assert not isinstance(node, ast.ImportFrom) or node.level == 0, f"line {node.lineno}"


def test_a_handler_imports_only_its_neighbours_and_what_lambda_has(handler_source: Any) -> None:
    # Neighbours by relative imports: the directory has another name in the wheel than in the function's archive.
    top = {name.split(".")[0] for name in handler_source.imported()}
    assert top <= set(sys.stdlib_module_names) | LAMBDA_HAS | FOR_TYPE_CHECKING


@pytest.mark.parametrize("package", WITHOUT_CDK)
def test_a_process_that_loads_the_whole_package_has_no_cdk(package: str) -> None:
    program = f"""
import importlib, pkgutil, sys, cdk_triton.{package} as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(sorted({CDK!r} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_the_cli_prints_and_exits(library_source: Any) -> None:
    if library_source.package == "cli":
        return
    assert not {"typer", "rich", "click"} & {name.split(".")[0] for name in library_source.imported()}
    # A file that is also a program of its own (a child process) ends as programs do, below `if __name__ == "__main__"`.
    body = [node for node in library_source.tree.body if not _is_main_guard(node)]
    for node in (node for statement in body for node in ast.walk(statement)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in {"print", "sys.exit", "exit", "quit"}, f"line {node.lineno}"
        if isinstance(node, ast.Name):
            assert node.id != "SystemExit", f"line {node.lineno}"


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def test_a_file_can_be_read_in_one_sitting(source: Any) -> None:
    lines = source.path.read_text(encoding="utf-8").count("\n")
    assert lines <= MAX_LINES, f"{source} has {lines} lines; split it by subject"
