"""References between stacks of an app, as the CDK writes them when it synthesises.

The context `@aws-cdk/core:defaultCrossStackReferences` decides: `strong` references import an export, `weak` ones read
an output by `Fn::GetStackOutput`, which keeps nobody from changing or deleting it; `both` do the latter and keep
the export (`resolveValue` in `core/lib/private/refs.js` of aws-cdk-lib 2.275).
"""

from __future__ import annotations

import json

from aws_cdk import CfnOutput, Fn, Stack
from constructs import Construct

__all__ = ["name_of_export", "protects_nothing", "refers_weakly", "weak_reference"]

STRENGTH = "@aws-cdk/core:defaultCrossStackReferences"


def refers_weakly(stack: Stack) -> bool:
    """Whether a stack reads outputs of other stacks, instead of importing their exports."""
    return stack.node.try_get_context(STRENGTH) in ("weak", "both")


def protects_nothing(stack: Stack) -> bool:
    """Whether other stacks may go, or change, while a stack uses what they have."""
    return bool(stack.node.try_get_context(STRENGTH) == "weak")


def weak_reference(home: Stack, value: str) -> str:
    """A reference to an attribute of another stack's resource: of the output that the CDK would make, made now."""
    found = home.node.try_find_child("Publish")
    scope = found if isinstance(found, Construct) else Construct(home, "Publish")
    id = _output_id(home, value)
    existing = scope.node.try_find_child(id)
    output = existing if isinstance(existing, CfnOutput) else CfnOutput(scope, id, value=value)
    return Fn.get_stack_output(home.stack_name, home.get_logical_id(output), home.region)


def name_of_export(home: Stack, value: str) -> str:
    """Compute what a strong reference would import; no export is left behind that was not there."""
    exports, id = home.node.try_find_child("Exports"), _output_id(home, value)
    was_there = exports is not None and exports.node.try_find_child(id) is not None
    imported = home.export_value(value)
    if not was_there:
        home.node.find_child("Exports").node.try_remove_child(id)
    return imported


def _output_id(home: Stack, value: str) -> str:
    return "Output" + json.dumps(home.resolve(value), separators=(",", ":"), ensure_ascii=False)
