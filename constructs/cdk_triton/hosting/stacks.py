"""Where stacks are deployed to, as far as the app says."""

from __future__ import annotations

from weakref import ReferenceType, WeakKeyDictionary, ref

from aws_cdk import Stack
from constructs import IConstruct

from cdk_triton.hosting.literals import has_token

__all__ = ["are_deployed_together", "root_stack", "share_an_environment", "stack_of"]

_STACKS: WeakKeyDictionary[IConstruct, ReferenceType[Stack]] = WeakKeyDictionary()


def stack_of(construct: IConstruct) -> Stack:
    """`Stack.of`, which is a call of jsii, made once for each construct: none ever gets into another stack.

    The stack is not kept alive here: it may hold the construct, as a stack of the user's does, and would never go.
    """
    known = _STACKS.get(construct)
    stack = None if known is None else known()
    if stack is None:
        stack = Stack.of(construct)
        _STACKS[construct] = ref(stack)
    return stack


def root_stack(stack: Stack) -> Stack:
    """The stack that a stack is deployed with: nested ones get what changes as parameters."""
    while (parent := stack.nested_stack_parent) is not None:
        stack = parent
    return stack


def are_deployed_together(one: Stack, other: Stack) -> bool:
    """Whether two stacks are one, or nested in one."""
    return one is other or root_stack(one) is root_stack(other)


def share_an_environment(one: Stack, other: Stack) -> bool:
    """Whether two stacks are certainly deployed to one account and region."""
    if are_deployed_together(one, other):
        return True
    environments = {(stack.account, stack.region) for stack in (one, other)}
    return len(environments) == 1 and not any(map(has_token, *environments))
