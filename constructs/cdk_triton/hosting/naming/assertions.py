"""`assert_no_errors`: for tests of an app that uses these constructs."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk.assertions import Annotations, Match

from cdk_triton._checked import checked

__all__ = ["assert_no_errors"]


@checked
def assert_no_errors(stack: Stack) -> None:
    """Fail if a construct of a stack reports an error, for example one that a rule has found in a repository.

    `Template.from_stack` also returns the template of a stack with errors, so a test that checks only templates passes
    although `cdk synth` fails.

    Args:
        stack: a stack of the app, not a stack in a nested stage.

    Raises:
        AssertionError: a construct of the stack reports an error. The message contains a line for each error, which
            begins with the path of the construct.
    """
    found = Annotations.from_stack(stack).find_error("*", Match.any_value())
    if found:
        lines = [f"{each.id}: {' '.join(str(each.entry.data).split())}" for each in found]
        raise AssertionError("\n".join([f"{len(found)} errors in {stack.node.path}:", *lines]))
