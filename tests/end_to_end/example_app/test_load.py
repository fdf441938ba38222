"""The load test of `benchmarks/reference_load.py`: its clients, for a moment, on the two ensembles."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[3]
STACK = "TwoEnsembles"
SECONDS = 2


@pytest.fixture(name="load")
def _load(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(CHECKOUT / "benchmarks"), *sys.path])
    return __import__("reference_load")


def test_its_clients_need_no_other_file_and_find_no_fault(example_app: Any, load: Any) -> None:
    outputs = {STACK: example_app.outputs(STACK)}
    runtime = example_app.client("sagemaker-runtime")
    asked = [
        load.Asked(question, binary, question.ask(runtime, outputs[STACK], binary=binary))
        for question in load.variants()
        for binary in (True, False)
        if question.stack == STACK
    ]
    aws = SimpleNamespace(environment=lambda: example_app.variables)
    clients = [load.Client(aws, outputs, asked, time.monotonic() + SECONDS, seed) for seed in range(2)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert {each.question.model for each in asked} == {"ImageModel", "TextModel"}
    assert [dict(each.faults) for each in clients] == [{}] * 2
    assert min(each.answers for each in clients) > 0
