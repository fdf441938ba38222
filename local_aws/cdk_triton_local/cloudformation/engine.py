"""The stacks of one account and region, and the operations on them: one at a time per stack, each in its own thread."""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from cdk_triton.errors import LocalError, TemplateError
from cdk_triton_local.cloudformation.deployment import Deployment
from cdk_triton_local.cloudformation.exports import Exports
from cdk_triton_local.cloudformation.intrinsics import Environment
from cdk_triton_local.cloudformation.parameters import check_rules, resolve_parameters
from cdk_triton_local.cloudformation.plan import ChangePlan, make_plan, resolver_for
from cdk_triton_local.cloudformation.resource_imports import ResourceImports
from cdk_triton_local.cloudformation.resource_types import Services
from cdk_triton_local.cloudformation.stacks import Output, Settings, Stack, Target, now
from cdk_triton_local.cloudformation.template import Template

__all__ = ["ChangeSet", "NoSuchStackError", "StackStateError", "TemplateEngine"]

NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."
_LOOK_SECONDS = 0.05


class NoSuchStackError(TemplateError):
    """There is no stack of that name or id."""


class StackStateError(TemplateError):
    """The stack's status does not allow the operation."""


@dataclass
class ChangeSet:
    """A plan of changes that waits to be executed."""

    id: str
    name: str
    stack: Stack
    kind: Literal["CREATE", "IMPORT", "UPDATE"]
    target: Target
    plan: ChangePlan | None
    description: str = ""
    reason: str = ""
    execution_status: str = "AVAILABLE"
    settings: Settings = field(default_factory=Settings)
    created: datetime = field(default_factory=now)

    @property
    def status(self) -> str:
        """The status: a change set without changes, or with an import that is not possible, has failed."""
        return "FAILED" if self.plan is None else "CREATE_COMPLETE"


