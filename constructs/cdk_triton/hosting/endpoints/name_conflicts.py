"""Names that must be unique in an account and region: a second endpoint with such a name fails when it is deployed."""

from __future__ import annotations

from collections.abc import Iterable

from constructs import Construct, IConstruct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import cached_per_construct
from cdk_triton.hosting.naming.stacks import share_an_environment, stack_of
from cdk_triton.hosting.naming.taken_names import is_in_its_tree

__all__ = ["UniqueNames"]


@cached_per_construct
def _taken(app: IConstruct) -> dict[str, list[IConstruct]]:
    """The endpoints of an app by each of their names."""
    return {}


class UniqueNames:
    """The names of an endpoint that must be unique.

    Names of endpoints that differ only in case are the same (CreateEndpoint in the API reference); those of parameters
    are not.

    Args:
        endpoint_name: the endpoint's name; not checked if it is an unresolved token.
        parameters: the names of the endpoint's parameters.
    """

    def __init__(self, endpoint_name: str | None, parameters: Iterable[str]) -> None:
        self._names: dict[str, tuple[str, str]] = {}
        if endpoint_name is not None and not has_token(endpoint_name):
            what = f"the endpoint_name {endpoint_name!r}"
            fix = (
                "names of endpoints are unique in an account and region (case does not matter): give each endpoint a "
                "name of its own"
            )
            self._names[f"endpoint {endpoint_name.lower()}"] = what, fix
        for name in parameters:
            fix = (
                "names in the Parameter Store are unique in an account and region: give each endpoint a path of its own"
            )
            self._names[f"parameter {name}"] = f"the parameter {name!r}", fix

    def check(self, scope: Construct, path: str) -> None:
        """Reject names that another endpoint has, before the endpoint is created.

        Args:
            scope: the scope of the endpoint, which does not exist yet.
            path: the endpoint's path.

        Raises:
            ConfigurationError: an endpoint of the same account and region has one of the names.
        """
        if not self._names:
            return
        here, taken = stack_of(scope), _taken(scope.node.root)
        for key, (what, fix) in self._names.items():
            for other in taken.get(key, ()):
                if share_an_environment(here, stack_of(other)) and is_in_its_tree(other):
                    raise ConfigurationError(f"{path} and {other.node.path} both have {what}, but {fix}")

    def take(self, endpoint: IConstruct) -> None:
        """Record that an endpoint has the names."""
        if not self._names:
            return
        taken = _taken(endpoint.node.root)
        for key in self._names:
            taken.setdefault(key, []).append(endpoint)
