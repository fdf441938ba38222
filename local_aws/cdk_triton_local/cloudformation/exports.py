"""Outputs of a stack, and the exports among them that other stacks can use (user guide, "Get exported outputs")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.intrinsics import Resolver
from cdk_triton_local.cloudformation.stacks import Output

__all__ = ["Exports", "check_exports", "resolve_outputs"]


class Exports(dict[str, str]):
    """Every export of the account and region that a stack can import.

    Attributes:
        outputs: the outputs of each stack by its name, for `Fn::GetStackOutput`.
        used: the names of the exports that were looked up.
    """

    def __init__(self, values: Mapping[str, str], outputs: Mapping[str, Mapping[str, str]] | None = None) -> None:
        super().__init__(values)
        self.outputs = {} if outputs is None else outputs
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


def resolve_outputs(declared: Mapping[str, Mapping[str, Any]], resolver: Resolver) -> tuple[Output, ...]:
    """The outputs whose condition holds, with their values.

    Raises:
        TemplateError: a value is not known, or is not a string.
    """
    outputs = []
    for key, body in declared.items():
        if "Condition" in body and not resolver.condition(body["Condition"]):
            continue
        value = resolver.resolve(body["Value"])
        if isinstance(value, (dict, list)):
            raise TemplateError(f"Template format error: output {key!r} must be a string and is {value!r}.")
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        export = resolver.resolve(body["Export"]["Name"]) if "Export" in body else None
        outputs.append(Output(key, text, str(body.get("Description", "")), export))
    return tuple(outputs)


def check_exports(
    before: Iterable[Output],
    after: Iterable[Output],
    exported_elsewhere: Mapping[str, str],
    importers: Mapping[str, Iterable[str]],
) -> None:
    """Check that exports are unique, and that no export in use changes or disappears.

    Args:
        before: the stack's outputs before the change.
        after: the stack's outputs after the change.
        exported_elsewhere: export name to the other stack that has it.
        importers: export name to the other stacks that use it.

    Raises:
        TemplateError: an export breaks a rule; the words are CloudFormation's.
    """
    exported = {output.export: output.value for output in after if output.export is not None}
    for name in exported:
        if owner := exported_elsewhere.get(name):
            raise TemplateError(f"Export with name {name} is already exported by stack {owner}.")
    for output in before:
        users = ", ".join(sorted(importers.get(output.export or "", ())))
        if users and output.export not in exported:
            raise TemplateError(f"Export {output.export} cannot be deleted as it is in use by {users}")
        if users and exported[str(output.export)] != output.value:
            raise TemplateError(f"Export {output.export} cannot be updated as it is in use by {users}")
