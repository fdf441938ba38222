"""Documents that a caller of a publisher uploads, who may have written them by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.protocol.documents import DocumentError
from cdk_triton.protocol.publication import Item, UploadedRehearsal
from odd_values import changed_somewhere, odd_values

KEY = "7" * 64
ITEM = Item("one", "publish", "one", KEY, KEY, rehearsal=KEY)
ROW = {
    "name": "golden/one.json",
    "body": "request0",
    "content_type": "application/json",
    "comparison": {"how": "any"},
    "expected": "expected0",
    "expected_type": "application/json",
}
REHEARSAL = {
    "golden": KEY,
    "document": {
        "schema": 1,
        "repository": "one",
        "mode": "multi",
        "environment": {"NAME": "value"},
        "load_timeout_seconds": 60.0,
        "budgets": {"load_seconds": 60.0, "concurrency": 2},
        "requests": [ROW],
        "keep_answers": False,
    },
}


def test_a_rehearsal_is_that_of_its_item_whatever_the_caller_has_written() -> None:
    document = {**REHEARSAL["document"], "repository": "another", "keep_answers": True}  # type: ignore[dict-item]

    found = UploadedRehearsal.parse(json.dumps({**REHEARSAL, "document": document}).encode(), ITEM)

    assert (found.golden, found.document) == (KEY, REHEARSAL["document"])


@pytest.mark.slow
@given(odd_values | changed_somewhere(REHEARSAL))
def test_an_uploaded_rehearsal_is_usable_or_rejected(uploaded: Any) -> None:
    text = json.dumps(uploaded).encode()
    try:
        found = UploadedRehearsal.parse(text, ITEM)
    except DocumentError:
        return
    assert len(found.key(artifact_key=KEY, image="image", instance_type="ml.g5.xlarge", program=1)) == len(KEY)
    assert 0 < found.document["load_timeout_seconds"] <= 3600
    for row in found.document["requests"]:
        for name in (row["body"], row["expected"]):
            assert name is None or not {"", ".", ".."} & set(name.split("/"))
    assert UploadedRehearsal.parse(found.text(), ITEM).text() == found.text()


@pytest.mark.slow
@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_no_bytes_end_the_reader_in_another_way(text: bytes) -> None:
    with pytest.raises(DocumentError):
        UploadedRehearsal.parse(text, ITEM)
