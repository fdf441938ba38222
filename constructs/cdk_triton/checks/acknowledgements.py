"""Warnings that a repository's owner knows of, each with the reason why they are right as they are.

They stand in the call that reads the repository, or in `cdk-triton.toml` beside the models, for everybody who reads it:

    [acknowledge]
    CT111 = "the placeholder is written by our build"

Most errors cannot be acknowledged, because an acknowledgement does not make a broken repository work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cdk_triton._arguments import by_name, require_type
from cdk_triton.checks.catalogue import rule_of
from cdk_triton.errors import ConfigurationError, RepositoryError
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.repository_settings import RepositorySettings

__all__ = ["acknowledgements_of"]


_REASONS: Final = by_name(
    lambda value: True, "use a mapping from codes to reasons, such as {'CT111': 'our build writes the placeholder'}"
)


def acknowledgements_of(settings: RepositorySettings, given: Mapping[str, str]) -> Mapping[str, str]:
    """The acknowledged codes, each with its reason, from the repository's file and from the call.

    If both acknowledge a code, the reason of the call counts.

    Raises:
        RepositoryError: an acknowledgement has an unknown code, the code of an error, or no reason.
    """
    require_type("acknowledge", given, _REASONS)
    written = settings.acknowledge
    for where, entries in ((str(settings.file), written), ("the argument acknowledge=", given)):
        for code, reason in entries.items():
            _check(where, code, reason)
    return {**written, **given}


def _check(where: str, code: str, reason: object) -> None:
    try:
        rule = rule_of(code)
    except ConfigurationError as error:
        raise RepositoryError(f"{where} acknowledges {code!r}, but {error}") from error
    if rule.severity is Severity.ERROR and not rule.can_be_acknowledged:
        raise RepositoryError(
            f"{where} acknowledges {code} ({rule.title}), which is an error, but only warnings can be acknowledged; "
            "fix the error and remove the acknowledgement"
        )
    if not isinstance(reason, str) or not reason.strip():
        raise RepositoryError(
            f"{where} acknowledges {code} with {reason!r}, which is not a reason; write in a few words why the "
            f'model is right, in the form {code} = "…"'
        )
