"""A limit that nothing is held to misleads: it stands in the table, and nobody checks it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cdk_triton
from cdk_triton.sagemaker import limits

PACKAGE = Path(cdk_triton.__file__).parent


@pytest.mark.parametrize("name", limits.__all__)
def test_a_limit_is_checked_somewhere(name: str) -> None:
    others = (path for path in PACKAGE.rglob("*.py") if path != Path(limits.__file__))
    assert any(re.search(rf"\b{name}\b", path.read_text()) for path in others)
