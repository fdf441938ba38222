"""The descriptions of alarms: the fault, and either its section of the user's runbook or the first step."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from constructs import Construct

from cdk_triton._tokens import has_token, is_number_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.per_construct import path_of

__all__ = ["MAX_PATH", "Runbook", "alarm_description", "runbook_of"]

CONTEXT_KEY: Final = "cdk-triton:runbookUrl"
"""The context value with the address, for every construct that does not get `runbook_url`."""

_ADDRESS: Final = re.compile(r"(https?://|\$\{Token\[)\S+", re.IGNORECASE)
"""An address, or a text that begins with a token, whose value is not known at synth."""

MAX_DESCRIPTION: Final = 1024
"""Characters in the description of an alarm (AlarmDescription of PutMetricAlarm in the API of CloudWatch)."""

MAX_PATH: Final = 500
"""A longer path is cut at its beginning in an alarm's description."""


class Runbook(NamedTuple):
    """The runbook of a user.

    Attributes:
        url: the address of the page.
        setting: the argument or context value that has the address, as messages name it.
    """

    url: str
    setting: str


def runbook_of(scope: Construct, runbook_url: str | None) -> Runbook | None:
    """The runbook for the alarms of a construct.

    Args:
        scope: the construct, whose context has the address for all constructs.
        runbook_url: the argument, which takes precedence over the context; or None.

    Returns:
        The runbook, or None if neither the argument nor the context has an address.

    Raises:
        ConfigurationError: the value is not text; or it is not the address of a page (`https://…`, `http://…`, or a
            token); or no section can be added to it, because it has a fragment.
    """
    setting = "runbook_url"
    url: object = runbook_url
    if url is None:
        setting = f"the context value {CONTEXT_KEY}"
        url = scope.node.try_get_context(CONTEXT_KEY)
    if url is None:
        return None
    if not isinstance(url, str):
        shown = "a token for a number or a list" if is_number_token(url) or has_token(repr(url)) else repr(url)
        raise ConfigurationError(f"{setting} is {shown}, which is not text: use the address of a page")
    if not url or "#" in url:
        fault = ", which contains '#'" if url else ""
        raise ConfigurationError(
            f"{setting} is {quoted(url)}{fault}: use the address of a page without '#', because the library adds '#' "
            "and the alarm's name"
        )
    if not _ADDRESS.fullmatch(url) or not url.isprintable():
        has_gap = re.search(r"\s", url) is not None or not url.isprintable()
        fault = "contains whitespace or a control character" if has_gap else "is not the address of a page"
        raise ConfigurationError(
            f"{setting} is {quoted(url)}, which {fault}: use an address such as https://wiki.example.com/triton"
        )
    return Runbook(url, setting)


def alarm_description(watched: Construct, name: str, meaning: str, first_step: str, runbook: Runbook | None) -> str:
    """The text that an alarm sends to the person on call.

    Args:
        watched: the construct that has the fault; the text begins with its path.
        name: the section of the runbook.
        meaning: the fault.
        first_step: the first step, for a reader without a runbook.
        runbook: the runbook, or None.

    Raises:
        ConfigurationError: the address of the runbook is too long for a description.
    """
    advice = first_step if runbook is None else f"Runbook: {runbook.url}#{name.lower()}"
    description = f"{path_of(watched)[-MAX_PATH:]}: {meaning}. {advice}"
    if runbook is not None and len(description) > MAX_DESCRIPTION and not has_token(advice):
        raise ConfigurationError(
            f"{runbook.setting} is {quoted(runbook.url)}, so the description of the alarm {name} has "
            f"{len(description):,} characters, but CloudWatch takes at most {MAX_DESCRIPTION:,}: use a shorter address"
        )
    return description
