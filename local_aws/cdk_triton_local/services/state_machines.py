"""Runs the state machines of the local AWS, whose definitions and executions are moto's.

moto's own interpreter runs a machine with a distributed map (`cdk_triton_local.moto_state.machines`). This module
models the states of all other machines. These are `Task` of a Lambda function, `Choice` by `BooleanEquals` or
`IsPresent`, `Wait` by `Seconds` or `SecondsPath`, and `Succeed`. It models `Retry`, `Catch` and `ResultPath` of one
name. The waiter of an artifact store needs no others ("Amazon States Language"). Waiting is shorter than in the
definition.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from cdk_triton.errors import LocalError
from cdk_triton_local.lambdas import FunctionError, NotRunError

__all__ = ["LONGEST_PAUSE", "StateMachines", "has_map", "not_modelled"]

_KEYS = {
    "Task": {"Type", "Resource", "Retry", "Catch", "ResultPath", "Next", "End"},
    "Choice": {"Type", "Choices", "Default"},
    "Wait": {"Type", "Seconds", "SecondsPath", "Next"},
    "Succeed": {"Type"},
}
_KEYS_BESIDE_A_MAP = {
    **_KEYS,
    "Task": _KEYS["Task"] | {"Parameters"},
    "Pass": {"Type", "Result", "Next", "End"},
    "Map": {
        "Type",
        "Label",
        "MaxConcurrency",
        "ToleratedFailureCount",
        "ItemReader",
        "ItemSelector",
        "ItemProcessor",
        "ResultWriter",
        "ResultPath",
        "Catch",
        "Next",
        "End",
    },
}
"""The parts of a machine with a map that moto's interpreter runs as AWS does, except for `fidelity.DIFFERENCES`."""

_FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds. They grow from the first to the longest, and never beyond that of the definition."""


def has_map(definition: str) -> bool:
    """Whether a definition has a map, so that moto's interpreter runs it."""
    states = json.loads(definition).get("States", {})
    return any(state.get("Type") == "Map" for state in states.values())


def not_modelled(definition: Mapping[str, Any], *, in_map: bool = False) -> str | None:
    """The part of a definition that is not modelled, or None; `in_map`: it is of a map's child executions."""
    if not definition.get("States"):
        return "no states"
    keys = _KEYS_BESIDE_A_MAP if in_map or has_map(json.dumps(definition)) else _KEYS
    for name, state in definition.get("States", {}).items():
        kind = state.get("Type")
        if kind not in keys:
            return f"the state {name!r} of the type {kind!r}"
        if foreign := sorted(state.keys() - keys[kind]):
            return f"{foreign[0]!r} of the state {name!r}"
        if kind == "Map" and (fault := _not_modelled_of_map(name, state)):
            return fault
        if kind == "Task" and ":lambda:" not in str(state["Resource"]):
            return f"the resource {state['Resource']!r} of the state {name!r}"
    return None


def _not_modelled_of_map(name: str, state: Mapping[str, Any]) -> str | None:
    processor, reader = state.get("ItemProcessor", {}), state.get("ItemReader", {})
    if (mode := processor.get("ProcessorConfig", {})) != {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}:
        return f"the ProcessorConfig {mode!r} of the map {name!r}"
    if (config := reader.get("ReaderConfig")) != {"InputType": "JSON"}:
        return f"the ReaderConfig {config!r} of the map {name!r}"
    return not_modelled(processor, in_map=True)


class StateMachines:
    """Runs executions that moto has accepted.

    Args:
        client: a boto3 client of Step Functions at the local AWS.
        invoke: runs a Lambda function for a principal, the role of the machine.
        sleep: waits for some seconds of the definition, here at most for some others, or raises LocalError if the local
            AWS is being stopped.
        log: called with a line for each execution that fails.
        now: returns the time, which passes faster if pauses are skipped.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        invoke: Callable[[str, Any, str], Any],
        sleep: Callable[[float, float], None],
        log: Callable[[str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._invoke = invoke
        self._sleep = sleep
        self._log = log
        self._now = now

    def started(self, request: Mapping[str, Any]) -> None:
        """Run what a StartExecution requests, in a thread of its own, unless moto's interpreter runs it."""
        machine = self._client().describe_state_machine(stateMachineArn=request["stateMachineArn"])
        if has_map(machine["definition"]):
            return
        definition, data = json.loads(machine["definition"]), json.loads(request.get("input") or "{}")

        def run() -> None:
            try:
                self._run(definition, machine["roleArn"], data)
            except (LocalError, LookupError) as error:
                self._log(f"the execution {request.get('name')} of {machine['name']} failed: {error}")

        threading.Thread(target=run, name=f"execution-{request.get('name')}", daemon=True).start()

    def _run(self, definition: Mapping[str, Any], role: str, data: dict[str, Any]) -> None:
        deadline = self._now() + float(definition.get("TimeoutSeconds", 99_999_999))
        name, pause = definition["StartAt"], _FIRST_PAUSE
        while name:
            if self._now() > deadline:
                raise LocalError("States.Timeout")
            state = definition["States"][name]
            match state["Type"]:
                case "Task":
                    name = self._run_task(state, role, data)
                case "Choice":
                    chosen = (each["Next"] for each in state["Choices"] if _holds(each, data))
                    name = next(chosen, state["Default"])
                case "Wait":
                    seconds = _at(state["SecondsPath"], data) if "SecondsPath" in state else state["Seconds"]
                    self._sleep(float(seconds), pause)
                    name, pause = state["Next"], min(pause * 1.5, LONGEST_PAUSE)
                case _:
                    name = ""

    def _run_task(self, state: Mapping[str, Any], role: str, data: dict[str, Any]) -> str:
        """Return the next state, or "" if the execution ends."""
        retried = Counter[int]()
        while True:
            try:
                result = self._invoke(state["Resource"], data, role)
            except LocalError as error:
                name, cause = _error_and_cause(error)
                again = next((n for n, each in enumerate(state.get("Retry", [])) if _matches(each, name)), None)
                if again is not None and retried[again] < (retrier := state["Retry"][again]).get("MaxAttempts", 3):
                    delay = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2) ** min(retried[again], 30)
                    retried[again] += 1
                    longest = min(_FIRST_PAUSE * 1.5 ** min(retried[again], 30), LONGEST_PAUSE)
                    self._sleep(min(delay, retrier.get("MaxDelaySeconds", delay)), longest)
                    continue
                catcher = next((each for each in state.get("Catch", []) if _matches(each, name)), None)
                if catcher is None:
                    raise
                data[catcher["ResultPath"].removeprefix("$.")] = {"Error": name, "Cause": cause}
                return str(catcher["Next"])
            if "ResultPath" in state:
                data[state["ResultPath"].removeprefix("$.")] = result
            return str(state.get("Next", ""))


def _error_and_cause(error: LocalError) -> tuple[str, str]:
    if isinstance(error, NotRunError):
        return f"Lambda.{error.code}", str(error)
    if isinstance(error, FunctionError):
        return str(error.payload.get("errorType", "Lambda.Unknown")), json.dumps(error.payload)
    return "States.TaskFailed", str(error)


def _matches(rule: Mapping[str, Any], name: str) -> bool:
    return name in rule["ErrorEquals"] or "States.ALL" in rule["ErrorEquals"]


def _holds(choice: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    value = _at(choice["Variable"], data)
    return (value is not None) is choice["IsPresent"] if "IsPresent" in choice else value is choice["BooleanEquals"]


def _at(path: str, data: Mapping[str, Any]) -> Any:
    """None if the path leads to nothing."""
    value: Any = data
    for part in path.removeprefix("$.").split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
