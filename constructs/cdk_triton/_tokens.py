"""Recognising CDK tokens without importing `aws_cdk`, and without asking Node, as `Token.is_unresolved` does.

A token stands for a value that only the deployment knows. Where a table, a key or a check needs the value itself, a
token must be refused: its text (`${Token[AWS.Region.4]}`) ends in a counter that changes from one synthesis to the
next.
"""

from __future__ import annotations

import re

from cdk_triton.errors import ConfigurationError

__all__ = ["has_token", "refuse_token"]

# How aws-cdk-lib writes a token into a string, and into the only element of a list: core/lib/private/encoding.ts.
_TOKEN = re.compile(r"[$#]\{Token\[[^\]]*\]\}")


def has_token(text: str) -> bool:
    """Whether a text contains a CDK token."""
    return _TOKEN.search(text) is not None


def refuse_token(text: str, label: str) -> None:
    """Refuse a token where the value itself is needed.

    Raises:
        ConfigurationError: the text contains a token.
    """
    if has_token(text):
        raise ConfigurationError(
            f"{label} {text!r} contains a CDK token, whose value only the deployment knows, but it is needed while the "
            "app runs: write it out"
        )
