"""Names and descriptions as the services of AWS accept them."""

from __future__ import annotations

import re
from typing import Final

from cdk_triton._tokens import sample_note, with_samples
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker.limits import MAX_NAME_LENGTH, NAME_PATTERN

__all__ = ["check_sagemaker_name", "group_description", "role_description"]

_NOT_FOR_ROLES: Final = re.compile("[^\\u0009\\u000A\\u000D\\u0020-\\u007E\\u00A1-\\u00FF]")
"""IAM takes Latin-1 without its control characters (`Description` of CreateRole in the API of IAM)."""

_NOT_FOR_GROUPS: Final = re.compile(r"[^a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]")
"""EC2 takes these letters and signs (`GroupDescription` of CreateSecurityGroup in the API of EC2)."""


def check_sagemaker_name(name: str, what: str) -> None:
    """Reject a name that SageMaker rejects.

    Args:
        name: the name of an endpoint or a variant, which may contain tokens.
        what: what error messages call the name.

    Raises:
        ConfigurationError: the name is too long or contains a character that SageMaker rejects.
    """
    known = with_samples(name)
    if not re.fullmatch(NAME_PATTERN, known) or len(known) > MAX_NAME_LENGTH:
        shown = quoted(known) + sample_note(name)
        raise ConfigurationError(
            f"{what} is {shown}, which SageMaker rejects as a name: use up to {MAX_NAME_LENGTH} letters and digits, "
            "with '-' only between them"
        )


def role_description(text: str) -> str:
    """The description of a role: up to 1000 characters of Latin-1, with `_` for all others."""
    return _NOT_FOR_ROLES.sub("_", text)[:1000]


def group_description(text: str) -> str:
    """The description of a security group: up to 255 characters, with `_` for those that EC2 rejects."""
    return _NOT_FOR_GROUPS.sub("_", text)[:255]
