"""Shadow variants on real tritonservers: copies reach them, their answers reach nobody."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton_local.endpoints import Container, Endpoint, Invocation, Variant
from cdk_triton_local.triton.responses import ErrorResponses
from cdk_triton_local.triton.shadow import Shadow
from cdk_triton_local.triton.variant import RetiredError

if TYPE_CHECKING:
    from golden_messages import Messages

QUIET = {"SAGEMAKER_TRITON_LOG_VERBOSE": "false", "SAGEMAKER_TRITON_PING_MODE": "live"}
LINE = re.compile(r".*\bShadow\b.* (\d{3}) .*\b\d+ ms")


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.02)
    return True


class Shadowed:
    """An endpoint whose production variant adds 1 and whose shadow adds 2."""

    def __init__(self, bench: Any, adder: Any) -> None:
        self.bench = bench
        bench.s3.objects.update({"one.tar.gz": adder(1), "two.tar.gz": adder(2)})
        self.deploy(1.0)

    def deploy(self, weight: float) -> None:
        variants = [
            Variant(name, weight, "ml.g5.xlarge", Container("image", "SingleModel", f"s3://bucket/{key}.tar.gz", QUIET))
            for name, weight, key in (("Live", 1.0, "one"), ("Shadow", weight, "two"))
        ]
        self.bench.host.deploy(Endpoint("e", "config", (variants[0],), (variants[1],)))

    @property
    def copies(self) -> list[str]:
        """The statuses of the copies that the shadow has answered."""
        return [found[1] for line in list(self.bench.lines) if (found := LINE.fullmatch(line))]


@pytest.fixture(scope="module")
def shadowed(tmp_path_factory: pytest.TempPathFactory, bench_in: Any, adder: Any) -> Iterator[Shadowed]:
    bench = bench_in(tmp_path_factory.mktemp("shadowed"))
    yield Shadowed(bench, adder)
    bench.host.close()


def test_a_caller_sees_the_production_variant_only_and_the_shadow_every_request(
    messages: Messages, shadowed: Shadowed
) -> None:
    before = len(shadowed.copies)
    for _ in range(10):
        answer = shadowed.bench.invoke("e", 1.0)
        assert json.loads(answer.body)["outputs"][0]["data"] == [2.0]
        assert answer.headers["x-Amzn-Invoked-Production-Variant"] == "Live"
    assert eventually(lambda: shadowed.copies[before:] == ["200"] * 10)
    line = next(line for line in shadowed.bench.lines if LINE.fullmatch(line))
    messages.record("log", re.sub(r"\d+ ms", "N ms", line))


def test_nobody_can_ask_the_shadow(messages: Messages, shadowed: Shadowed) -> None:
    rejected = shadowed.bench.invoke("e", 1.0, x_amzn_sagemaker_target_variant="Shadow")
    assert rejected.status == 400
    messages.record("ValidationError", json.loads(rejected.body)["Message"])
    assert shadowed.bench.invoke("e", 1.0, x_amzn_sagemaker_target_variant="Live").status == 200


def test_what_the_shadow_rejects_is_logged_without_a_word_of_the_request(shadowed: Shadowed) -> None:
    before = len(shadowed.copies)
    assert shadowed.bench.send("e", b'{"inputs": [], "id": "31415926"}').status == 424
    assert eventually(lambda: "424" in shadowed.copies[before:])  # perhaps after the copy of an earlier request
    assert not any("31415926" in line for line in shadowed.bench.lines)


def test_the_weights_say_how_many_requests_are_copied(shadowed: Shadowed) -> None:
    shadowed.bench.host.set_weights("e", {"Shadow": 0.0})
    before = len(shadowed.copies)
    for _ in range(20):
        assert shadowed.bench.invoke("e", 1.0).status == 200
    shadowed.bench.host.set_weights("e", {"Shadow": 0.25})
    for _ in range(200):
        assert shadowed.bench.invoke("e", 1.0).status == 200
    # 50 expected; outside by chance less than once in a million
    assert eventually(lambda: 20 < len(shadowed.copies) - before < 85)


def test_a_shadow_that_dies_harms_nobody(messages: Messages, shadowed: Shadowed, packed: Any) -> None:
    """Its model ends the server; the one of the production variant does not."""
    bench = shadowed.bench
    deadly = """
import os
class TritonPythonModel:
    def execute(self, requests):
        os.kill(os.getppid(), 9)
"""
    config = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""
    bench.s3.objects["two.tar.gz"] = packed({"model/config.pbtxt": config, "model/1/model.py": deadly})
    shadowed.deploy(1.0)
    assert bench.answer("e", 1.0) == [2.0]
    status = re.compile(r"\b137\b(?! ms)")  # of a process that was killed
    assert eventually(lambda: any(map(status.search, bench.lines)))
    messages.record("log", next(filter(status.search, bench.lines)))
    assert bench.answer("e", 1.0) == [2.0]


def test_an_endpoint_that_is_removed_takes_its_shadow_along(shadowed: Shadowed) -> None:
    shadowed.bench.host.remove("e")
    assert not list((shadowed.bench.directory / "endpoints").iterdir())


class Stuck:
    """A variant that answers nothing until it is let go, and then has been stopped."""

    name, weight, is_multi_model = "Shadow", 1.0, False

    def __init__(self) -> None:
        self.let_go = threading.Event()

    @contextmanager
    def use(self, deadline: object) -> Iterator[Any]:
        self.let_go.wait()
        raise RetiredError
        yield


def test_copies_for_a_shadow_that_is_too_slow_are_dropped_and_that_is_said(messages: Messages) -> None:
    lines: list[str] = []
    stuck: Any = Stuck()
    errors = ErrorResponses("e", account="123456789012", region="us-east-1")
    shadow = Shadow(stuck, "e", lines.append)
    try:
        for _ in range(107):  # 4 are being answered, 100 wait
            shadow.copy(stuck, Invocation("e", {}, b""), errors)
        (line,) = set(lines)
        assert (len(lines), "100" in line) == (3, True)
        messages.record("log", line)
    finally:
        stuck.let_go.set()
        shadow.close()
