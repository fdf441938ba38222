"""Computes the changes of a deployment before it starts; a change set lists them.

This module finds every fault that the template alone can show: unknown types, properties, attributes and names, and
cycles. The rules for `Action`, `Replacement` and `RequiresRecreation` are those of the API types ResourceChange and
ResourceTargetDefinition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.exports import Exports
from cdk_triton_local.cloudformation.intrinsics import UNKNOWN, Environment, Resolver, contains_unknown, references
from cdk_triton_local.cloudformation.order import creation_order
from cdk_triton_local.cloudformation.resource_types import ResourceType, find, is_custom
from cdk_triton_local.cloudformation.resource_types._auto_delete import TYPE_NAME as AUTO_DELETE
from cdk_triton_local.cloudformation.stacks import STACK_TYPE, Stack, StackResource, Target
from cdk_triton_local.cloudformation.template import Resource

__all__ = ["Change", "ChangePlan", "PropertyChange", "changed_properties", "make_plan", "resolver_for"]

Replacement = Literal["True", "False", "Conditional"]


@dataclass(frozen=True)
class PropertyChange:
    """One top-level property that differs; a missing `before` or `after` is `None`."""

    name: str
    recreation: Literal["Never", "Conditionally", "Always"]
    before: Any
    after: Any


@dataclass(frozen=True)
class Change:
    """The change of one resource."""

    action: Literal["Add", "Import", "Modify", "Remove"]
    logical_id: str
    type: str
    physical_id: str | None = None
    replacement: Replacement | None = None
    properties: tuple[PropertyChange, ...] = ()
    retained: bool = False


@dataclass(frozen=True)
class ChangePlan:
    """The changes of a deployment.

    Attributes:
        order: logical ids of the active resources, in the order of their creation.
        dependencies: what each of them depends on.
        changes: what happens to resources, removals last.
        anything: whether anything changes; outputs, imports, metadata, policies and tags count, too.
        existing: logical ids of the resources that exist already and join the stack, with the properties that identify
            each of them (`resource_imports`).
    """

    order: tuple[str, ...]
    dependencies: Mapping[str, tuple[str, ...]]
    changes: tuple[Change, ...]
    anything: bool
    existing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def resolver_for(environment: Environment, target: Target, exports: Exports) -> Resolver:
    """A resolver of the target's template, without any resource."""
    return Resolver(
        environment=environment,
        parameters=target.parameter_values(),
        mappings=target.template.mappings,
        conditions=target.template.conditions,
        exports=exports,
        outputs=exports.outputs,
    )


