"""Errors as they come out of a process pool."""

from __future__ import annotations

import copy
import pickle

import pytest

from cdk_triton.errors import (
    CdkTritonError,
    InvocationTimeoutError,
    ModelConfigError,
    ModelError,
    PayloadTooLargeError,
    ServeError,
)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "error",
    [
        ModelConfigError("unknown field", path="config.pbtxt", line=2, column=3),
        PayloadTooLargeError("too large", size=7, limit=6),
        InvocationTimeoutError("no answer"),
        ModelError("failed", status=500, original_message="out of memory"),
        ServeError("no model"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_keeps_its_message_and_attributes(error: CdkTritonError, protocol: int) -> None:
    error.add_note("seen in a worker")
    for found in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error)):
        assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))
