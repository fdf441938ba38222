"""The descriptions of alarms: the fault, and either its section of the user's runbook or the first step."""

from __future__ import annotations

from typing import Final

from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting._cdk.per_construct import path_of

__all__ = ["alarm_description", "check_runbook"]

MAX_DESCRIPTION: Final = 1024
"""Characters in the description of an alarm (AlarmDescription of PutMetricAlarm in the API of CloudWatch)."""

MAX_PATH: Final = 500
"""An alarm's description has the end of a longer path."""


def check_runbook(runbook_url: str | None) -> None:
    """Reject an address to which no section can be added.

    Raises:
        ConfigurationError: the address is empty or has a fragment.
    """
    if runbook_url is not None and (not runbook_url or "#" in runbook_url):
        fault = ", which contains '#'" if runbook_url else ""
        raise ConfigurationError(
            f"runbook_url is {quoted(runbook_url)}{fault}: use the address of a page without '#', because the library "
            "adds '#' and the alarm's name"
        )


def alarm_description(watched: Construct, name: str, meaning: str, first_step: str, runbook_url: str | None) -> str:
    """The text that an alarm sends to the person on call.

    Args:
        watched: the construct that has the fault; the text begins with its path.
        name: the section of the runbook.
        meaning: the fault.
        first_step: the first step, for a reader without a runbook.
        runbook_url: the address of the runbook, or None.

    Raises:
        ConfigurationError: the address of the runbook is too long for a description.
    """
    advice = first_step if runbook_url is None else f"Runbook: {runbook_url}#{name.lower()}"
    description = f"{path_of(watched)[-MAX_PATH:]}: {meaning}. {advice}"
    if len(description) > MAX_DESCRIPTION and not has_token(advice):
        raise ConfigurationError(
            f"runbook_url is {quoted(runbook_url)}, so the description of the alarm {name} has "
            f"{len(description):,} characters, but CloudWatch takes at most {MAX_DESCRIPTION:,}: use a shorter address"
        )
    return description
