"""Runs the state machines of the local AWS, whose definitions and executions are moto's.

Modelled are the states `Task` of a Lambda function, `Choice` by `BooleanEquals` or `IsPresent`, `Wait` by `Seconds` or
`SecondsPath` and `Succeed`, with `Retry`, `Catch` and `ResultPath` of one name. The waiter of an artifact store needs
no others ("Amazon States Language"). Waiting is shorter than the definition says.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from cdk_triton.errors import LocalError
from cdk_triton.local.lambdas import FunctionError, ThrottledError

__all__ = ["StateMachines", "not_modelled"]

_KEYS = {
    "Task": {"Type", "Resource", "Retry", "Catch", "ResultPath", "Next", "End"},
    "Choice": {"Type", "Choices", "Default"},
    "Wait": {"Type", "Seconds", "SecondsPath", "Next"},
    "Succeed": {"Type"},
}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds. They grow from the first to the longest, and never beyond what the definition says."""


def not_modelled(definition: Mapping[str, Any]) -> str | None:
    """The part of a definition that is not modelled, or None."""
    if not definition.get("States"):
        return "no states"
    for name, state in definition.get("States", {}).items():
        kind = state.get("Type")
        if kind not in _KEYS:
            return f"the state {name!r} of the type {kind!r}"
        if foreign := sorted(state.keys() - _KEYS[kind]):
            return f"{foreign[0]!r} of the state {name!r}"
        if kind == "Task" and ":lambda:" not in str(state["Resource"]):
            return f"the resource {state['Resource']!r} of the state {name!r}"
    return None


class StateMachines:
    """Runs executions that moto has accepted.

    Args:
        client: a boto3 client of Step Functions at the local AWS.
        invoke: runs a Lambda function.
        sleep: waits, or raises LocalError if the local AWS is being stopped.
        log: called with a line for each execution that fails.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        invoke: Callable[[str, Any], Any],
        sleep: Callable[[float], None],
        log: Callable[[str], None],
    ) -> None:
        self._client = client
        self._invoke = invoke
        self._sleep = sleep
        self._log = log

    def started(self, request: Mapping[str, Any]) -> None:
        """Run what a StartExecution asks for, in a thread of its own."""
        machine = self._client().describe_state_machine(stateMachineArn=request["stateMachineArn"])
        definition, data = json.loads(machine["definition"]), json.loads(request.get("input") or "{}")

        def run() -> None:
            try:
                self._run(definition, data)
            except (LocalError, LookupError) as error:
                self._log(f"the execution {request.get('name')} of {machine['name']} failed: {error}")

        threading.Thread(target=run, name=f"execution-{request.get('name')}", daemon=True).start()

    def _run(self, definition: Mapping[str, Any], data: dict[str, Any]) -> None:
        deadline = time.monotonic() + float(definition.get("TimeoutSeconds", 99_999_999))
        name, pause = definition["StartAt"], _FIRST_PAUSE
        while name:
            if time.monotonic() > deadline:
                raise LocalError("States.Timeout")
            state = definition["States"][name]
            match state["Type"]:
                case "Task":
                    name = self._task(state, data)
                case "Choice":
                    chosen = (each["Next"] for each in state["Choices"] if _holds(each, data))
                    name = next(chosen, state["Default"])
                case "Wait":
                    seconds = _at(state["SecondsPath"], data) if "SecondsPath" in state else state["Seconds"]
                    self._sleep(min(pause, float(seconds)))
                    name, pause = state["Next"], min(pause * 1.5, _LONGEST_PAUSE)
                case _:
                    name = ""

    def _task(self, state: Mapping[str, Any], data: dict[str, Any]) -> str:
        """Run a task, write its result into `data`, and return the next state; an empty name ends the execution."""
        retried = Counter[int]()
        while True:
            try:
                result = self._invoke(state["Resource"], data)
            except LocalError as error:
                name, cause = _named(error)
                again = next((n for n, each in enumerate(state.get("Retry", [])) if _matches(each, name)), None)
                if again is not None and retried[again] < (retrier := state["Retry"][again]).get("MaxAttempts", 3):
                    delay = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2) ** retried[again]
                    retried[again] += 1
                    self._sleep(min(delay, _FIRST_PAUSE * 1.5 ** retried[again], _LONGEST_PAUSE))
                    continue
                catcher = next((each for each in state.get("Catch", []) if _matches(each, name)), None)
                if catcher is None:
                    raise
                data[catcher["ResultPath"].removeprefix("$.")] = {"Error": name, "Cause": cause}
                return str(catcher["Next"])
            if "ResultPath" in state:
                data[state["ResultPath"].removeprefix("$.")] = result
            return str(state.get("Next", ""))


def _named(error: LocalError) -> tuple[str, str]:
    """`Error` and `Cause` of a task that failed."""
    if isinstance(error, ThrottledError):
        return "Lambda.TooManyRequestsException", str(error)
    if isinstance(error, FunctionError):
        return str(error.payload.get("errorType", "Lambda.Unknown")), json.dumps(error.payload)
    return "States.TaskFailed", str(error)


def _matches(rule: Mapping[str, Any], name: str) -> bool:
    return name in rule["ErrorEquals"] or "States.ALL" in rule["ErrorEquals"]


def _holds(choice: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    value = _at(choice["Variable"], data)
    return (value is not None) is choice["IsPresent"] if "IsPresent" in choice else value is choice["BooleanEquals"]


def _at(path: str, data: Mapping[str, Any]) -> Any:
    """Follow a path; None if there is nothing."""
    value: Any = data
    for part in path.removeprefix("$.").split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
