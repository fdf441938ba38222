"""Resources that exist already and join a stack, instead of being created.

There are two ways (pages of CloudFormation's user guide):

* A change set of the type IMPORT names each resource ("Import AWS resources into a CloudFormation stack manually").
* With `ImportExistingResources`, CloudFormation finds those whose literal names the template contains ("Import AWS
  resources into a CloudFormation stack automatically").

The sentences are those with which AWS answers, and their order is AWS's:
https://github.com/ministackorg/ministack/blob/5a0c9517180a3a01aa527873756025ddd7a3d264/tests/test_cfn_import_change_set.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cdk_triton.errors import LocalError, TemplateError
from cdk_triton_local.cloudformation.plan import Change, ChangePlan
from cdk_triton_local.cloudformation.resource_types import Context, Services, find
from cdk_triton_local.cloudformation.stacks import Stack, Target

__all__ = ["NotImportableError", "ResourceImports"]

_RETAINED = ("Retain", "RetainExceptOnCreate")


class NotImportableError(TemplateError):
    """CloudFormation creates the change set, whose status is then FAILED."""


class ResourceImports:
    """Adds imports to the plans of one account and region.

    Args:
        services: the services that resource types use.
        stacks: lists every stack.
    """

    def __init__(self, services: Services, stacks: Callable[[], Iterable[Stack]]) -> None:
        self._services = services
        self._stacks = stacks

    def named(self, stack: Stack, target: Target, plan: ChangePlan, named: Sequence[Mapping[str, Any]]) -> ChangePlan:
        """The plan that imports the resources which a change set of the type IMPORT names, and changes nothing else.

        Args:
            stack: the stack that they join.
            target: the stack's template with these resources.
            plan: the changes of an ordinary deployment of `target`.
            named: `ResourcesToImport` of the request.

        Raises:
            NotImportableError: a resource does not exist, or belongs to a stack.
            TemplateError: CloudFormation rejects the request.
        """
        _check_frozen(stack, target)
        _check_named(target, named)
        _check_changes(target, plan, [each["LogicalResourceId"] for each in named])
        return self._importing(stack, plan, {each["LogicalResourceId"]: each["ResourceIdentifier"] for each in named})

    def found(self, stack: Stack, target: Target, plan: ChangePlan) -> ChangePlan:
        """The plan that imports the resources which exist under the literal names of the template.

        Raises:
            NotImportableError: the template does not retain a resource, or the resource belongs to a stack.
        """
        found = {}
        for change in plan.changes:
            if change.action == "Add" and (identifier := _literal_identifier(target, change)):
                try:
                    self._existing(stack, change.logical_id, change.type, identifier)
                except LocalError:
                    continue  # it does not exist: the deployment creates it
                found[change.logical_id] = identifier
        resources = target.template.resources
        if lost := [
            f"{name} ({{{', '.join(f'{key}={value}' for key, value in identifier.items())}}})"
            for name, identifier in found.items()
            if resources[name].deletion_policy not in _RETAINED
        ]:
            raise NotImportableError(
                "CloudFormation is attempting to import some resources because they already exist in your account. The "
                "resources must have the DeletionPolicy attribute set to 'Retain' or 'RetainExceptOnCreate' in the "
                f"template for successful import. The affected resources are {', '.join(lost)}"
            )
        return self._importing(stack, plan, found)

    def _importing(self, stack: Stack, plan: ChangePlan, existing: Mapping[str, Mapping[str, str]]) -> ChangePlan:
        physical, types = {}, {each.logical_id: each.type for each in plan.changes}
        for name, identifier in existing.items():
            try:
                physical[name] = self._existing(stack, name, types[name], identifier)
            except TemplateError:  # the local AWS does not import this type
                raise
            except LocalError as error:
                raise NotImportableError(str(error)) from error
        for name, identifier in existing.items():
            for owner in self._stacks():
                for each in owner.resources.values():
                    if each.physical is None or each.definition.type != types[name]:
                        continue
                    if each.physical.id == physical[name]:
                        raise NotImportableError(f"{'|'.join(identifier.values())} already exists in stack {owner.id}")
        changes = tuple(
            replace(each, action="Import", physical_id=physical[each.logical_id])
            if each.logical_id in existing
            else each
            for each in plan.changes
        )
        return replace(plan, changes=changes, existing=existing)

    def _existing(self, stack: Stack, name: str, type_name: str, identifier: Mapping[str, str]) -> str:
        """The physical id."""
        context = Context(stack.environment, name, type_name, self._services)
        return find(type_name).existing(context, identifier).id


def _check_frozen(stack: Stack, target: Target) -> None:
    outputs = {} if stack.current is None else stack.current.template.outputs
    tags = {} if stack.current is None else stack.current.tags
    for name, before, after in (("Outputs", outputs, target.template.outputs), ("Tags", tags, target.tags)):
        if dict(before) != dict(after):
            raise TemplateError(f"As part of the import operation, you cannot modify or add [{name}]")


def _check_named(target: Target, named: Sequence[Mapping[str, Any]]) -> None:
    resources = target.template.resources
    if not named:
        raise TemplateError("Must Provide at least one resource to import")
    names = [each["LogicalResourceId"] for each in named]
    if len(set(names)) != len(names):
        raise TemplateError("Every resource to import must have unique LogicalResourceId")
    if unknown := [name for name in names if name not in resources]:
        raise TemplateError(
            f"The logical resource ids {_listed(unknown)} provided in ResourceToImport do not exist in the template."
        )
    for each in named:
        name, type_name, wanted = each["LogicalResourceId"], each["ResourceType"], resources[each["LogicalResourceId"]]
        keys = find(type_name).schema.primary_identifier
        if sorted(each["ResourceIdentifier"]) != sorted(keys):
            raise TemplateError(f"Invalid resource identifier for resource type {type_name}. Expected {_listed(keys)}")
        if type_name != wanted.type:
            raise TemplateError(
                f"Resource type of [{name}] passed in ResourceToImport does not match with resource type defined in "
                f"the template. Resource type in ResourceToImport: {type_name}; Resource type in Template: "
                f"{wanted.type}."
            )


def _check_changes(target: Target, plan: ChangePlan, names: list[str]) -> None:
    """An import adds the resources that it imports, and changes nothing else."""
    added = [each.logical_id for each in plan.changes if each.action == "Add"]
    if not added:
        raise TemplateError("The template should contain at least one new resource to import.")
    if present := [name for name in names if name not in added]:
        raise TemplateError(
            f"Resources {_listed(present)} passed in ResourceToImport are already in a stack and cannot be imported."
        )
    if unnamed := [name for name in added if name not in names]:
        raise TemplateError(f"Resources {_listed(unnamed)} is missing from ResourceToImport list")
    if changed := sorted(each.logical_id for each in plan.changes if each.action != "Add"):
        raise TemplateError(
            f"You have modified resources {_listed(changed)} in your template that are not being imported. Update, "
            "create or delete operations cannot be executed during import operations."
        )
    if unsafe := [name for name in names if not target.template.resources[name].names_deletion_policy]:
        raise TemplateError(
            f"The following resources to import {_listed(unsafe)} must have DeletionPolicy attribute specified in the "
            "template."
        )


def _literal_identifier(target: Target, change: Change) -> dict[str, str]:
    """The identifier that the template itself contains; empty if a function computes a part of it."""
    resource_type, properties = find(change.type), target.template.resources[change.logical_id].properties
    keys = resource_type.schema.primary_identifier
    identifier = {key: value for key in keys if isinstance(value := properties.get(key), str) and value}
    return identifier if resource_type.importable and len(identifier) == len(keys) else {}


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"
