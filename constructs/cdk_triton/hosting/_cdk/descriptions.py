"""Descriptions of resources, which name a construct by its path: any characters, of any length."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["group_description", "role_description"]

_NOT_FOR_ROLES: Final = re.compile("[^\\u0009\\u000A\\u000D\\u0020-\\u007E\\u00A1-\\u00FF]")
"""IAM takes Latin-1 without its control characters (`Description` of CreateRole in the API of IAM)."""

_NOT_FOR_GROUPS: Final = re.compile(r"[^a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]")
"""EC2 takes these letters and signs (`GroupDescription` of CreateSecurityGroup in the API of EC2)."""


def role_description(text: str) -> str:
    """The description of a role: up to 1000 characters of Latin-1, others as `_`."""
    return _NOT_FOR_ROLES.sub("_", text)[:1000]


def group_description(text: str) -> str:
    """The description of a security group: up to 255 characters, those that EC2 does not take as `_`."""
    return _NOT_FOR_GROUPS.sub("_", text)[:255]
