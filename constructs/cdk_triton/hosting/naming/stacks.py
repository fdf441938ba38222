"""The accounts and regions of stacks, as far as the app knows them."""

from __future__ import annotations

from typing import Literal

from aws_cdk import IResource, Stack
from aws_cdk.region_info import RegionInfo
from constructs import IConstruct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import cached_per_construct, path_of

__all__ = [
    "are_deployed_together",
    "is_of_another_account",
    "literal_environment",
    "region_of",
    "require_own_region",
    "require_same",
    "root_stack",
    "share_a_partition",
    "share_an_account",
    "share_an_environment",
    "stack_of",
]


@cached_per_construct
def stack_of(construct: IConstruct) -> Stack:
    """A cached `Stack.of`, as no construct ever moves to another stack.

    Raises:
        ConfigurationError: the construct is in no stack, but in an app or stage.
    """
    try:
        stack = Stack.of(construct)
    except RuntimeError as error:  # jsii's, of anything that the CDK rejects
        if "no Stack found" not in str(error):
            raise
        raise ConfigurationError(
            f"{path_of(construct) or 'the app'} is not in a stack: create it in one, such as cdk.Stack(app, 'Search')"
        ) from None  # jsii's words and traceback would hide the sentence
    return _same_object(stack)


@cached_per_construct
def _same_object(stack: Stack) -> Stack:
    """The first Python object of a stack, because jsii returns a new one each time for a stack that Node made."""
    return stack


def region_of(construct: IConstruct) -> str:
    """The region of a construct's stack; may be a token."""
    return _region(stack_of(construct))


@cached_per_construct
def _region(stack: Stack) -> str:
    return stack.region


@cached_per_construct
def literal_environment(stack: Stack) -> tuple[str | None, str | None]:
    """The account and the region of a stack, each None if it is known only at deployment."""
    account, region = stack.account, region_of(stack)
    return None if has_token(account) else account, None if has_token(region) else region


def root_stack(stack: Stack) -> Stack:
    """The stack that a nested stack is deployed with, or the stack itself."""
    while (parent := stack.nested_stack_parent) is not None:
        stack = stack_of(parent)
    return stack


def are_deployed_together(one: Stack, other: Stack) -> bool:
    """Whether two stacks are the same, or nested in the same stack."""
    return one is other or root_stack(one) is root_stack(other)


def share_a_partition(one: Stack, other: Stack) -> bool:
    """Whether two stacks are certainly deployed to the same partition, such as that of the regions of China.

    `Stack.partition` is the same token for every stack, unless a flag of the CDK is set.
    """
    return are_deployed_together(one, other) or (_partition(one) == _partition(other) is not None)


def _partition(stack: Stack) -> str | None:
    region = region_of(stack)
    return None if has_token(region) else RegionInfo.get(region).partition


def share_an_account(one: Stack, other: Stack) -> bool:
    """Whether two stacks are certainly deployed to the same account."""
    return are_deployed_together(one, other) or (one.account == other.account and not has_token(one.account))


def share_an_environment(one: Stack, other: Stack) -> bool:
    """Whether two stacks are certainly deployed to the same account and region."""
    if are_deployed_together(one, other):
        return True
    environments = {(stack.account, stack.region) for stack in (one, other)}
    return len(environments) == 1 and not any(map(has_token, *environments))


def require_same(
    kind: Literal["account", "region"], path: str, here: str, other_path: str, there: str, reason: str
) -> None:
    """Reject a resource whose account or region certainly differs from that of its user.

    Args:
        kind: `account` or `region`.
        path: the path of the user.
        here: the account or region of the user; may be a token.
        other_path: the path of the resource.
        there: the resource's account or region; may be a token.
        reason: the reason for the rejection, a colon and a fix, as the end of a sentence.

    Raises:
        ConfigurationError: the two differ.
    """
    if here != there and not has_token(here) and not has_token(there):
        raise ConfigurationError(f"{path} is in the {kind} {here}, but {other_path} is in {there}, and {reason}")


def is_of_another_account(used: IResource, account: str) -> bool:
    """Whether a resource certainly belongs to an account other than the given one, which may be a token."""
    there = used.env.account
    return there != account and not has_token(there) and not has_token(account)


def require_own_region(scope: IConstruct, used: IResource, reason: str) -> None:
    """Reject a resource whose region certainly differs from that of the construct that uses it.

    Raises:
        ConfigurationError: the two regions differ.
    """
    require_same("region", path_of(scope), region_of(scope), path_of(used), used.env.region, reason)
