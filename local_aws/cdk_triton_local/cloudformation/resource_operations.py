"""Carries out one operation on one resource of a stack: create, import, delete; `deployment` puts these in order.

Whatever a resource type raises is the failure of that resource, as a crash of a resource handler is in CloudFormation;
hence the broad `except`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cdk_triton.errors import LocalError, TemplateError
from cdk_triton_local.cloudformation.exports import Exports
from cdk_triton_local.cloudformation.intrinsics import Resolver
from cdk_triton_local.cloudformation.plan import ChangePlan, resolver_for
from cdk_triton_local.cloudformation.resource_types import Context, PhysicalResource, Services, find, is_custom
from cdk_triton_local.cloudformation.resource_types.base import ResourceFailedError
from cdk_triton_local.cloudformation.stacks import Stack, StackResource, Target

__all__ = ["FailedError", "ResourceOperations", "failure_reason"]

INITIATED = "Resource creation Initiated"
IMPORT_STARTED = "Resource import started."
IMPORT_COMPLETED = "Resource import completed."
IMPORT_TAGS = "Apply stack-level tags to imported resource if applicable."


class FailedError(Exception):
    """The event of the resource has been recorded."""


class ResourceOperations:
    """The operations on single resources of one stack.

    Args:
        stack: the stack; changed as the operations go on.
        services: the services that resource types use.
        exports: the exports of other stacks.
        token: the caller's client request token.
    """

    def __init__(self, stack: Stack, services: Services, exports: Exports, token: str) -> None:
        self._stack = stack
        self._services = services
        self._exports = exports
        self._token = token
        self._failed: list[str] = []
        self._imported: set[str] = set()

    def _create(self, target: Target, plan: ChangePlan, name: str) -> None:
        if name in plan.existing:
            self._tag(self._import(target, plan, name), target.tags)
            return
        resource = self._begin(target, plan, name, "CREATE_FAILED")
        self._event(resource, "CREATE_IN_PROGRESS")
        self._create_physical(resource, self._context(resource, target.tags), "CREATE")

    def _begin(self, target: Target, plan: ChangePlan, name: str, failed: str) -> StackResource:
        definition = target.template.resources[name]
        resource = StackResource(definition, {}, plan.dependencies[name])
        self._stack.resources[name] = resource
        try:
            resource.properties = find(definition.type).coerce(
                self._resolver(target).resolve(dict(definition.properties))
            )
        except TemplateError as error:
            self._fail(resource, failed, error)
        return resource

    def _import(self, target: Target, plan: ChangePlan, name: str) -> StackResource:
        """Take an existing resource into the stack, without a change of it.

        Events: https://github.com/ministackorg/ministack/blob/0080b00e341cf84c4ea10e2eb51b45443e76ebd1/ministack/services/cloudformation/stacks.py
        """
        self._imported.add(name)
        resource = self._begin(target, plan, name, "IMPORT_FAILED")
        self._event(resource, "IMPORT_IN_PROGRESS", IMPORT_STARTED)
        try:
            resource.physical = find(resource.definition.type).existing(
                self._context(resource, target.tags), plan.existing[name]
            )
        except Exception as error:
            self._fail(resource, "IMPORT_FAILED", error)
        self._event(resource, "IMPORT_IN_PROGRESS")
        self._event(resource, "IMPORT_COMPLETE", IMPORT_COMPLETED)
        return resource

    def _tag(self, resource: StackResource, tags: Mapping[str, str]) -> None:
        """Add the stack's tags to a resource that was imported."""
        assert resource.physical is not None  # it was imported
        self._event(resource, "UPDATE_IN_PROGRESS", IMPORT_TAGS)
        try:
            if tags:
                find(resource.definition.type).add_tags(self._context(resource, tags), resource.physical)
        except Exception as error:
            self._fail(resource, "UPDATE_FAILED", error)
        self._event(resource, "UPDATE_COMPLETE")

    def _create_physical(self, resource: StackResource, context: Context, verb: str) -> None:
        """Record the second IN_PROGRESS event, with the physical id, as soon as the service has begun.

        Source: "Understand stack creation events", "Resource creation Initiated".
        """

        def initiated(physical_id: str) -> None:
            if resource.physical is None:
                resource.physical = PhysicalResource(physical_id)
                self._event(resource, f"{verb}_IN_PROGRESS", INITIATED)

        try:
            made = find(resource.definition.type).create(replace(context, initiated=initiated), resource.properties)
        except ResourceFailedError as error:
            resource.physical = error.physical
            self._fail(resource, f"{verb}_FAILED", error)
        except Exception as error:
            self._fail(resource, f"{verb}_FAILED", error)
        initiated(made.id)
        resource.physical = made
        self._event(resource, f"{verb}_COMPLETE")

    def _delete(self, resource: StackResource, physical: PhysicalResource | None, *, retain: bool = False) -> bool:
        """Return whether the resource is gone or was meant to stay."""
        gone = StackResource(resource.definition, resource.properties, resource.dependencies, physical)
        if resource.definition.logical_id in self._imported:
            # It existed before the operation, so a rollback leaves it as it is, whatever its DeletionPolicy.
            self._event(gone, "IMPORT_ROLLBACK_IN_PROGRESS")
            self._event(gone, "IMPORT_ROLLBACK_COMPLETE")
        elif retain:
            self._event(gone, "DELETE_SKIPPED")
        elif physical is None:
            # Its creation never got as far as a physical resource: nothing is in progress.
            self._event(gone, "DELETE_COMPLETE")
        else:
            self._event(gone, "DELETE_IN_PROGRESS")
            resource_type = find(resource.definition.type)
            try:
                resource_type.delete(self._context(gone, self._tags()), physical, resource.properties)
            except Exception as error:
                self._event(gone, "DELETE_FAILED", failure_reason(error))
                resource.status, resource.reason = gone.status, gone.reason
                return False
            self._event(gone, "DELETE_COMPLETE")
        return True

    def _fail(self, resource: StackResource, status: str, error: Exception) -> None:
        self._failed.append(resource.definition.logical_id)
        self._event(resource, status, failure_reason(error))
        raise FailedError from error

    def _resolver(self, target: Target) -> Resolver:
        resolver = resolver_for(self._stack.environment, target, self._exports)
        resolver.reference = lambda name: self._physical(name).ref
        resolver.attribute = self._attribute
        return resolver

    def _physical(self, name: str) -> PhysicalResource:
        resource = self._stack.resources.get(name)
        if resource is None or resource.physical is None:
            raise TemplateError(f"Unresolved resource dependencies [{name}] in the Resources block of the template")
        return resource.physical

    def _attribute(self, name: str, attribute: str) -> Any:
        physical = self._physical(name)
        if attribute not in physical.attributes:
            if is_custom(self._stack.resources[name].definition.type):
                raise TemplateError(
                    f"CustomResource attribute error: Vendor response doesn't contain {attribute} attribute in object "
                    f"{physical.id}"
                )
            raise TemplateError(f"Attribute '{attribute}' does not exist for resource {name}")
        return physical.attributes[attribute]

    def _context(self, resource: StackResource, tags: Mapping[str, str]) -> Context:
        definition = resource.definition
        return Context(self._stack.environment, definition.logical_id, definition.type, self._services, tags)

    def _tags(self) -> Mapping[str, str]:
        return {} if self._stack.current is None else self._stack.current.tags

    def _event(self, resource: StackResource, status: str, reason: str = "") -> None:
        self._stack.record(resource, status, reason, self._token)


def failure_reason(error: Exception) -> str:
    """CloudFormation quotes errors of services in this way."""
    if isinstance(error, LocalError):
        return str(error)
    if isinstance(error, (ClientError, BotoCoreError)):
        return f'Resource handler returned message: "{error}"'
    return f'Resource handler returned message: "{type(error).__name__}: {error}" (HandlerErrorCode: InternalFailure)'
