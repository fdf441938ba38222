"""A module whose name begins with `_` belongs to its package: nobody else imports it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cdk_triton.artifacts

ROOM = Path(cdk_triton.artifacts.__file__).parent


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.name)
def test_other_rooms_are_used_by_their_public_modules(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("cdk_triton."):
            room, *rest = node.module.split(".")[1:]
            assert room == "artifacts" or not any(name.startswith("_") for name in rest), f"line {node.lineno}"
