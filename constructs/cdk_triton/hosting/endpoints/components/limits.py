"""Limits the number of components of an endpoint and of a model, and rejects ids that cannot name a component.

A role can have ten managed policies ("IAM and AWS STS quotas"). An update attaches new policies before it detaches the
old ones, so the role can have only five different policies.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from constructs import Construct, IConstruct

from cdk_triton._tokens import reject_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import cached_per_construct, path_of

if TYPE_CHECKING:
    from cdk_triton.hosting.models.interface import ITritonModel

__all__ = ["check_id", "check_numbers", "count_component"]

MAX_COMPONENTS: Final = 5
"""The role of the configuration has a policy for each component of the endpoint."""

MAX_COMPONENTS_OF_A_MODEL: Final = 4
"""The role of the model has a policy of its own, and one for each component."""

_SEPARATORS: Final = re.compile(r"[/\n]+")


def check_id(id: str, path: str) -> None:
    """Reject an id that is not one level of a construct's path.

    Args:
        id: the id of the new component.
        path: the endpoint's path.

    Raises:
        ConfigurationError: the id is empty or a token, or contains what the CDK replaces by `--`, so that neither
            `monitoring.components` nor a parameter would have the component under its id.
    """
    if not id:
        raise ConfigurationError(f"a component of {path} has an empty id: give the component a name")
    reject_token(id, f"the id of a component of {path}")
    if changed := _SEPARATORS.search(id):
        raise ConfigurationError(
            f"a component of {path} has the id {quoted(id)}, in which the CDK replaces {changed[0]!r} by '--', because "
            f"'/' separates the ids in a path: use an id such as {quoted(_SEPARATORS.sub('-', id))}"
        )


def check_numbers(children: Construct, id: str, what: str, model: ITritonModel) -> None:
    """Reject one component too many, and an id that is taken.

    Args:
        children: the scope of the endpoint's components.
        id: the id of the new component.
        what: the new component, as a sentence names it.
        model: what the component serves.

    Raises:
        ConfigurationError: the endpoint or the model has as many components as a role can have policies for, or the id
        is taken.
    """
    if children.node.try_find_child(id) is not None:
        raise ConfigurationError(f"{what} exists already: give each component an id of its own")
    if len(children.node.children) == MAX_COMPONENTS:
        raise ConfigurationError(
            f"{what} would be number {MAX_COMPONENTS + 1}, but a role takes ten managed policies at most, and an "
            "update can need two for each component, the old one and the new one: add the component to another "
            "TritonComponents"
        )
    owner = model.role.node.scope
    is_own_role = owner is not None and path_of(owner) == model.node.path  # a role of the user gets inline policies
    if is_own_role and len(_components_of(model.role)) == MAX_COMPONENTS_OF_A_MODEL:
        raise ConfigurationError(
            f"{what} would be number {MAX_COMPONENTS_OF_A_MODEL + 1} of the model {model.node.path}, but a role takes "
            "ten managed policies at most, and an update can attach the model's new policies beside the old ones: make "
            "another TritonModel of the same repository"
        )


def count_component(model: ITritonModel, path: str) -> None:
    """Remember that a component serves the model."""
    _components_of(model.role).append(path)


@cached_per_construct
def _components_of(role: IConstruct) -> list[str]:
    """The components whose model has this role, on every endpoint of the app."""
    return []
