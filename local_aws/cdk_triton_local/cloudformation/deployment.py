"""Carries out one operation on one stack: create, import, update with replacement and cleanup, rollback, delete.

Which events appear, and in which order, follows CloudFormation; the source of each rule stands beside it. "Monitor" is
the user guide's "Monitor the progress of a stack update"; "Behaviours" is "Understand update behaviors of stack
resources"; "Failure options" is "Choose how to handle failures when provisioning resources". Resources are worked on
one after the other, and custom resources at once (`order`); nothing is ever "cancelled". `resource_operations` contains
the operations on one resource, and explains the broad `except`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.exports import Exports, check_exports, resolve_outputs
from cdk_triton_local.cloudformation.order import creation_order, work_through
from cdk_triton_local.cloudformation.plan import ChangePlan, changed_properties
from cdk_triton_local.cloudformation.resource_operations import FailedError, ResourceOperations, failure_reason
from cdk_triton_local.cloudformation.resource_types import PhysicalResource, Services, find, is_custom
from cdk_triton_local.cloudformation.resource_types.base import NotAttemptedError, ResourceFailedError
from cdk_triton_local.cloudformation.stacks import Output, Stack, StackResource, Target, now

__all__ = ["Deployment"]

REPLACING = "Requested update requires the creation of a new physical resource; hence creating one."
REPLACED_BY_PROVIDER = "Requested update required the provider to create a new physical resource"
USER_INITIATED = "User Initiated"


@dataclass
class _UpdateRecord:
    """The effect of an update on a resource that existed before.

    Attributes:
        superseded: whether there are now two physical resources.
        attempted: whether the service was asked to change the old one.
    """

    before: StackResource
    superseded: bool = False
    attempted: bool = False


class Deployment(ResourceOperations):
    """One operation on one stack.

    Args:
        stack: the stack; changed as the operation goes on.
        services: the services that resource types use.
        exports: the exports of other stacks.
        exported_elsewhere: export name to the other stack that has it.
        importers: export name to the other stacks that use it.
        token: the caller's client request token.
    """

    def __init__(
        self,
        stack: Stack,
        services: Services,
        *,
        exports: Exports,
        exported_elsewhere: Mapping[str, str],
        importers: Mapping[str, Iterable[str]],
        token: str = "",
    ) -> None:
        super().__init__(stack, services, exports, token)
        self._exported_elsewhere = exported_elsewhere
        self._importers = importers

    # ------------------------------------------------------------------------------------------------ create

    def create(self, target: Target, plan: ChangePlan) -> None:
        """Create everything; on failure delete what was created and end in ROLLBACK_COMPLETE (Failure options)."""
        stack = self._stack
        stack.attempted = target
        self._stack_event("CREATE_IN_PROGRESS", USER_INITIATED)
        try:
            self._work_through(target, plan, lambda name: self._create(target, plan, name))
            stack.outputs = self._outputs(target)
        except FailedError:
            self._roll_back_creation(f"The following resource(s) failed to create: [{', '.join(self._failed)}]. ")
        except TemplateError as error:
            self._roll_back_creation(f"{error} ")
        else:
            self._succeeded(target)
            self._stack_event("CREATE_COMPLETE")

    def _roll_back_creation(self, reason: str) -> None:
        stack = self._stack
        reason += "Rollback requested by user."
        self._stack_event("ROLLBACK_IN_PROGRESS", reason)
        undeleted = []
        for name in self._backwards(stack.resources):
            resource = stack.resources[name]
            # DeletionPolicy, RetainExceptOnCreate: "deletes the resource if the operation that created it is
            # rolled back".
            if not self._delete(resource, resource.physical, retain=resource.definition.deletion_policy == "Retain"):
                undeleted.append(name)
            else:
                del stack.resources[name]
        stack.outputs = ()
        if undeleted:
            self._stack_event(
                "ROLLBACK_FAILED", f"The following resource(s) failed to delete: [{', '.join(undeleted)}]. "
            )
        else:
            self._stack.transition("ROLLBACK_COMPLETE", reason, self._token, quiet=True)

    # ------------------------------------------------------------------------------------------------ import

    def import_existing(self, target: Target, plan: ChangePlan) -> None:
        """Import resources and do nothing else; on failure give them up again.

        Source: user guide, "Import AWS resources into a CloudFormation stack", status codes.
        """
        stack = self._stack
        new = stack.current is None
        if new:
            stack.attempted = target
        else:
            stack.updated = now()
        self._stack_event("IMPORT_IN_PROGRESS", USER_INITIATED)
        try:
            resources = [self._import(target, plan, name) for name in plan.order if name in plan.existing]
            for resource in resources:
                self._tag(resource, target.tags)
        except FailedError:
            self._stack_event(
                "IMPORT_ROLLBACK_IN_PROGRESS",
                f"The following resource(s) failed to import: [{', '.join(self._failed)}]. ",
            )
            for name in [each for each in self._backwards(stack.resources) if each in self._imported]:
                self._delete(stack.resources[name], stack.resources.pop(name).physical)
            self._stack_event("ROLLBACK_COMPLETE" if new else "IMPORT_ROLLBACK_COMPLETE")
        else:
            stack.current = target
            stack.imports |= self._exports.used
            self._stack_event("IMPORT_COMPLETE")

    # ------------------------------------------------------------------------------------------------ update

    def update(self, target: Target, plan: ChangePlan) -> None:
        """Change, add and replace, then clean up; on failure go back to the previous deployment (Behaviours)."""
        stack = self._stack
        stack.updated = now()
        before = dict(stack.resources)
        outputs_before, touched, added = stack.outputs, dict[str, _UpdateRecord](), list[str]()

        def work(name: str) -> None:
            if name in before:
                self._update(target, plan, name, before[name], touched)
            else:
                added.append(name)
                self._create(target, plan, name)

        self._stack_event("UPDATE_IN_PROGRESS", USER_INITIATED)
        try:
            self._work_through(target, plan, work)
            stack.outputs = self._outputs(target)
        except FailedError:
            verb = "update" if self._failed[0] in before else "create"
            reason = f"The following resource(s) failed to {verb}: [{', '.join(self._failed)}]. "
            self._roll_back_update(before, touched, added, reason)
            stack.outputs = outputs_before
        except TemplateError as error:
            self._roll_back_update(before, touched, added, str(error))
            stack.outputs = outputs_before
        else:
            self._succeeded(target)
            self._clean_up(plan, before, touched)

    def _update(
        self, target: Target, plan: ChangePlan, name: str, existing: StackResource, touched: dict[str, _UpdateRecord]
    ) -> None:
        definition = target.template.resources[name]
        wanted = StackResource(definition, existing.properties, plan.dependencies[name], existing.physical)
        wanted.status, wanted.updated = existing.status, existing.updated
        self._stack.resources[name] = wanted
        resource_type = find(definition.type)
        context = self._context(wanted, target.tags)
        try:
            wanted.properties = resource_type.coerce(self._resolver(target).resolve(dict(definition.properties)))
        except TemplateError as error:
            touched[name] = _UpdateRecord(existing)
            self._fail(wanted, "UPDATE_FAILED", error)
        changed = changed_properties(existing.properties, wanted.properties)
        if not changed:
            return
        step = touched[name] = _UpdateRecord(existing)
        assert existing.physical is not None  # a deployed resource exists
        if resource_type.replacing(changed):
            # "CloudFormation usually creates the replacement resource first" (Behaviours): the new one is made under
            # the same name.
            self._event(wanted, "UPDATE_IN_PROGRESS", REPLACING)
            wanted.physical = None
            self._create_physical(wanted, context, "UPDATE")
            step.superseded = True
            return
        self._event(wanted, "UPDATE_IN_PROGRESS")
        step.attempted = True
        try:
            physical = resource_type.update(context, existing.physical, wanted.properties, existing.properties)
        except ResourceFailedError as error:
            wanted.physical, step.superseded = error.physical, True
            self._fail(wanted, "UPDATE_FAILED", error)
        except NotAttemptedError as error:
            step.attempted = False
            self._fail(wanted, "UPDATE_FAILED", error)
        except Exception as error:
            self._fail(wanted, "UPDATE_FAILED", error)
        wanted.physical = physical
        if physical.id != existing.physical.id:
            # "CloudFormation recognizes the update as a replacement" (custom resource reference, "Replacing a custom
            # resource during an update").
            step.superseded = True
            self._event(wanted, "UPDATE_IN_PROGRESS", REPLACED_BY_PROVIDER)
        self._event(wanted, "UPDATE_COMPLETE")

    def _clean_up(
        self, plan: ChangePlan, before: Mapping[str, StackResource], touched: Mapping[str, _UpdateRecord]
    ) -> None:
        """Delete what was replaced or has left the template, dependents first (Monitor, "Important")."""
        self._stack_event("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        clean = True
        for name in self._backwards(before):
            old = before[name]
            if name not in plan.order:
                retain = old.definition.deletion_policy != "Delete"
                clean &= self._delete(old, old.physical, retain=retain)
                del self._stack.resources[name]
            elif name in touched and touched[name].superseded:
                current = self._stack.resources[name]
                retain = current.definition.update_replace_policy != "Delete"
                clean &= self._delete(old, old.physical, retain=retain)
        # "it removes the old resource from the stack and continues updating the stack"; CloudFormation tries three
        # times, we once.
        self._stack_event(
            "UPDATE_COMPLETE", "" if clean else "Update successful. One or more resources could not be deleted."
        )

    def _roll_back_update(
        self,
        before: Mapping[str, StackResource],
        touched: Mapping[str, _UpdateRecord],
        added: Iterable[str],
        reason: str,
    ) -> None:
        """Go back to the previous deployment, in its order, and then delete what the update created (Monitor)."""
        stack = self._stack
        self._stack_event("UPDATE_ROLLBACK_IN_PROGRESS", reason)
        after = dict(stack.resources)
        failed = []
        superseded: dict[str, PhysicalResource] = {}
        for name in creation_order({name: each.dependencies for name, each in before.items()}):
            step = touched.get(name)
            stack.resources[name] = before[name]
            if step is not None and not self._restore(after[name], step, superseded):
                failed.append(name)
        if failed:
            self._stack_event(
                "UPDATE_ROLLBACK_FAILED", f"The following resource(s) failed to update: [{', '.join(failed)}]. "
            )
            return
        self._stack_event("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        added = set(added)
        clean = True
        for name in self._backwards(after):
            if name in added:
                clean &= self._delete(after[name], after[name].physical)
                del stack.resources[name]
            elif name in superseded:
                clean &= self._delete(after[name], superseded[name])
        reason = reason if clean else "Update rollback successful. One or more resources could not be deleted."
        self._stack.transition("UPDATE_ROLLBACK_COMPLETE", reason, self._token, quiet=True)

    def _restore(self, after: StackResource, step: _UpdateRecord, superseded: dict[str, PhysicalResource]) -> bool:
        """Return whether it worked. `superseded` gets a physical resource that is no longer needed."""
        name, old = step.before.definition.logical_id, step.before
        assert old.physical is not None  # it was deployed
        if not step.attempted:
            # The old physical resource was never touched: only its record changes.
            if after.physical is not None and after.physical is not old.physical:
                superseded[name] = after.physical
            self._event(old, "UPDATE_COMPLETE")
            return True
        assert after.physical is not None  # an update in place has one
        self._event(old, "UPDATE_IN_PROGRESS")
        try:
            physical = find(old.definition.type).update(
                self._context(old, self._tags()), after.physical, old.properties, after.properties
            )
        except Exception as error:
            self._event(old, "UPDATE_FAILED", failure_reason(error))
            return False
        if physical.id != after.physical.id:
            superseded[name] = after.physical
        old.physical = physical
        self._event(old, "UPDATE_COMPLETE")
        return True

    # ------------------------------------------------------------------------------------------------ delete

    def delete(self, retained: Iterable[str] = ()) -> None:
        """Delete everything, dependents first; what cannot be deleted keeps what it depends on (API DeleteStack)."""
        stack = self._stack
        self._stack_event("DELETE_IN_PROGRESS", USER_INITIATED)
        for output in stack.outputs:
            if output.export is not None and (users := sorted(self._importers.get(output.export, ()))):
                self._stack_event(
                    "DELETE_FAILED",
                    f"Delete canceled. Cannot delete export {output.export} as it is in use by {', '.join(users)}.",
                )
                return
        undeleted: list[str] = []
        needed: set[str] = set()
        kept = set(retained)
        for name in self._backwards(stack.resources):
            resource = stack.resources[name]
            if name in needed:
                needed.update(resource.dependencies)
                continue
            if self._delete(
                resource, resource.physical, retain=name in kept or resource.definition.deletion_policy != "Delete"
            ):
                del stack.resources[name]
            else:
                undeleted.append(name)
                needed.update(resource.dependencies)
        if undeleted:
            self._stack_event(
                "DELETE_FAILED", f"The following resource(s) failed to delete: [{', '.join(undeleted)}]. "
            )
            return
        stack.outputs, stack.imports, stack.deleted = (), frozenset(), now()
        self._stack_event("DELETE_COMPLETE")

    # ------------------------------------------------------------------------------------------------ helpers

    def _work_through(self, target: Target, plan: ChangePlan, work: Callable[[str], None]) -> None:
        customs = {name for name, each in target.template.resources.items() if is_custom(each.type)}
        work_through(plan.order, plan.dependencies, customs, work)

    def _outputs(self, target: Target) -> tuple[Output, ...]:
        outputs = resolve_outputs(target.template.outputs, self._resolver(target))
        check_exports(self._stack.outputs, outputs, self._exported_elsewhere, self._importers)
        return outputs

    def _succeeded(self, target: Target) -> None:
        self._stack.current = target
        self._stack.imports = frozenset(self._exports.used)

    def _backwards(self, resources: Mapping[str, StackResource]) -> list[str]:
        return list(reversed(creation_order({name: each.dependencies for name, each in resources.items()})))

    def _stack_event(self, status: str, reason: str = "") -> None:
        self._stack.transition(status, reason, self._token)
