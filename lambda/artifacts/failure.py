"""Decides which errors end a request and which lead to another poll, and writes the reason for CloudFormation."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError, IncompleteReadError  # noqa: A004 - botocore's

from protocol.documents import OtherVersionError

__all__ = [
    "BEFOREHAND",
    "LAST_SECONDS",
    "PROPAGATION_SECONDS",
    "ArtifactError",
    "NotYetError",
    "QuotaUsedUpError",
    "error_code",
    "for_publisher",
    "is_forbidden",
    "is_rejection",
    "is_transient",
    "of_other_version",
    "printable",
    "reason_of",
    "retry_or_fail",
    "with_log_group",
    "with_log_tail",
]

PROPAGATION_SECONDS = 180
"""How long AWS may deny a call because a new policy is not in effect yet. IAM is eventually consistent, usually within
seconds, but AWS gives no bound."""

PATIENCE_SECONDS = 50 * 60
"""After this time a request fails with its reason. The waiter and CloudFormation give up after 58 minutes, without a
reason; a custom resource cannot outlive an hour."""

LAST_SECONDS = PATIENCE_SECONDS - 2 * 60
"""A poll that begins after this time counts as the request's last one."""

REASON_LIMIT = 1000
"""Characters of a reason. CloudFormation takes 4096 bytes for the whole answer, and breaks on non-printing characters
(aws-cloudformation/cloudformation-coverage-roadmap#1601)."""

