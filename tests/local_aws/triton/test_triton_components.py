"""The copies of a component on real servers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from tests.local_aws.triton.conftest import CONFIG, QUIET, Bench

from cdk_triton_local.endpoints import Component, Container, Endpoint, Invocation, Response

HEADER = "x-amzn-sagemaker-inference-component"


class Shop:
    """The endpoint `shop`, whose component `text` answers with a number added."""

    def __init__(self, bench: Bench, recorded: list[tuple[str, str]], archive: Callable[..., bytes]) -> None:
        self.bench = bench
        self.recorded = recorded
        self._archive = archive
        bench.host.deploy(Endpoint("shop", "shop", ()))

    def place(self, copies: int, *, add: int = 1) -> None:
        self.bench.s3.objects[f"text{add}.tar.gz"] = self._archive(add)
        container = Container("image", "SingleModel", f"s3://bucket/text{add}.tar.gz", QUIET)
        self.bench.host.place(Component("text", "shop", "AllTraffic", container), copies)

    def ask(self, component: str | None = "text", **headers: str) -> Response:
        body = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}
        named = {} if component is None else {HEADER: component}
        sent = {"content-type": "application/json", **named, **headers}
        return self.bench.host.invoke(Invocation("shop", sent, json.dumps(body).encode()))

    def answer(self) -> float:
        response = self.ask()
        assert response.status == 200, response.body
        return float(json.loads(response.body)["outputs"][0]["data"][0])

    def servers(self) -> int:
        return sum("tritonserver is ready" in line for line in self.bench.lines)


@pytest.fixture(name="shop", scope="module")
def _shop(tmp_path_factory: pytest.TempPathFactory, adder: Any) -> Iterator[Shop]:
    recorded: list[tuple[str, str]] = []
    bench = Bench(
        Path(tmp_path_factory.mktemp("shop")),
        record_component=lambda component, name, value: recorded.append((component, name)),
    )
    yield Shop(bench, recorded, adder)
    bench.host.close()


def test_copies_come_change_and_go(shop: Shop) -> None:
    shop.place(2, add=1)
    assert shop.servers() == 2
    assert [shop.answer() for _ in range(4)] == [2, 2, 2, 2]
    assert ("text", "InvocationsPerCopy") in shop.recorded

    shop.place(1, add=10)  # another model
    assert shop.answer() == 11
    assert shop.servers() == 3

    shop.place(0, add=10)
    response = shop.ask()
    assert (response.status, response.headers["x-amzn-ErrorType"]) == (400, "ValidationError")
    assert b"Inference Component has no capacity to process this request." in response.body
    assert shop.recorded[-1] == ("text", "NoCapacityInvocationFailures")

    shop.place(1, add=10)
    assert shop.answer() == 11


def test_a_request_names_a_component_of_the_endpoint(shop: Shop) -> None:
    assert b"Inference Component Name header is required for endpoints" in shop.ask(None).body
    assert b"Inference Component image of endpoint shop not found." in shop.ask("image").body
    assert b"Variant Blue of endpoint shop" in shop.ask(**{"x-amzn-sagemaker-target-variant": "Blue"}).body
    assert b"does not support target model header" in shop.ask(**{"x-amzn-sagemaker-target-model": "m"}).body


GATED = """
import os
import time
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        open("DIRECTORY/begun", "w").close()
        while not os.path.exists("DIRECTORY/gate"):
            time.sleep(0.005)
        return [pb.InferenceResponse([pb.Tensor("OUT", pb.get_input_tensor_by_name(each, "IN").as_numpy())])
                for each in requests]
"""


def test_a_copy_that_is_removed_finishes_its_request(shop: Shop, packed: Any, tmp_path: Path) -> None:
    model = {"model/config.pbtxt": CONFIG, "model/1/model.py": GATED.replace("DIRECTORY", str(tmp_path))}
    shop.bench.s3.objects["gated.tar.gz"] = packed(model)
    container = Container("image", "SingleModel", "s3://bucket/gated.tar.gz", QUIET)
    component = Component("gated", "shop", "AllTraffic", container)
    shop.bench.host.place(component, 1)

    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(shop.ask, "gated")]
        try:
            wait_for((tmp_path / "begun").exists)
            removed = pool.submit(shop.bench.host.place, component, 0)
            while not wait(answers[-1:], timeout=0.5).done:  # it has come before the removal, and waits, too
                assert len(answers) < 20
                answers.append(pool.submit(shop.ask, "gated"))
            assert not removed.done()
        finally:
            (tmp_path / "gate").touch()
        assert [each.result().status for each in answers] == [200] * (len(answers) - 1) + [400]
        removed.result()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
