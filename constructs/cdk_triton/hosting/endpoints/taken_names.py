"""Names that an account has once in a region: the second endpoint of such a name fails when it is deployed."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from aws_cdk import Stack, Token
from constructs import Construct, IConstruct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.stacks import share_an_environment

__all__ = ["take_names"]

Owners = dict[str, list[tuple[str, Stack]]]
"""Of a name: the constructs that have it, by path and stack."""

_TAKEN: WeakKeyDictionary[IConstruct, Owners] = WeakKeyDictionary()
"""Of each app."""


def take_names(scope: Construct, path: str, endpoint_name: str | None, parameters: Iterable[str]) -> None:
    """Note which names an endpoint has, and refuse those of another endpoint.

    The case of an endpoint's name tells none apart (CreateEndpoint in the API reference), that of a parameter's does.

    Args:
        scope: where the endpoint will be.
        path: its path.
        endpoint_name: its own name; not looked at where only the deployment knows it.
        parameters: the names of its parameters.

    Raises:
        ConfigurationError: an endpoint of the same account and region has one of the names.
    """
    if endpoint_name is not None and not Token.is_unresolved(endpoint_name):
        what = f"the endpoint_name {endpoint_name!r}"
        mend = "SageMaker has a name once in an account and region, whatever its case: give each endpoint its own"
        _take(scope, path, f"endpoint {endpoint_name.lower()}", what, mend)
    for name in parameters:
        mend = "the Parameter Store has a name once in an account and region: give each endpoint a path of its own"
        _take(scope, path, f"parameter {name}", f"the parameter {name!r}", mend)


def _take(scope: Construct, path: str, key: str, what: str, mend: str) -> None:
    here = Stack.of(scope)
    owners = _TAKEN.setdefault(scope.node.root, {}).setdefault(key, [])
    for other, there in owners:
        if other != path and share_an_environment(here, there):
            raise ConfigurationError(f"{path} and {other} both have {what}, and {mend}")
    owners.append((path, here))
