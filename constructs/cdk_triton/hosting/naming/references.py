"""References between stacks of an app, as the CDK writes them when it synthesises.

The context `@aws-cdk/core:defaultCrossStackReferences` decides: `strong` references import an export; `weak` references
read an output by `Fn::GetStackOutput`, which can be changed or deleted at any time; with `both`, references read an
output, and the export stays (`resolveValue` in `core/lib/private/refs.js` of aws-cdk-lib 2.275).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from aws_cdk import CfnOutput, Fn, IResolvable, Reference, Stack, Tokenization
from constructs import Construct

from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["keep_exports", "name_of_export", "protects_nothing", "refers_weakly", "weak_reference"]

STRENGTH = "@aws-cdk/core:defaultCrossStackReferences"


def refers_weakly(stack: Stack) -> bool:
    """Whether a stack reads outputs of other stacks, instead of importing their exports."""
    return stack.node.try_get_context(STRENGTH) in ("weak", "both")


def protects_nothing(stack: Stack) -> bool:
    """Whether other stacks can be changed or deleted while a stack uses their resources."""
    return bool(stack.node.try_get_context(STRENGTH) == "weak")


def weak_reference(producer: Stack, value: str) -> str:
    """A weak reference to another stack's resource, with the output that the CDK would make later."""
    found = producer.node.try_find_child("Publish")
    scope = found if isinstance(found, Construct) else Construct(producer, "Publish")
    id = _output_id(producer, value)
    existing = scope.node.try_find_child(id)
    output = existing if isinstance(existing, CfnOutput) else CfnOutput(scope, id, value=value)
    return Fn.get_stack_output(producer.stack_name, producer.get_logical_id(output), producer.region)


def keep_exports(scope: Construct, values: Iterable[str]) -> None:
    """Export values of the construct's stack, whether or not another stack uses them now.

    The CDK exports a value while another stack uses it. `cdk deploy --all` deploys the stack with the exports first, so
    it fails when a feature that needed one is removed: "Export … cannot be deleted as it is in use by …". A weak
    reference has no export, and a nested stack exports through its parent.
    """
    stack = stack_of(scope)
    if protects_nothing(stack) or stack.nested_stack_parent is not None:
        return
    for value in values:
        if any(_is_of(stack, token) for token in Tokenization.reverse_string(value).tokens):
            stack.export_value(value)


def _is_of(stack: Stack, token: IResolvable) -> bool:
    """Whether a token is an attribute of a resource of this stack, and not, say, of a key of another one."""
    return isinstance(token, Reference) and stack_of(token.target).node.path == stack.node.path


def name_of_export(producer: Stack, value: str) -> str:
    """The import of a strong reference. The export is removed again if it did not exist before."""
    exports, id = producer.node.try_find_child("Exports"), _output_id(producer, value)
    was_there = exports is not None and exports.node.try_find_child(id) is not None
    imported = producer.export_value(value)
    if not was_there:
        producer.node.find_child("Exports").node.try_remove_child(id)
    return imported


def _output_id(producer: Stack, value: str) -> str:
    return "Output" + json.dumps(producer.resolve(value), separators=(",", ":"), ensure_ascii=False)
