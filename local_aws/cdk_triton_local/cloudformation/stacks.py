"""The state of a stack: its template, resources, events and outputs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cdk_triton_local.cloudformation.intrinsics import Environment
from cdk_triton_local.cloudformation.parameters import ParameterValue
from cdk_triton_local.cloudformation.resource_types import PhysicalResource
from cdk_triton_local.cloudformation.template import Resource, Template

__all__ = ["STACK_TYPE", "Event", "Output", "Settings", "Stack", "StackResource", "Target", "now"]

STACK_TYPE = "AWS::CloudFormation::Stack"


def now() -> datetime:
    """The current time, with the milliseconds that CloudFormation's answers carry."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@dataclass(frozen=True)
class Event:
    """One stack event, as `DescribeStackEvents` gives it."""

    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str = ""
    token: str = ""
    properties: Mapping[str, Any] | None = None
    timestamp: datetime = field(default_factory=now)
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    operation: str = ""


@dataclass(frozen=True)
class Output:
    """One output of a deployed stack."""

    key: str
    value: str
    description: str = ""
    export: str | None = None


@dataclass
class StackResource:
    """A resource of a stack.

    Attributes:
        properties: as they were given to the service, every intrinsic function resolved.
        dependencies: logical ids that must exist before it and outlive it.
        physical: None while it does not exist.
    """

    definition: Resource
    properties: Mapping[str, Any]
    dependencies: tuple[str, ...]
    physical: PhysicalResource | None = None
    status: str = ""
    reason: str = ""
    updated: datetime = field(default_factory=now)


@dataclass(frozen=True)
class Target:
    """The state that a deployment aims at."""

    template: Template
    parameters: Mapping[str, ParameterValue]
    tags: Mapping[str, str] = field(default_factory=dict)

    def parameter_values(self) -> dict[str, Any]:
        """The value of `Ref` for each parameter."""
        return {key: value.resolved for key, value in self.parameters.items()}


@dataclass(frozen=True)
class Settings:
    """The settings of an operation other than its target, which DescribeStacks reports."""

    capabilities: tuple[str, ...] = ()
    role_arn: str | None = None
    notification_arns: tuple[str, ...] = ()


@dataclass
class Stack:
    """One stack; a deleted one stays readable by its id, as in CloudFormation.

    Attributes:
        current: the last successful deployment.
        attempted: the deployment that its creation tried.
        imports: names of the exports that its resources use.
        operation: the id of the last operation, which its events have. A rollback is an operation of its own
            (mostRecentDeploymentAttempt of aws-cdk), so that the CLI tells the failures of one deployment.
    """

    environment: Environment
    status: str = "REVIEW_IN_PROGRESS"
    reason: str = ""
    created: datetime = field(default_factory=now)
    updated: datetime | None = None
    deleted: datetime | None = None
    current: Target | None = None
    attempted: Target | None = None
    resources: dict[str, StackResource] = field(default_factory=dict)
    outputs: tuple[Output, ...] = ()
    events: list[Event] = field(default_factory=list)
    imports: frozenset[str] = frozenset()
    settings: Settings = field(default_factory=Settings)
    termination_protection: bool = False
    change_set_id: str | None = None
    operation: str = ""

    @property
    def name(self) -> str:
        """The stack's name."""
        return self.environment.stack_name

    @property
    def id(self) -> str:
        """The stack's ARN."""
        return self.environment.stack_id

    @property
    def shown(self) -> Target | None:
        """The answer of `GetTemplate` and `DescribeStacks`, even for a stack whose creation failed."""
        return self.current or self.attempted

    @property
    def in_progress(self) -> bool:
        """Whether an operation is under way."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    def transition(self, status: str, reason: str = "", token: str = "", *, quiet: bool = False) -> None:
        """Change the status and record the event.

        Args:
            status: the new status.
            reason: why; kept as the stack's reason.
            token: the client request token of the operation.
            quiet: leave the event's reason empty, as CloudFormation does for the last event of a rollback.
        """
        self.status, self.reason = status, reason
        if status.endswith("_IN_PROGRESS") and "CLEANUP" not in status:
            self.operation = str(uuid.uuid4())
        self._append(Event(self.name, self.id, STACK_TYPE, status, "" if quiet else reason, token))

    def record(self, resource: StackResource, status: str, reason: str = "", token: str = "") -> None:
        """Change a resource's status and record the event."""
        resource.status, resource.reason, resource.updated = status, reason, now()
        physical_id = "" if resource.physical is None else resource.physical.id
        definition = resource.definition
        self._append(
            Event(definition.logical_id, physical_id, definition.type, status, reason, token, resource.properties)
        )

    def _append(self, event: Event) -> None:
        # The CLI sorts events by time, which has milliseconds: no two events may have the same.
        if self.events and event.timestamp <= self.events[-1].timestamp:
            event = replace(event, timestamp=self.events[-1].timestamp + timedelta(milliseconds=1))
        self.events.append(replace(event, operation=self.operation))
