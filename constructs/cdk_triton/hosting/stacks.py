"""Where stacks are deployed to, as far as the app says."""

from __future__ import annotations

from aws_cdk import Stack, Token
from constructs import Node

__all__ = ["root_stack", "share_an_environment"]


def root_stack(node: Node) -> Stack:
    """The stack that a construct is deployed with: nested ones get what changes as parameters."""
    stack = Stack.of(node.scopes[-1])
    while stack.nested_stack_parent is not None:
        stack = stack.nested_stack_parent
    return stack


def share_an_environment(one: Stack, other: Stack) -> bool:
    """Whether two stacks are certainly deployed to one account and region."""
    if root_stack(one.node) is root_stack(other.node):
        return True
    environments = {(stack.account, stack.region) for stack in (one, other)}
    return len(environments) == 1 and not any(map(Token.is_unresolved, *environments))
