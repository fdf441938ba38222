"""Names and descriptions as the services of AWS accept them."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from constructs import Construct

from cdk_triton._tokens import sample_note, with_samples
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.stacks import root_stack, stack_of
from cdk_triton.sagemaker.limits import MAX_NAME_LENGTH, NAME_PATTERN

__all__ = ["check_sagemaker_name", "group_description", "role_description", "unique_name"]

_NOT_FOR_ROLES: Final = re.compile("[^\\u0009\\u000A\\u000D\\u0020-\\u007E\\u00A1-\\u00FF]")
"""IAM takes Latin-1 without its control characters (`Description` of CreateRole in the API of IAM)."""

_NOT_FOR_GROUPS: Final = re.compile(r"[^a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]")
"""EC2 takes these letters and signs (`GroupDescription` of CreateSecurityGroup in the API of EC2)."""

_NAME_CHARACTERS: Final = 80
"""The readable part of an inline policy's name: of its 128 ("IAM and AWS STS quotas"), region and hashes need 40."""


def unique_name(scope: Construct, id: str) -> str:
    """A name that no other stack, app or region has: of an inline policy, or the end of a log group's name.

    The inline policies of a role need different names: a second policy with the same name overwrites the first. The
    CDK's name is the logical id, which may be the same in several stacks. So this name consists of the stack's name,
    the path and the region.
    """
    stack = root_stack(stack_of(scope))
    place = "/".join((stack.stack_name, scope.node.path[len(stack.node.path) :], id))
    readable = re.sub(r"[^\w.-]+", "-", place, flags=re.ASCII)[:_NAME_CHARACTERS]
    return f"{readable}-{stack.region}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


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
