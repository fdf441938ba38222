"""The names that SageMaker takes."""

from __future__ import annotations

import re

from cdk_triton._tokens import sample_note, with_samples
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker.limits import MAX_NAME_LENGTH, NAME_PATTERN

__all__ = ["check_sagemaker_name"]


def check_sagemaker_name(name: str, what: str) -> None:
    """Reject a name that SageMaker rejects.

    Args:
        name: the name of an endpoint or a variant; may be a token, or contain some.
        what: what messages call it.

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
