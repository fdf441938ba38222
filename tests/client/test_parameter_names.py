"""Endpoint and target models by name: how old they get, what refreshes them, and what a failure of that costs."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from botocore.exceptions import ClientError
from tests.client.conftest import identity

from cdk_triton.client import TritonClient
from cdk_triton.client.names import ParameterNames, Target
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    from golden_messages import Messages

X = {"x": np.zeros((1, 2), np.float32)}


@dataclass
class Ssm:
    """A Parameter Store below `/search`, which counts calls."""

    values: dict[str, str]
    calls: list[list[str]] = field(default_factory=list)
    fault: Exception | None = None
    denied: frozenset[str] = frozenset()
    asked: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event | None = None

    def get_parameters(self, *, Names: list[str]) -> dict[str, Any]:  # noqa: N803 - boto3's name
        assert 1 <= len(Names) <= 10
        names = [name.removeprefix("/search/") for name in Names]
        self.calls.append(names)
        self.asked.set()
        if self.gate is not None:
            assert self.gate.wait(30)
        if self.fault is not None:
            raise self.fault
        if self.denied & set(names):
            raise fault("AccessDeniedException")
        return {"Parameters": [{"Name": f"/search/{n}", "Value": self.values[n]} for n in names if n in self.values]}


def fault(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "Why."}}, "GetParameters")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ssm() -> Ssm:
    return Ssm(
        {"endpoint-name": "fleet", "target-models/text": "text-1.tar.gz", "target-models/image": "image-1.tar.gz"}
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def names(ssm: Ssm, clock: Clock) -> ParameterNames:
    return ParameterNames("/search", ssm, 60.0, clock=clock)


def until(holds: Callable[[], bool]) -> None:
    """Wait for another thread, which has been asked to do something short."""
    for thread in threading.enumerate():
        if thread.name in ("cdk-triton-parameters", "cdk-triton-catalogue"):
            thread.join(30)
    assert holds()


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


class Catalogue:
    """The catalogue in S3, which counts its requests."""

    def __init__(self, **current: str | None) -> None:
        self.current, self.read = current, list[str]()
        self.fault: ClientError | None = None
        self.body: bytes | None = None
        self.gate: threading.Event | None = None
        self.not_gated = ""
        self.waiting = threading.Event()

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
        assert Bucket == "store"
        self.read.append(Key)
        name = Key.removeprefix("catalogue/fleet/25.09-a10g/").removesuffix(".json")
        if self.gate is not None and name != self.not_gated:
            self.waiting.set()
            assert self.gate.wait(30)
        if self.fault is not None:
            raise self.fault
        if self.body is not None:
            return {"Body": io.BytesIO(self.body)}
        if name not in self.current:
            raise fault("NoSuchKey")
        return {"Body": io.BytesIO(json.dumps({"schema": 1, "current": self.current[name]}).encode())}


CATALOGUE = "s3://store/catalogue/fleet/25.09-a10g/"


@pytest.mark.parametrize("denied", [False, True], ids=["no parameter", "no permission"])
def test_a_published_ensemble_is_called_by_its_name(endpoint: Any, ssm: Ssm, denied: bool) -> None:
    ssm.values["catalogue"] = CATALOGUE
    ssm.denied = frozenset({"target-models/tenant"} if denied else ())
    s3 = Catalogue(tenant="tenant-1.tar.gz")
    client = TritonClient.from_parameters("/search", endpoint.runtime(), ssm=ssm, s3=s3)
    for _ in range(3):
        client.infer(X, ensemble="tenant")
    client.infer(X, ensemble="text")

    asked = [headers["x-amzn-sagemaker-target-model"] for _, headers, _ in endpoint.requests]
    assert asked == ["tenant-1.tar.gz"] * 3 + ["text-1.tar.gz"]
    assert s3.read == ["catalogue/fleet/25.09-a10g/tenant.json"]


def test_a_published_ensemble_is_read_again_after_max_age(ssm: Ssm, clock: Clock) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(tenant="tenant-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    assert names.may_block("tenant")
    assert names.target("tenant", None) == Target("fleet", "tenant-1.tar.gz", "tenant")
    s3.current["tenant"] = "tenant-2.tar.gz"
    clock.now += 29
    assert names.target("tenant", None).target_model == "tenant-1.tar.gz"
    assert len(s3.read) == 1
    clock.now += 31
    assert names.may_block("tenant")
    assert names.target("tenant", None).target_model == "tenant-2.tar.gz"
    assert len(s3.read) == 2

    s3.current["tenant"] = None
    clock.now += 60
    with pytest.raises(ConfigurationError, match="not published any more"):
        names.target("tenant", None)
    with pytest.raises(ConfigurationError, match="no such ensemble is published"):
        names.target("tenant", None)


def test_callers_of_an_old_published_name_wait_for_one_read(ssm: Ssm, clock: Clock) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(one="one-1.tar.gz", two="two-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    for each in ("one", "two"):
        names.target(each, None)
    s3.current |= {"one": "one-2.tar.gz", "two": "two-2.tar.gz"}
    s3.gate, s3.not_gated = threading.Event(), "two"
    clock.now += 60

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(names.target, "one", None) for _ in range(8)]
        assert s3.waiting.wait(30)
        # The read of one name does not hold up another.
        assert names.target("two", None).target_model == "two-2.tar.gz"
        assert not any(each.done() for each in asked)
        s3.gate.set()
        assert {each.result(30).target_model for each in asked} == {"one-2.tar.gz"}
    assert [key.rpartition("/")[2] for key in s3.read] == ["one.json", "two.json", "one.json", "two.json"]


def test_a_caller_waits_for_the_refresh_of_a_name_that_gets_old_meanwhile(ssm: Ssm, clock: Clock) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(tenant="tenant-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    names.target("tenant", None)
    s3.current["tenant"] = "tenant-2.tar.gz"
    s3.gate = threading.Event()
    clock.now += 30
    assert names.target("tenant", None).target_model == "tenant-1.tar.gz"
    assert s3.waiting.wait(30)
    clock.now += 30

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(names.target, "tenant", None)
        s3.gate.set()
        assert asked.result(30).target_model == "tenant-2.tar.gz"
    assert len(s3.read) == 2


MOVED = "s3://store/catalogue/fleet/26.05-l4/"


class Catalogues:
    """Documents in S3, by key."""

    def __init__(self, **current: str) -> None:
        self.current = current

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
        platform = Key.split("/")[2]
        if platform not in self.current:
            raise fault("NoSuchKey")
        return {"Body": io.BytesIO(json.dumps({"current": self.current[platform]}).encode())}


def test_a_catalogue_that_moves_with_the_platform_is_followed(ssm: Ssm, clock: Clock) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogues(**{"25.09-a10g": "tenant-1.tar.gz", "26.05-l4": "tenant-2.tar.gz"})
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    assert names.target("tenant", None).target_model == "tenant-1.tar.gz"
    ssm.values["catalogue"] = MOVED
    clock.now += 60
    names.target("tenant", None)
    until(lambda: names.target("tenant", None).target_model == "tenant-2.tar.gz")

    del s3.current["25.09-a10g"]  # of a platform that serves no more
    clock.now += 60
    names.target("tenant", None)
    until(lambda: names.target("tenant", None).target_model == "tenant-2.tar.gz")


@pytest.mark.parametrize("how", ["throttled", "gone"])
def test_the_last_known_catalogue_is_used_while_its_parameter_cannot_be_read(ssm: Ssm, clock: Clock, how: str) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(tenant="tenant-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    names.target("tenant", None)
    s3.current["tenant"] = "tenant-2.tar.gz"
    if how == "throttled":
        ssm.fault = fault("ThrottlingException")
    else:
        del ssm.values["catalogue"]
    clock.now += 60
    names.target("tenant", None)
    until(lambda: names.target("tenant", None).target_model == "tenant-2.tar.gz")


def test_a_published_name_in_use_is_refreshed_by_one_thread_while_callers_go_on(ssm: Ssm, clock: Clock) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(one="one-1.tar.gz", two="two-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    assert [names.target(each, None).target_model for each in ("one", "two")] == ["one-1.tar.gz", "two-1.tar.gz"]
    s3.current |= {"one": "one-2.tar.gz", "two": "two-2.tar.gz"}
    s3.gate = threading.Event()
    clock.now += 30

    for _ in range(3):  # S3 does not answer yet
        assert not names.may_block("one")
        assert [names.target(each, None).target_model for each in ("one", "two")] == ["one-1.tar.gz", "two-1.tar.gz"]
    s3.gate.set()

    until(
        lambda: [names.target(each, None).target_model for each in ("one", "two")] == ["one-2.tar.gz", "two-2.tar.gz"]
    )
    assert len(s3.read) == 4


@pytest.mark.parametrize("how", ["throttled", "damaged"])
def test_a_catalogue_that_fails_is_read_once_in_max_age(
    ssm: Ssm, clock: Clock, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(tenant="tenant-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    names.target("tenant", None)
    s3.fault, s3.body = (fault("SlowDown"), None) if how == "throttled" else (None, b"{")

    for reads in (2, 3):
        clock.now += 60
        for _ in range(50):
            assert names.target("tenant", None).target_model == "tenant-1.tar.gz"
            until(lambda reads=reads: len(s3.read) == reads)  # type: ignore[misc]

    assert ["the last known target model of 'tenant' is used" in each.getMessage() for each in caplog.records] == [
        True,
        True,
    ]


@pytest.mark.parametrize("body", [b"{", b"{}", b"[]", b"\xff"])
def test_a_damaged_entry_of_the_catalogue_is_one_sentence(messages: Messages, ssm: Ssm, body: bytes) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue()
    s3.body = body
    with messages.raises(InvocationError):
        ParameterNames("/search", ssm, 60.0, s3=s3).target("tenant", None)


def test_a_published_target_that_is_gone_and_not_published_any_more_is_an_error(ssm: Ssm, clock: Clock) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(tenant="tenant-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    gone = names.target("tenant", None)
    s3.current["tenant"] = None
    clock.now += 2
    with pytest.raises(ConfigurationError, match="not published any more"):
        names.renew(gone)


def test_a_published_target_that_is_gone_is_looked_up_at_once(ssm: Ssm, clock: Clock) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(tenant="tenant-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    gone = names.target("tenant", None)
    s3.current["tenant"] = "tenant-2.tar.gz"
    clock.now += 2
    assert names.renew(gone)
    assert names.target("tenant", None).target_model == "tenant-2.tar.gz"


def test_an_ensemble_that_was_never_published_is_an_error(ssm: Ssm) -> None:
    ssm.values["catalogue"] = CATALOGUE
    ssm.denied = frozenset({"target-models/other"})
    names = ParameterNames("/search", ssm, 60.0, s3=Catalogue())
    with pytest.raises(ConfigurationError, match="no such ensemble is published"):
        names.target("tenant", None)
    with pytest.raises(InvocationError, match="ssm:GetParameters"):
        names.target("other", None)


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
