"""The copies of a component on real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.local_aws.triton.conftest import QUIET, Bench

from cdk_triton_local.endpoints import Component, Container, Endpoint, Invocation, Response

if TYPE_CHECKING:
    from collections.abc import Callable

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
