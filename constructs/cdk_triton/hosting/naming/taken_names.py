"""Names that only one construct of an app can have. A second one fails during the deployment."""

from __future__ import annotations

from collections.abc import Callable

from aws_cdk import Stack
from constructs import IConstruct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import cached_per_construct, path_of
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["is_in_its_tree", "take_name"]


@cached_per_construct
def _taken(app: IConstruct) -> dict[tuple[str, str], list[IConstruct]]:
    """The constructs of an app by argument and name."""
    return {}


def take_name(owner: IConstruct, argument: str, name: str, shared: Callable[[Stack, Stack], bool], fix: str) -> None:
    """Record that a construct has a name, unless another one has it.

    Args:
        owner: the construct.
        argument: the argument that sets the name.
        name: the name; not compared if it contains an unresolved token.
        shared: whether names in two stacks are certainly in one namespace.
        fix: why the name must be unique, a colon and what to do, as the end of a sentence.

    Raises:
        ConfigurationError: another construct in the same namespace has the name.
    """
    if has_token(name):
        return
    owners = _taken(owner.node.root).setdefault((argument, name), [])
    for other in owners:
        if is_in_its_tree(other) and shared(stack_of(owner), stack_of(other)):
            raise ConfigurationError(
                f"{path_of(owner)} and {path_of(other)} both have the {argument} {name!r}, but {fix}"
            )
    owners.append(owner)


def is_in_its_tree(construct: IConstruct) -> bool:
    """Whether the construct is still in the tree: neither it nor a parent was removed from its scope."""
    scope = construct.node.scope
    return scope is None or (scope.node.try_find_child(construct.node.id) is construct and is_in_its_tree(scope))
