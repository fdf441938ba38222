"""The variables of the container in a rehearsal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.environment import container_variables

if TYPE_CHECKING:
    from cdk_triton.triton import ContainerEnvironment, Mode
    from cdk_triton.triton.rehearsal import Rehearsal

__all__ = ["rehearsed_variables"]


def rehearsed_variables(
    rehearsal: Rehearsal | None, mode: Mode, environment: ContainerEnvironment, entry_model: str | None
) -> dict[str, str]:
    """The variables of the endpoint's container, with those that the rehearsal replaces.

    Args:
        rehearsal: the rehearsal, if the repository has one.
        mode: how an endpoint serves the repository.
        environment: the container's settings.
        entry_model: the name of the repository's entry model; None if the repository leaves it open.

    Raises:
        ConfigurationError: a variable is a token.
    """
    multi = mode == "multi"
    variables = container_variables(environment, multi_model=multi, default_model=None if multi else entry_model)
    variables |= {} if rehearsal is None else rehearsal.environment
    if token := next((name for name, value in variables.items() if has_token(value)), None):
        raise ConfigurationError(
            f"the variable {token} of the container is a token, which has no value in a rehearsal: give the rehearsal "
            f'a value, as Rehearsal([…], environment={{"{token}": "…"}})'
        )
    return dict(sorted(variables.items()))