class TemplateEngine:
    """The local CloudFormation.

    Args:
        services: the services that resource types use.
        region: the region of the stacks.
        account: the account of the stacks.
        log: called with one line per stack status.
    """

    def __init__(self, services: Services, *, region: str, account: str, log: Callable[[str], None]) -> None:
        self.region = region
        self.account = account
        self.change_sets: dict[str, ChangeSet] = {}
        self.imports = ResourceImports(services, self.stacks)
        self._services = services
        self._log = log
        self._stacks: dict[str, Stack] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()

    # ------------------------------------------------------------------------------------------------ look up

    def stacks(self) -> list[Stack]:
        """Every stack, including deleted ones; the newest last."""
        return list(self._stacks.values())

    def stack(self, name_or_id: str) -> Stack:
        """The stack; a deleted one is found by its id only.

        Raises:
            NoSuchStackError: no stack has this name or id.
        """
        if name_or_id in self._stacks:
            return self._stacks[name_or_id]
        for stack in self._stacks.values():
            if stack.name == name_or_id and stack.status != "DELETE_COMPLETE":
                return stack
        raise NoSuchStackError(f"Stack with id {name_or_id} does not exist")

    def await_end(self, name_or_id: str, seconds: float) -> None:
        """Wait for the end of a stack's operation, if the stack exists and has one, or for some seconds."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(NoSuchStackError, LocalError):  # or this AWS is being stopped
            stack = self.stack(name_or_id)
            while stack.in_progress and time.monotonic() < deadline:
                self._services.sleep(_LOOK_SECONDS)

    def exports(self, exclude: Stack | None = None) -> dict[str, tuple[Stack, Output]]:
        """Every export with its stack, without those of the stack `exclude`."""
        return {
            output.export: (stack, output)
            for stack in self._stacks.values()
            if stack is not exclude
            for output in stack.outputs
            if output.export is not None
        }

    # ------------------------------------------------------------------------------------------------ prepare

    def target(
        self, stack: Stack | None, template: Template, parameters: Mapping[str, str | None], tags: Mapping[str, str]
    ) -> Target:
        """The target that `template` describes.

        Args:
            stack: the stack it is for, or None for a new one.
            template: the template.
            parameters: the caller's values; None stands for the previous one.
            tags: the stack's tags.

        Raises:
            TemplateError: a parameter is missing or wrong, or a rule does not hold.
        """
        current = None if stack is None else stack.current
        values = resolve_parameters(
            template.parameters, parameters, {} if current is None else current.parameters, self._read_ssm
        )
        target = Target(template, values, dict(tags))
        check_rules(template.rules, resolver_for(self._environment("rules", "rules"), target, Exports({})).predicate)
        return target

    def open(self, name: str) -> Stack:
        """A new stack in REVIEW_IN_PROGRESS, which `add` makes known."""
        identifier = f"arn:aws:cloudformation:{self.region}:{self.account}:stack/{name}/{uuid.uuid4()}"
        return Stack(self._environment(name, identifier))

    def plan(self, stack: Stack, target: Target) -> ChangePlan:
        """The changes that a deployment of `target` would make.

        Raises:
            TemplateError: the template cannot be deployed.
        """
        return make_plan(stack, target, self._exports(stack))

    def add(self, stack: Stack) -> None:
        """Make a stack known."""
        with self._lock:
            self._stacks[stack.id] = stack

    def forget(self, stack: Stack) -> None:
        """Drop a stack that never had a deployment (deleting one in REVIEW_IN_PROGRESS)."""
        stack.transition("DELETE_COMPLETE")
        stack.deleted = now()

    def check_idle(self, stack: Stack, verb: str = "updated") -> None:
        """Check that an operation can start.

        Raises:
            StackStateError: another operation is running, or the stack can only be deleted.
        """
        stuck = stack.status.endswith("_FAILED") or stack.status == "ROLLBACK_COMPLETE"
        if stack.in_progress or (stuck and verb == "updated"):
            raise StackStateError(f"Stack:{stack.id} is in {stack.status} state and can not be {verb}.")

    # ------------------------------------------------------------------------------------------------ run

    def deploy(
        self, stack: Stack, target: Target, plan: ChangePlan, token: str = "", *, only_imports: bool = False
    ) -> None:
        """Start the creation or update of a stack, or its imports, in a thread; its status shows the end."""
        deployment = self._deployment(stack, token)
        if only_imports:
            self._start(stack, "IMPORT_IN_PROGRESS", lambda: deployment.import_existing(target, plan))
        elif stack.current is None:
            self._start(stack, "CREATE_IN_PROGRESS", lambda: deployment.create(target, plan))
        else:
            self._start(stack, "UPDATE_IN_PROGRESS", lambda: deployment.update(target, plan))

    def delete(self, stack: Stack, retained: Iterable[str] = (), token: str = "") -> None:
        """Start the deletion of a stack, in a thread."""
        deployment = self._deployment(stack, token)
        kept = tuple(retained)
        self._start(stack, "DELETE_IN_PROGRESS", lambda: deployment.delete(kept))

    def close(self, timeout: float = 10.0) -> None:
        """Wait for running operations."""
        for thread in self._threads:
            thread.join(timeout)

    # ------------------------------------------------------------------------------------------------ helpers

    def _start(self, stack: Stack, status: str, operation: Callable[[], None]) -> None:
        with self._lock:
            self.check_idle(stack, "deleted" if status.startswith("DELETE") else "updated")
            stack.status = status  # from here on a second operation is rejected

        def run() -> None:
            self._log(f"{stack.name}: {status}")
            try:
                operation()
            except Exception as error:
                # Without a final status, clients would wait for ever.
                self._log(traceback.format_exc().rstrip())
                stack.transition(
                    _failed_status(stack.status),
                    f"the local CloudFormation itself failed with {type(error).__name__}: {error}; its log has more",
                )
            self._log(f"{stack.name}: {stack.status}{': ' + stack.reason if stack.reason else ''}")

        thread = threading.Thread(target=run, name=f"cloudformation-{stack.name}", daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _deployment(self, stack: Stack, token: str) -> Deployment:
        importers: dict[str, list[str]] = {}
        for other in self._stacks.values():
            if other is not stack:
                for name in other.imports:
                    importers.setdefault(name, []).append(other.name)
        return Deployment(
            stack,
            self._services,
            exports=self._exports(stack),
            exported_elsewhere={name: owner.name for name, (owner, _) in self.exports(exclude=stack).items()},
            importers=importers,
            token=token,
        )

    def _exports(self, stack: Stack) -> Exports:
        exported = {name: output.value for name, (_, output) in self.exports(exclude=stack).items()}
        others = (each for each in self._stacks.values() if each is not stack and each.status != "DELETE_COMPLETE")
        return Exports(exported, {each.name: {output.key: output.value for output in each.outputs} for each in others})

    def _environment(self, name: str, identifier: str) -> Environment:
        return Environment(region=self.region, account=self.account, stack_name=name, stack_id=identifier)

    def _read_ssm(self, name: str) -> str | None:
        found = self._services.client("ssm").get_parameters(Names=[name])["Parameters"]
        return str(found[0]["Value"]) if found else None


def _failed_status(status: str) -> str:
    if status.startswith("UPDATE_ROLLBACK"):
        return "UPDATE_ROLLBACK_FAILED"
    return f"{status.partition('_')[0]}_FAILED"
