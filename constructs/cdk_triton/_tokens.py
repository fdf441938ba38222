"""Recognising CDK tokens without importing `aws_cdk`, and without a call of Node, which `Token.is_unresolved` makes.

A token stands for a value that has no value before the deployment. If a table, a key or a check needs the value itself,
the library must reject a token. The reason is that its text (`${Token[AWS.Region.4]}`) ends in a counter that changes
from one synthesis to the next.
"""

from __future__ import annotations

import re
import struct

from cdk_triton.errors import ConfigurationError

__all__ = ["has_token", "is_number_token", "reject_token", "sample_note", "with_placeholders", "with_samples"]

# How aws-cdk-lib writes a token into a string, and into the only element of a list: core/lib/private/encoding.ts.
_TOKEN = re.compile(r"[$#]\{Token\[[^\]]*\]\}")


def has_token(text: str) -> bool:
    """Whether a text contains a CDK token."""
    return _TOKEN.search(text) is not None


_SHORTEST = {"AWS.Region": "us-east-1", "AWS.AccountId": "111122223333"}
"""Values of two tokens, by their names in the CDK: no region has a shorter name."""

_PLACEHOLDERS = {"AWS.Partition": "<partition>", "AWS.Region": "<region>", "AWS.AccountId": "<account>"}


def with_samples(text: str) -> str:
    """The text with the shortest possible value for each token: one letter if nothing is known of it."""
    return _TOKEN.sub(lambda token: _SHORTEST.get(_name_of(token), "x"), text)


def _name_of(token: re.Match[str]) -> str:
    return token[0][len("${Token[") :].rpartition(".")[0]


def sample_note(text: str) -> str:
    """A note for messages that show a text after `with_samples`."""
    return " (with sample values of unresolved tokens)" if has_token(text) else ""


def with_placeholders(text: str, **values: str) -> str:
    """The text with a value for each token, and a placeholder such as `<region>` for those without one.

    Args:
        text: the text.
        values: the values of `partition`, `region` and `account` that are known.
    """
    known = {f"<{name}>": value for name, value in values.items()}

    def replaced(token: re.Match[str]) -> str:
        placeholder = _PLACEHOLDERS.get(_name_of(token), "<value>")
        return known.get(placeholder, placeholder)

    return _TOKEN.sub(replaced, text)


def is_number_token(value: object) -> bool:
    """Whether a number is a CDK token: a double whose first two bytes are 0xFBFF (core/lib/private/encoding.ts)."""
    return isinstance(value, float) and struct.pack(">d", value)[:2] == b"\xfb\xff"


def reject_token(value: object, label: str) -> None:
    """Reject a token where the value itself is needed, whether it is a text or a number.

    Raises:
        ConfigurationError: the text contains a token, or the number is one.
    """
    if is_number_token(value):
        raise ConfigurationError(
            f"{label} is an unresolved token, which has no number before the deployment, but synth needs the number: "
            "write the number itself"
        )
    text = value if isinstance(value, str) else ""
    if has_token(text):
        raise ConfigurationError(
            f"{label} {text!r} contains a CDK token, but synth needs its value: write the value itself"
        )