# Services with JSON protocols answer 400 for throttling and missing permissions, S3 answers 503 and 403.
_TRANSIENT_CODES = frozenset(
    {
        "ConditionalRequestConflict",
        "OperationAborted",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeTooSkewed",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_FORBIDDEN_CODES = frozenset({"AccessDenied", "AccessDeniedException"})
_FORBIDDEN_STATUS = 403
_FORBIDDEN_ROLES = ("not authorized to perform: sts:AssumeRole", "Could not assume role")
"""CodeBuild and SageMaker answer InvalidInputException and ValidationException for a role that is not there yet."""

BEFOREHAND = ", or build beforehand with `cdk-triton artifacts build`, which needs no deployment"
"""Advice for a deployment, whose stack has a build plan."""

_TYPOGRAPHY = str.maketrans({"…": "...", "‘": "'", "’": "'", "“": '"', "”": '"'})  # noqa: RUF001 - that is what it is about

_LINK_LIMIT = 400

log = logging.getLogger(__name__)


class ArtifactError(Exception):
    """Ends the request; its text is the reason that the user reads in the stack's events.

    Attributes:
        full: the reason before it was cut.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(printable(reason))
        self.full = reason


class NotYetError(Exception):
    """The next poll continues: the time of this one is up, another deployment was faster, or a build is running.

    Args:
        reason: the event that the request waits for.
        afterwards: the state of the work if no poll follows.
    """

    def __init__(
        self,
        reason: str,
        afterwards: str = "deploy again to continue; the parts that are already copied stay",
    ) -> None:
        super().__init__(reason)
        self.afterwards = afterwards


class QuotaUsedUpError(NotYetError):
    """The service does not start a job now, because others use up the quota; a later poll may start it."""


def of_other_version(what: str, error: OtherVersionError, reader: str, if_older: str) -> ArtifactError:
    """The error for a document of another version, which says what to deploy first.

    Args:
        what: the document.
        error: the error, which knows whether the document or the reader is newer.
        reader: the name of the reader, as in `artifact store`.
        if_older: the fix of a document that an older version wrote.
    """
    fix = f"first deploy the stack of the {reader} with the version of cdk-triton that wrote the document"
    return ArtifactError(f"{what} has {error} of this {reader}; {fix if error.is_newer else if_older}")


def printable(text: str, limit: int = REASON_LIMIT) -> str:
    """The text as CloudFormation can carry it: printable ASCII on one line, at most `limit` characters.

    Typographic quotes and dots become plain ones. Every other character that is not ASCII becomes a question mark.
    """
    plain = text.translate(_TYPOGRAPHY)
    line = " ".join("".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in plain).split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def for_publisher(reason: str) -> str:
    """A reason for callers of a publisher, who publish again instead of deploying.

    The same recorded reason may reach deployments and publishers.
    """
    return reason.replace(BEFOREHAND, "").replace("deploy again", "publish again")


def with_log_group(reason: str) -> str:
    """A reason as the stack's events show it, with the log group of the function that has logged all of it."""
    note = _log_group_note()
    if reason.endswith(note):
        return printable(reason)
    return printable(reason, REASON_LIMIT - len(note)) + note


def _log_group_note() -> str:
    name = os.environ.get("AWS_LAMBDA_LOG_GROUP_NAME")
    return f" [full text in the log group {name}]" if name else ""


def with_log_tail(reason: str, lines: Sequence[str], link: str) -> str:
    """A reason with the end of a log and its address, short enough for `printable`.

    The function's own log has the full text.
    """
    if len(" | ".join((reason, *lines))) > REASON_LIMIT // 2:
        log.error("%s %s\n%s", reason, link, "\n".join(lines))
    reason, log_end = printable(reason), printable(" | ".join(lines))
    address = f" ({link})" if 0 < len(link) <= _LINK_LIMIT else ""
    available = REASON_LIMIT - len(_log_group_note()) - len(address)
    if len(reason) > available:
        reason = f"{reason[: available - 3]}..."
    available -= len(reason) + len(" [log: ...]")
    while len(log_end) > available and " | " in log_end:  # whole lines, as long as there is more than one
        log_end = log_end.partition(" | ")[2]
    if log_end and available > 0:
        reason += f" [log: {log_end if len(log_end) <= available else f'...{log_end[-available:]}'}]"
    return reason + address


def error_code(error: ClientError) -> str:
    """The service's code of an error, as in `AccessDenied`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_rejection(error: Exception) -> bool:
    """Whether the service has certainly rejected the request."""
    return isinstance(error, ClientError) and 400 <= _status(error) < 500


def reason_of(failure: Mapping[str, Any]) -> str:
    """The message of a function that failed: `errorMessage` within the `Cause` of Step Functions."""
    cause = str(failure.get("Cause", ""))
    try:
        return str(json.loads(cause)["errorMessage"])
    except (ValueError, LookupError, TypeError):
        return f"{failure.get('Error')}: {cause}"


def retry_or_fail(error: Exception, *, waited: float) -> None:
    """Return if the next poll may succeed; raise if it cannot, or if the request has taken `PATIENCE_SECONDS`.

    Args:
        error: the error that stopped this poll.
        waited: seconds since the request was accepted.

    Raises:
        ArtifactError: the request has failed.
    """
    reason = _reason(error)
    if not is_transient(error, waited):
        raise _failed(reason) from error
    if waited > PATIENCE_SECONDS:
        afterwards = (error if isinstance(error, NotYetError) else NotYetError("")).afterwards
        minutes = PATIENCE_SECONDS // 60
        raise _failed(f"the request is not finished after {minutes} minutes ({reason}); {afterwards}") from error
    log.info("waiting for the next poll: %s", printable(reason))


def _failed(reason: str) -> ArtifactError:
    log.error("the request fails: %s", reason)
    return ArtifactError(with_log_group(reason))


def _reason(error: Exception) -> str:
    if isinstance(error, ArtifactError):
        return error.full
    if isinstance(error, NotYetError):
        return str(error)
    return " ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def is_transient(error: Exception, waited: float) -> bool:
    """Whether the next poll may succeed after this error; `waited` as in `retry_or_fail`."""
    if not isinstance(error, ClientError):
        # botocore has no common base for the network's faults: a host that cannot be reached is a ConnectionError, an
        # answer that breaks off an HTTPClientError, and one that ends early an IncompleteReadError.
        return isinstance(error, NotYetError | ConnectionError | HTTPClientError | IncompleteReadError)
    if is_forbidden(error) and waited < PROPAGATION_SECONDS:
        return True
    return _status(error) == 429 or _status(error) >= 500 or error_code(error) in _TRANSIENT_CODES


def is_forbidden(error: ClientError) -> bool:
    """Whether the service answered that a permission is missing."""
    return (
        _status(error) == _FORBIDDEN_STATUS
        or error_code(error) in _FORBIDDEN_CODES
        or any(words in str(error) for words in _FORBIDDEN_ROLES)
    )


def _status(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
