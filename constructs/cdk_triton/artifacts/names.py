"""Which names may be part of the store's object keys."""

from __future__ import annotations

from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol.layout import MAX_NAME_LENGTH, NAME, SOURCE_DIGITS
from cdk_triton.sagemaker.limits import MAX_TARGET_MODEL_LENGTH

__all__ = ["check_name"]

assert MAX_NAME_LENGTH + SOURCE_DIGITS + len("-.tar.gz") <= MAX_TARGET_MODEL_LENGTH


def check_name(name: str, label: str) -> str:
    """The name, if it can be part of an object key and of a `TargetModel`.

    Raises:
        ConfigurationError: the name is too long, or contains a character that these cannot contain.
    """
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            f"{label} {quoted(name)} cannot name an object of the artifact store: use up to {MAX_NAME_LENGTH} "
            "letters, digits, '.', '_' and '-', with a letter or digit first"
        )
    return name
