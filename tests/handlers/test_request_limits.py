"""The command `fleet publish` rejects the requests that the publisher's functions would reject for their size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from artifacts.publication import parse_request
from cdk_triton.cli.fleet.publication import Publication
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.publication import MAX_ITEMS, MAX_REQUEST_BYTES, Item

if TYPE_CHECKING:
    from golden_messages import Messages


def publication(count: int, digits: int = 1) -> Publication:
    items = (Item(str(number).zfill(digits), "unpublish") for number in range(count))
    return Publication("fleet", "AROAEXAMPLE:alice", tuple(items))


@pytest.mark.parametrize(("count", "digits"), [(MAX_ITEMS + 1, 1), (2, MAX_REQUEST_BYTES // 2)], ids=["items", "bytes"])
def test_a_request_that_the_functions_reject_is_rejected_before_an_upload(
    messages: Messages, count: int, digits: int
) -> None:
    with messages.raises(ConfigurationError):
        publication(count, digits)


@pytest.mark.slow
def test_the_largest_request_is_one_that_the_functions_read() -> None:
    assert len(parse_request(publication(MAX_ITEMS).body)) == MAX_ITEMS
    overhead = len(publication(1).body) - 1
    assert len(publication(1, MAX_REQUEST_BYTES - overhead).body) == MAX_REQUEST_BYTES
