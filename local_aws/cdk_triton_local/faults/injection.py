"""Decides which calls get the error of a fault."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

from cdk_triton.errors import LocalError
from cdk_triton_local.faults.documented import FAULTS, fault_names
from cdk_triton_local.faults.fault import Callers, Fault, Rejection, ServiceError
from cdk_triton_local.process import CALLER, ITSELF, Call

__all__ = ["Faults"]

Statement: TypeAlias = Mapping[str, Any]

_ROLES: Final = "ExecutionRoleArn", "RoleArn", "Role"
"""The parameters with which calls pass a role to a service."""


@dataclass
class Faults:
    """Some of the faults, injected from now on.

    Args:
        names: of `FAULTS`.
        seed: if given, calls between the faulty ones succeed, and the seed determines which.
        function_roles: the roles of Lambda functions, including roles that are added later.
        now: returns the time.
        statements: returns the statements of all policies of a role, by its ARN.
        reached: returns the services that functions in some subnets reach; None for all.

    Attributes:
        injected: how often each fault was injected, by name. A wait for a machine counts at each of its polls, because
            the faults can change while a job waits, and an isolated subnet at each call of a function in it.

    Raises:
        LocalError: there is no such fault.
    """

    names: Collection[str] = ()
    seed: int | None = None
    function_roles: Collection[str] = ()
    now: Callable[[], float] = time.time
    statements: Callable[[str], Sequence[Statement]] = lambda role: ()
    reached: Callable[[Sequence[str]], Collection[str] | None] = lambda subnets: None
    injected: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if foreign := sorted({*self.names} - {*fault_names()}):
            raise LocalError(f"there is no fault {foreign[0]!r}; the faults are {', '.join(fault_names())}")
        self._faults = [fault for fault in FAULTS if fault.name in self.names]
        self._began: float | None = None
        self._planned: dict[tuple[Any, ...], list[ServiceError | None]] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._faults)

    def error(self, call: Call) -> ServiceError | None:
        """The error that a call gets; None if it is answered."""
        if call.principal == ITSELF:
            return None
        with self._lock:
            if self._began is None and call.operation == "Invoke":
                self._began = self.now()
            for fault in self._faults:
                for number, rejection in enumerate(fault.rejections):
                    if self._counts(rejection, call) and (error := self._next(fault, number, rejection, call)):
                        self.injected[fault.name] += 1
                        return error
        return None

    def deliveries(self) -> int:
        """How often Lambda delivers an asynchronous event."""
        with self._lock:
            repeating = [fault.name for fault in self._faults if fault.repeats_events]
            self.injected.update(repeating)
            return 1 + len(repeating)

    def start_seconds(self, service: str) -> float:
        """How long a job or an endpoint of a service waits for a machine."""
        with self._lock:
            waiting = [fault for fault in self._faults if service in fault.start_seconds]
            self.injected.update(fault.name for fault in waiting)
            return max((fault.start_seconds[service] for fault in waiting), default=0)

    def services(self, subnets: Sequence[str]) -> Collection[str] | None:
        """The services that answer a function in some subnets; None for all."""
        isolating = [fault.name for fault in self._faults if fault.isolates_functions]
        found = self.reached(subnets) if isolating else None
        if found is not None:
            with self._lock:
                self.injected.update(isolating)
        return found

    def _counts(self, rejection: Rejection, call: Call) -> bool:
        is_function = call.principal in self.function_roles
        callers = {
            Callers.FUNCTIONS: is_function,
            Callers.FUNCTIONS_AND_USERS: is_function or call.principal == CALLER,
            Callers.EVERYBODY: True,
        }
        return (
            call.service == rejection.service
            and (not rejection.operations or call.operation in rejection.operations)
            and callers[rejection.callers]
            and rejection.applies(call)
            and not self._is_allowed(rejection, call)
            and (self._began is None or self.now() - self._began <= rejection.seconds)
        )

    def _is_allowed(self, rejection: Rejection, call: Call) -> bool:
        """Whether the role that a call passes has what the service requires of it; a call without one is invalid."""
        if not rejection.required:
            return False
        role = next((str(call.parameters[name]) for name in _ROLES if name in call.parameters), None)
        if role is None:
            return True
        # "The prefix and the action name are case insensitive" (IAM JSON policy elements: Action).
        allowed = {
            action.lower()
            for each in self.statements(role)
            if each["Effect"] == "Allow"
            if not rejection.is_unscoped or (each.get("Resource") in ("*", ["*"]) and "Condition" not in each)
            for actions in [each.get("Action", ())]  # one with NotAction is taken to allow nothing
            for action in ([actions] if isinstance(actions, str) else actions)
        }
        return all(any(fnmatchcase(action.lower(), pattern) for pattern in allowed) for action in rejection.required)

    def _next(self, fault: Fault, number: int, rejection: Rejection, call: Call) -> ServiceError | None:
        operation = "" if rejection.is_of_caller else call.operation
        key = (fault.name, number, call.principal, operation, call.parameters.get("FunctionName", ""))
        if key not in self._planned:
            self._planned[key] = self._plan(key, rejection.errors)
        planned = self._planned[key]
        if not planned:
            return rejection.errors[-1] if rejection.is_lasting else None
        return planned.pop(0)

    def _plan(self, key: Sequence[Any], errors: Sequence[ServiceError]) -> list[ServiceError | None]:
        if self.seed is None:
            return list(errors)
        # The ids that CloudFormation generates differ from run to run.
        stable = [str(part).rpartition("-")[0] for part in key[2:]]
        chosen = random.Random(f"{self.seed} {key[:2]} {stable}")  # noqa: S311  no secret
        planned: list[ServiceError | None] = []
        for error in errors:
            planned += [*chosen.randrange(4) * [None], error]
        return planned
