"""Published ensembles by name: how old a name gets, what refreshes it, and what a failure of that costs."""

from __future__ import annotations

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from botocore.exceptions import ClientError
from tests.client.parameter_store import Clock, Ssm, clock, fault, ssm, until

from cdk_triton.client import TritonClient
from cdk_triton.client.names import ParameterNames, Target
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    from golden_messages import Messages

__all__ = ["clock", "ssm"]

X = {"x": np.zeros((1, 2), np.float32)}


class Catalogue:
    """The catalogue in S3, which counts its requests."""

    def __init__(self, **current: str | None) -> None:
        self.current, self.read = current, list[str]()
        self.fault: ClientError | None = None
        self.body: bytes | None = None
        self.gate: threading.Event | None = None
        self.not_gated = ""
        self.waiting = threading.Event()

    def was_read(self, times: int) -> bool:
        return len(self.read) == times

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
    clock.now += 45
    assert names.target("tenant", None).target_model == "tenant-1.tar.gz"
    assert s3.waiting.wait(30)
    clock.now += 15

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


def test_no_name_is_older_than_max_age_when_the_catalogue_moves(ssm: Ssm, clock: Clock) -> None:
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogues(**{"25.09-a10g": "tenant-1.tar.gz", "26.05-l4": "tenant-2.tar.gz"})
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    names.target("one", None)
    clock.now += 29
    assert names.target("two", None).target_model == "tenant-1.tar.gz"
    ssm.values["catalogue"] = MOVED
    clock.now += 31
    assert names.may_block("two")  # the old name is not used while a thread reads the new one
    assert names.target("two", None).target_model == "tenant-2.tar.gz"


@pytest.mark.parametrize(("age", "reads"), [(0, 2), (29, 3)])
def test_a_busy_name_is_refreshed_with_the_uri_of_the_catalogue(ssm: Ssm, clock: Clock, age: int, reads: int) -> None:
    """The URI was read for another name, `age` seconds before. It and the name are read again every 30 seconds."""
    ssm.values["catalogue"] = CATALOGUE
    s3 = Catalogue(one="one-1.tar.gz", two="two-1.tar.gz")
    names = ParameterNames("/search", ssm, 60.0, s3=s3, clock=clock)
    names.target("one", None)
    clock.now += age
    for _ in range(60):
        names.target("two", None)
        until(lambda: not is_refreshing())
        clock.now += 1
    assert [key.rpartition("/")[2] for key in s3.read] == ["one.json"] + ["two.json"] * reads


def is_refreshing() -> bool:
    return any(thread.name == "cdk-triton-catalogue" for thread in threading.enumerate())


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
            until(partial(s3.was_read, reads))

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


def test_an_ensemble_of_a_removed_publisher_is_an_error_with_the_way_back(messages: Messages, ssm: Ssm) -> None:
    names = ParameterNames("/search", ssm, 60.0, s3=Catalogue(tenant="tenant-1.tar.gz"))

    with messages.raises(ConfigurationError) as caught:
        names.target("tenant", None)
    assert "add_publisher()" in str(caught.value)


def test_an_ensemble_that_was_never_published_is_an_error(ssm: Ssm) -> None:
    ssm.values["catalogue"] = CATALOGUE
    ssm.denied = frozenset({"target-models/other"})
    names = ParameterNames("/search", ssm, 60.0, s3=Catalogue())
    with pytest.raises(ConfigurationError, match="no such ensemble is published"):
        names.target("tenant", None)
    with pytest.raises(InvocationError, match="ssm:GetParameters"):
        names.target("other", None)
