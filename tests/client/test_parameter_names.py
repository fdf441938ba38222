"""Endpoint and target models by name: how old they get, what refreshes them, and what a failure of that costs."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.client.conftest import identity
from tests.client.parameter_store import Clock, Ssm, clock, fault, ssm, until

from cdk_triton.client import TritonClient
from cdk_triton.client.names import ParameterNames, Target
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    from golden_messages import Messages

__all__ = ["clock", "ssm"]

X = {"x": np.zeros((1, 2), np.float32)}


@pytest.fixture
def names(ssm: Ssm, clock: Clock) -> ParameterNames:
    return ParameterNames("/search", ssm, 60.0, clock=clock)


def test_an_ensemble_is_called_by_its_name(endpoint: Any, ssm: Ssm) -> None:
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm)
    for _ in range(3):
        client.infer(X, ensemble="text")
    client.infer(X, ensemble="image")
    client.infer(X, target_model="other.tar.gz")

    asked = [headers["x-amzn-sagemaker-target-model"] for _, headers, _ in endpoint.requests]
    assert asked == ["text-1.tar.gz"] * 3 + ["image-1.tar.gz", "other.tar.gz"]
    assert endpoint.requests[0][0] == "/endpoints/fleet/invocations"
    # One call for each name: a caller may read only those of its own ensembles.
    assert ssm.calls == [["endpoint-name", "async/input"], ["target-models/text"], ["target-models/image"]]


def test_many_requests_go_to_an_ensemble(endpoint: Any, ssm: Ssm) -> None:
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm)
    client.infer_many([X] * 3, max_batch_size=2, ensemble="text")
    assert {headers["x-amzn-sagemaker-target-model"] for _, headers, _ in endpoint.requests} == {"text-1.tar.gz"}


def test_a_caller_of_one_ensemble_needs_no_permission_for_the_others(endpoint: Any, ssm: Ssm) -> None:
    ssm.denied = frozenset({"target-models/image"})
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm)
    client.infer(X, ensemble="text")
    with pytest.raises(InvocationError, match="ssm:GetParameters"):
        client.infer(X, ensemble="image")


def test_what_names_no_target_is_an_error(messages: Messages, endpoint: Any, ssm: Ssm) -> None:
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm)
    with messages.raises(ConfigurationError):
        client.infer(X, ensemble="txt")
    with messages.raises(ConfigurationError):
        client.infer(X, ensemble="text", target_model="text.tar.gz")
    with messages.raises(ConfigurationError):
        TritonClient("fleet", endpoint.runtime()).infer(X, ensemble="text")
    with messages.raises(ConfigurationError):
        TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm, max_age=-1)
    assert endpoint.requests == []


def test_names_are_cached_until_they_are_old(names: ParameterNames, ssm: Ssm, clock: Clock) -> None:
    names.target("text", None)
    ssm.values["target-models/text"] = "text-2.tar.gz"
    clock.now += 59
    assert names.target("text", None).target_model == "text-1.tar.gz"
    until(lambda: len(ssm.calls) == 2)


def test_an_old_name_is_used_while_it_is_refreshed(names: ParameterNames, ssm: Ssm, clock: Clock) -> None:
    names.target("text", None)
    ssm.values |= {"target-models/text": "text-2.tar.gz", "endpoint-name": "other"}
    ssm.gate = threading.Event()
    clock.now += 61

    for _ in range(3):  # the store does not answer yet, and is asked once
        assert names.target("text", None) == Target("fleet", "text-1.tar.gz", "text")
    ssm.gate.set()

    until(lambda: names.target("text", None) == Target("other", "text-2.tar.gz", "text"))
    assert [set(call) for call in ssm.calls[2:]] == [{"endpoint-name", "async/input", "target-models/text"}]


def test_more_than_ten_names_take_several_calls(names: ParameterNames, ssm: Ssm, clock: Clock) -> None:
    ssm.values |= {f"target-models/e{number}": "1" for number in range(15)}
    for number in range(15):
        names.target(f"e{number}", None)
    ssm.values |= {f"target-models/e{number}": "2" for number in range(15)}
    clock.now += 61
    names.target("e0", None)
    until(lambda: [names.target(f"e{number}", None).target_model for number in range(15)] == ["2"] * 15)


@pytest.mark.parametrize("how", ["throttled", "denied", "gone"])
def test_a_refresh_that_fails_keeps_the_last_known_names_and_is_logged(
    names: ParameterNames, ssm: Ssm, clock: Clock, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    names.target("text", None)
    if how == "throttled":
        ssm.fault = fault("ThrottlingException")
    elif how == "denied":
        ssm.denied = frozenset({"target-models/text"})
    else:
        del ssm.values["target-models/text"]
    clock.now += 61
    with caplog.at_level(logging.WARNING, "cdk_triton.client.names"):
        assert names.target("text", None).target_model == "text-1.tar.gz"
        until(lambda: len(ssm.calls) == 3)

    assert names.target("text", None).target_model == "text-1.tar.gz"
    (record,) = caplog.records
    assert "/search" in record.getMessage()
    # It is tried again after the same time, and not with each request.
    assert len(ssm.calls) == 3
    ssm.fault, ssm.denied = None, frozenset()
    ssm.values["target-models/text"] = "text-2.tar.gz"
    clock.now += 61
    names.target("text", None)
    until(lambda: names.target("text", None).target_model == "text-2.tar.gz")


def without(answer: Any, gone: set[str]) -> Callable[[Mapping[str, str], bytes], Any]:
    """An endpoint that does not have certain archives."""

    def handle(headers: Mapping[str, str], body: bytes) -> Any:
        handle.asked.append(headers["x-amzn-sagemaker-target-model"])  # type: ignore[attr-defined]
        if headers["x-amzn-sagemaker-target-model"] not in gone:
            return identity(body, headers["content-type"])[1]
        words = "Failed to download model data(bucket: b, key: k). Please ensure that there is an object"
        return answer(
            json.dumps({"Message": words}).encode(), "application/json", 400, {"x-amzn-ErrorType": "ValidationError"}
        )

    handle.asked = []  # type: ignore[attr-defined]
    return handle


def test_a_target_that_is_gone_is_looked_up_at_once(
    endpoint: Any, ssm: Ssm, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdk_triton.client.names._JUST_NOW_SECONDS", 0.0)
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm)
    client.infer(X, ensemble="text")
    endpoint.handle = without(answer, {"text-1.tar.gz"})
    ssm.values["target-models/text"] = "text-2.tar.gz"

    client.infer(X, ensemble="text")
    client.infer(X, ensemble="text")

    assert endpoint.handle.asked == ["text-1.tar.gz", "text-2.tar.gz", "text-2.tar.gz"]


@pytest.mark.parametrize("seconds", [0.0, 3600.0], ids=["long ago", "just now"])
def test_a_request_that_is_rejected_for_another_reason_is_sent_once(
    endpoint: Any, ssm: Ssm, answer: Any, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr("cdk_triton.client.names._JUST_NOW_SECONDS", seconds)
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm)
    endpoint.handle = without(answer, {"text-1.tar.gz"})
    for _ in range(3):
        with pytest.raises(InvocationError, match="Failed to download model data"):
            client.infer(X, ensemble="text")
    assert endpoint.handle.asked == ["text-1.tar.gz"] * 3
    assert len(ssm.calls) == (5 if seconds == 0 else 2)


def test_an_error_of_the_model_does_not_look_anything_up(endpoint: Any, ssm: Ssm, answer: Any) -> None:
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm)
    endpoint.answer = lambda: answer(b"{}", "application/json", 424, {"x-amzn-ErrorType": "ModelError"})
    with pytest.raises(InvocationError):
        client.infer(X, ensemble="text")
    assert len(ssm.calls) == 2
    assert len(endpoint.requests) == 1
