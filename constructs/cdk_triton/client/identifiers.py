"""The texts of a request that SageMaker itself reads or passes on: `InferenceId` and `CustomAttributes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["service_texts"]

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
