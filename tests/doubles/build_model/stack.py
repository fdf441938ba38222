"""A stack with one custom resource, as CloudFormation and the CDK provider framework deploy it."""

from __future__ import annotations

from dataclasses import dataclass, field

from build_model.cloud import Cloud, Event, Poll
from build_model.plans import Published

__all__ = ["Operation", "Stack"]

TOTAL_TIMEOUT_SECONDS = 55 * 60


@dataclass
class Operation:
    """A Create or Update that is polled."""

    event: Event
    plan: Published
    begun: float
    rollback: bool = False


@dataclass
class Stack:
    """A stack.

    Attributes:
        cloud: where it is deployed.
        plan: what is deployed; None before the first success.
        operation: what is under way.
        past: every event that was ever sent, for duplicates and late ones.
    """

    cloud: Cloud
    plan: Published | None = None
    operation: Operation | None = None
    past: list[Operation] = field(default_factory=list)

    def deploy(self, plan: Published, *, rollback: bool = False) -> None:
        """CloudFormation sends a Create or an Update."""
        event: Event = {
            "RequestType": "Create" if self.plan is None else "Update",
            "ResponseURL": "https://bucket.example/?Signature=s3cr3t",
            "StackId": "a-stack-that-rolls-back" if rollback else "a-stack",
            "ResourceProperties": {"ServiceToken": "t", **plan.properties},
        }
        if self.plan is not None:
            event["PhysicalResourceId"] = self.plan.properties["PlanSha256"]
            event["OldResourceProperties"] = self.plan.properties
        self.operation = Operation(self.cloud.accept(event), plan, self.cloud.clock(), rollback)
        self.past.append(self.operation)

    def settle(self, poll: Poll) -> None:
        """What the framework makes of an answer. It asks again where the Lambda died; CloudFormation rolls back."""
        operation = self.operation
        if operation is None:
            return
        if poll.done:
            self.plan, self.operation = operation.plan, None
        elif poll.failure is not None or self.cloud.clock() - operation.begun > TOTAL_TIMEOUT_SECONDS:
            self.operation = None
            if self.plan is None:
                self.delete(operation.event)
            elif not operation.rollback:
                self.deploy(self.plan, rollback=True)

    def delete(self, event: Event | None = None) -> None:
        """CloudFormation sends a Delete, with an id that it invented if there is no other."""
        sent = {**(event or {}), "RequestType": "Delete", "PhysicalResourceId": "stack-Fleet-1ABC"}
        assert self.cloud.poll(self.cloud.accept(sent)).done, "a Delete always succeeds"
        self.plan = self.operation = None
