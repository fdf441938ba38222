"""The handlers make keys by their own copy of the library's canonical text: both have to agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.canonical import canonical_json, sha256_of_json
from cdk_triton.artifacts import canonical

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@pytest.mark.slow
@given(values)
def test_the_text_and_its_hash_are_those_of_the_library(document: object) -> None:
    assert canonical_json(document) == canonical.canonical_json(document)
    assert sha256_of_json(document) == canonical.sha256_of_json(document)
