"""moto's interpreter of state machines, where it needs a correction."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

from cdk_triton_local.aws import LocalAws

ITEM = {"ProcessorConfig": {"Mode": "INLINE"}, "StartAt": "Item", "States": {"Item": {"Type": "Pass", "End": True}}}
MACHINE: dict[str, Any] = {
    "StartAt": "Each",
    "States": {"Each": {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": ITEM, "End": True}},
}
ROLE = "arn:aws:iam::123456789012:role/machine"


def test_an_execution_that_has_not_begun_has_no_map_runs(local_aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> None:
    states = local_aws.client("stepfunctions")
    machine = states.create_state_machine(name="machine", definition=json.dumps(MACHINE), roleArn=ROLE)
    may_begin = threading.Event()
    parse = ExecutionWorker._get_evaluation_entrypoint

    def parse_later(worker: ExecutionWorker) -> object:
        may_begin.wait(30)
        return parse(worker)

    monkeypatch.setattr(ExecutionWorker, "_get_evaluation_entrypoint", parse_later)
    execution = states.start_execution(
        stateMachineArn=machine["stateMachineArn"], name="first", input=json.dumps({"items": [1, 2]})
    )["executionArn"]
    try:
        assert states.list_map_runs(executionArn=execution)["mapRuns"] == []
    finally:
        may_begin.set()


def test_executions_without_a_name_have_different_names(local_aws: LocalAws) -> None:
    states = local_aws.client("stepfunctions")
    machine = states.create_state_machine(name="unnamed", definition=json.dumps(MACHINE), roleArn=ROLE)
    start = {"stateMachineArn": machine["stateMachineArn"], "input": json.dumps({"items": []})}
    first, second = (states.start_execution(**start)["executionArn"] for _ in range(2))
    assert first != second
    assert not first.endswith(":None")


def test_a_publisher_fills_no_log(local_aws: LocalAws, caplog: pytest.LogCaptureFixture) -> None:
    each = {**MACHINE["States"]["Each"], "ToleratedFailureCount": 1_000_000}
    definition = json.dumps({**MACHINE, "States": {"Each": each}})
    states = local_aws.client("stepfunctions")
    machine = states.create_state_machine(name="tolerant", definition=definition, roleArn=ROLE)
    states.start_execution(stateMachineArn=machine["stateMachineArn"], input=json.dumps({"items": []}))

    assert "ToleratedFailureCount" not in caplog.text
