"""The texts that tell one request from others: SageMaker's `InferenceId` and `CustomAttributes`, and Triton's `id`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["is_encodable", "request_id_of", "service_texts"]

_LONGEST: Final = {"inference_id": ("InferenceId", 64), "custom_attributes": ("CustomAttributes", 1024)}
"""Option → the argument of the API, and its longest value in characters (API reference of InvokeEndpoint)."""


def service_texts(options: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments of any call of an endpoint for these texts, as far as the options have them.

    Raises:
        ConfigurationError: SageMaker does not accept one. Both are sent in HTTP headers, so they have no line breaks.
    """
    found = {}
    for option, (argument, longest) in _LONGEST.items():
        value = options.get(option)
        if value is None:
            continue
        if (
            not isinstance(value, str)
            or not value.isascii()
            or not value.isprintable()
            or not 0 < len(value) <= longest
        ):
            raise ConfigurationError(
                f"{option} is {quoted(value)}: give a text of 1 to {longest} printable ASCII characters"
            )
        found[argument] = value
    return found


def request_id_of(options: Mapping[str, object]) -> str:
    """Return Triton's identifier of a request; empty if the options have none.

    Raises:
        ConfigurationError: it is not a text that the server accepts.
    """
    value = options.get("request_id")
    if value is None:
        return ""
    if not isinstance(value, str) or not is_encodable(value):
        raise ConfigurationError(f"request_id is {quoted(value)}: give a text that UTF-8 can encode")
    return value


def is_encodable(text: str) -> bool:
    """Whether UTF-8 can carry a text; an argument of a command line whose bytes are not UTF-8 has half characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
