"""The `unset` line with which a shell uses AWS again after its local AWS has ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["unset_line"]

_VARIABLES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ENDPOINT_URL",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_EC2_METADATA_DISABLED",
    "CDK_DEFAULT_ACCOUNT",
    "CDK_DEFAULT_REGION",
)
"""The variables that `cdk-triton local up` sets: a test compares them with those of the local AWS."""


def unset_line(variables: Iterable[str] = _VARIABLES) -> str:
    """The line for a shell.

    Args:
        variables: the variables of the local AWS that has ended; by default those of any local AWS. `NO_PROXY` stays,
            because its earlier value is not known, and a further host in it does no harm.
    """
    return " ".join(["unset", *(name for name in variables if name.upper() != "NO_PROXY")])
