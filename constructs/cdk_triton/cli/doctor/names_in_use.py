"""Finds names that deployed stacks still use: exports that the new templates remove, and parameters that they move.

CloudFormation rejects the removal of an export that a stack imports ("After another stack imports an output value, you
can't delete the stack that is exporting the output value or modify the exported output value", `Fn::ImportValue`). It
creates the resource of a new logical id before it deletes the old resource, so a parameter's name is in use until then.

Everything here is a pure rule over the templates of several stacks; nothing calls AWS.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from cdk_triton._wording import listed, listed_in_quotes
from cdk_triton.cli.doctor.answers import State
from cdk_triton.cli.doctor.changes import Change
from cdk_triton.cli.doctor.endpoints import Template, of_type

__all__ = ["Templates", "moved_parameters", "removed_exports"]

Templates = Mapping[str, Template]
"""Name of a stack → its template."""


def removed_exports(
    old: Templates,
    new: Templates,
    nested: Iterable[tuple[str, Template]],
    importers: Callable[[str], Sequence[str]],
) -> Iterator[tuple[str, Change]]:
    """The exports that a deployed stack loses although deployed stacks import them, as one change of each stack.

    Args:
        old: the deployed templates of the app's stacks.
        new: the new templates of the app's stacks.
        nested: the new templates of nested stacks, each with the name of its outermost stack.
        importers: the deployed stacks that import an export, in this app and in others; outermost ones.
    """
    imports = {name: _imports(template) for name, template in new.items()}
    for name, template in nested:
        imports[name] |= _imports(template)
    # Only a stack that is deployed alone, before the others, can do without the exports that come with them.
    coming = {export for each in new.values() for export in _exports(each)}
    coming -= {export for each in old.values() for export in _exports(each)}
    for stack, template in old.items():
        users = {export: importers(export) for export in sorted(_exports(template) - _exports(new[stack]))}
        in_use = [export for export, found in users.items() if found]
        if not in_use:
            continue
        names = _dependants_first({name for export in in_use for name in users[export]}, old, importers)
        alone = all(name in new and not imports[name] & {*in_use, *coming} for name in names)
        fix = (
            f"first deploy {listed(names)} alone{', in this order' * (len(names) > 1)}: `cdk deploy STACK "
            "--exclusively` with the STACK that `cdk list` prints"
            if alone
            else f"first deploy {listed(names)} without these imports, then {stack}"
        )
        found = (
            f"the new template does not have the export {listed_in_quotes(in_use)}, which {listed(names)} still "
            f"{'imports' if len(names) == 1 else 'import'}, so CloudFormation rejects the update, also with "
            "`cdk deploy --all`"
        )
        yield stack, Change(State.ERROR, found, fix)


def _dependants_first(
    names: Iterable[str], templates: Templates, importers: Callable[[str], Sequence[str]]
) -> list[str]:
    """The stacks in the order in which each can lose its exports: before it come the stacks that import them."""

    def dependants(name: str, above: frozenset[str] = frozenset()) -> int:
        seen = above | {name}  # two stacks may import from each other
        users = {user for export in _exports(templates.get(name, {})) for user in importers(export)} - seen
        return max((1 + dependants(user, seen) for user in users), default=0)

    return sorted(names, key=lambda name: (dependants(name), name))


def _exports(template: Template) -> set[str]:
    names = (each.get("Export", {}).get("Name") for each in template.get("Outputs", {}).values())
    return {name for name in names if isinstance(name, str)}


def _imports(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        own = {value["Fn::ImportValue"]} if isinstance(value.get("Fn::ImportValue"), str) else set()
        return own.union(*map(_imports, value.values()))
    return set().union(*map(_imports, value)) if isinstance(value, list) else set()


def moved_parameters(old: Templates, new: Templates) -> Iterator[tuple[str, Change]]:
    """The parameters of the Parameter Store that another resource of a deployed stack already has, by their new stack.

    Args:
        old: the deployed templates of the app's stacks.
        new: the new templates of the app's stacks.
    """
    holders: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for stack, template in old.items():
        for id, name in _parameters(template):
            holders[name].add((stack, id))
    moved: dict[tuple[str, str], list[str]] = defaultdict(list)
    for stack, template in new.items():
        for id, name in _parameters(template):
            if name in holders and (stack, id) not in holders[name]:
                moved[stack, min(holders[name])[0]].append(name)
    for (stack, holder), names in sorted(moved.items()):
        owner, fix = (
            (
                "this stack already has with another logical id, and CloudFormation deletes the old one last",
                "keep the construct id, use another name, or deploy twice: first without the parameter, then with it",
            )
            if stack == holder
            else (
                f"the deployed stack {holder} has",
                f"use another ssm_parameter_path, or first deploy {holder} without the parameter",
            )
        )
        found = (
            f"the new template creates the parameter {listed_in_quotes(sorted(names))}, which {owner}, so the "
            "deployment fails with ParameterAlreadyExists"
        )
        yield stack, Change(State.ERROR, found, fix)


def _parameters(template: Template) -> Iterator[tuple[str, str]]:
    for id, properties in of_type(template, "AWS::SSM::Parameter").items():
        if isinstance(name := properties.get("Name"), str):
            yield id, name