def changed_properties(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Names of the top-level properties that differ."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def make_plan(stack: Stack, target: Target, exports: Exports) -> ChangePlan:
    """Compare `target` with the current state of `stack`.

    Raises:
        TemplateError: the template cannot be deployed; the message names every fault that was found.
    """
    return _Planner(stack, target, exports).plan()


class _Planner:
    def __init__(self, stack: Stack, target: Target, exports: Exports) -> None:
        self._stack = stack
        self._target = target
        self._exports = exports
        self._resolver = resolver_for(stack.environment, target, exports)
        self._resolver.reference = self._reference
        self._resolver.attribute = self._attribute
        self._active = {
            name: resource
            for name, resource in target.template.resources.items()
            if resource.condition is None or self._resolver.condition(resource.condition)
        }
        self._changes: dict[str, Change] = {}

    def plan(self) -> ChangePlan:
        faults = list(self._faults())
        if faults:
            raise TemplateError(faults[0] if len(faults) == 1 else "\n".join([f"{len(faults)} faults:", *faults]))
        dependencies = {name: self._dependencies(resource) for name, resource in self._active.items()}
        order = creation_order(dependencies)
        for name in order:
            if change := self._change(self._active[name]):
                self._changes[name] = change
        self._check_outputs()
        removed = {name: each for name, each in self._stack.resources.items() if name not in self._active}
        for name in reversed(creation_order({name: each.dependencies for name, each in removed.items()})):
            self._changes[name] = _removal(removed[name])
        return ChangePlan(order, dependencies, tuple(self._changes.values()), bool(self._changes) or self._differs())

    def _faults(self) -> Iterator[str]:
        """Faults of single resources. Resolved values are checked later, in the order of dependencies."""
        template = self._target.template
        known = {*template.resources, *template.parameters, *self._stack.environment.pseudo_parameters()}
        for name, resource in template.resources.items():
            if missing := sorted(set(resource.depends_on) - set(template.resources)):
                yield f"Template format error: Unresolved resource dependencies [{missing[0]}] in resource {name!r}"
            try:
                find(resource.type)
                for target, attribute in references(dict(resource.properties)):
                    self._check_reference(target, attribute, known)
                if name in self._active:
                    self._check_type_is_kept(resource)
                    self._check_service_token(resource)
            except TemplateError as error:
                yield f"resource {name!r}: {error}"

    def _check_reference(self, name: str, attribute: str | None, known: set[str]) -> None:
        if name not in known:
            raise TemplateError(f"Template format error: Unresolved resource dependencies [{name}]")
        if attribute is not None:
            if name not in self._target.template.resources:
                raise TemplateError(f"Template error: Fn::GetAtt names {name!r}, which is not a resource")
            find(self._target.template.resources[name].type).check_attribute(attribute)

    def _check_type_is_kept(self, resource: Resource) -> None:
        existing = self._stack.resources.get(resource.logical_id)
        if existing is not None and existing.definition.type != resource.type:
            raise TemplateError(
                "Update of resource type is not permitted. The new template modifies resource type of the following "
                f"resources: [{resource.logical_id}]"
            )

    def _check_service_token(self, resource: Resource) -> None:
        """Reject a custom resource whose function cannot run here."""
        if not is_custom(resource.type) or resource.type == AUTO_DELETE:
            return
        for name, _ in references(resource.properties.get("ServiceToken")):
            function = self._target.template.resources.get(name)
            if function is None or function.type != "AWS::Lambda::Function":
                continue
            runtime, handler = function.properties.get("Runtime", ""), function.properties.get("Handler", "")
            literal = isinstance(runtime, str) and isinstance(handler, str)
            if literal and not runtime.startswith("python") and not handler.startswith("framework."):
                raise TemplateError(
                    f"its function {name!r} has the runtime {runtime!r} and the handler {handler!r}; here only Python "
                    "functions and the CDK's Provider framework run"
                )

    def _dependencies(self, resource: Resource) -> tuple[str, ...]:
        found = [*resource.depends_on, *(name for name, _ in references(self._pruned(dict(resource.properties))))]
        return tuple(dict.fromkeys(name for name in found if name in self._active and name != resource.logical_id))

    def _pruned(self, value: Any) -> Any:
        """Keep only the chosen branch of every `Fn::If`."""
        if isinstance(value, dict):
            if set(value) == {"Fn::If"} and isinstance(value["Fn::If"], list) and len(value["Fn::If"]) == 3:
                name, then, otherwise = value["Fn::If"]
                return self._pruned(then if self._resolver.condition(name) else otherwise)
            return {name: self._pruned(item) for name, item in value.items()}
        return [self._pruned(item) for item in value] if isinstance(value, list) else value

    def _change(self, resource: Resource) -> Change | None:
        name = resource.logical_id
        resource_type = find(resource.type)
        try:
            after = resource_type.coerce(self._resolver.resolve(dict(resource.properties)))
        except TemplateError as error:
            raise TemplateError(f"resource {name!r}: {error}") from error
        existing = self._stack.resources.get(name)
        if existing is None or existing.physical is None:
            return Change("Add", name, resource.type)
        changed = changed_properties(existing.properties, after)
        if not changed:
            return None
        return _modification(resource_type, existing, changed, after)

    def _reference(self, name: str) -> Any:
        existing = self._existing(name)
        if existing is None or existing.physical is None or self._may_be_replaced(name):
            return UNKNOWN
        return existing.physical.ref

    def _attribute(self, name: str, attribute: str) -> Any:
        existing = self._existing(name)
        if existing is None or existing.physical is None or self._may_be_replaced(name):
            return UNKNOWN
        tells_afterwards = is_custom(existing.definition.type) or existing.definition.type == STACK_TYPE
        if tells_afterwards and name in self._changes:
            return UNKNOWN
        return existing.physical.attributes.get(attribute, UNKNOWN)

    def _existing(self, name: str) -> StackResource | None:
        if name not in self._active:
            raise TemplateError(
                f"Template format error: Unresolved resource dependencies [{name}] in the Resources block"
            )
        return self._stack.resources.get(name)

    def _may_be_replaced(self, name: str) -> bool:
        change = self._changes.get(name)
        if change is None:
            return False
        return change.replacement in ("True", "Conditional") or is_custom(change.type)

    def _check_outputs(self) -> None:
        template = self._target.template
        known = {*template.resources, *template.parameters, *self._stack.environment.pseudo_parameters()}
        for name, output in template.outputs.items():
            try:
                for target, attribute in references([output["Value"], output.get("Export")]):
                    self._check_reference(target, attribute, known)
                if "Condition" not in output or self._resolver.condition(output["Condition"]):
                    self._resolver.resolve(output["Value"])
            except TemplateError as error:
                raise TemplateError(f"output {name!r}: {error}") from error

    def _differs(self) -> bool:
        current = self._stack.current
        if current is None:
            return True
        before, after = current.template, self._target.template
        return (
            before.outputs != after.outputs
            or self._exports.used != self._stack.imports  # even if another function has the same value
            or {name: _attributes_without_properties(each.definition) for name, each in self._stack.resources.items()}
            != {name: _attributes_without_properties(each) for name, each in self._active.items()}
            or dict(current.tags) != dict(self._target.tags)
        )


def _attributes_without_properties(resource: Resource) -> tuple[Any, ...]:
    return resource.metadata, resource.deletion_policy, resource.update_replace_policy, resource.depends_on


def _modification(
    resource_type: ResourceType, existing: StackResource, changed: list[str], after: Mapping[str, Any]
) -> Change:
    assert existing.physical is not None  # the caller has looked
    replacing = resource_type.replacing(changed)
    properties = tuple(
        PropertyChange(
            name,
            "Never" if name not in replacing else "Conditionally" if contains_unknown(after.get(name)) else "Always",
            existing.properties.get(name),
            after.get(name),
        )
        for name in changed
    )
    recreations = {change.recreation for change in properties}
    # A custom resource may return another physical id, so CloudFormation reports "Conditional".
    conditional = "Conditionally" in recreations or is_custom(existing.definition.type)
    replacement: Replacement = "True" if "Always" in recreations else "Conditional" if conditional else "False"
    return Change(
        "Modify",
        existing.definition.logical_id,
        existing.definition.type,
        existing.physical.id,
        replacement,
        properties,
    )


def _removal(existing: StackResource) -> Change:
    return Change(
        "Remove",
        existing.definition.logical_id,
        existing.definition.type,
        None if existing.physical is None else existing.physical.id,
        retained=existing.definition.deletion_policy != "Delete",
    )
