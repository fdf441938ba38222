"""What ends a request, what is worth another poll, and how either is said to CloudFormation."""

from __future__ import annotations

import logging
import os

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError, IncompleteReadError  # noqa: A004 - botocore's

__all__ = ["ArtifactError", "NotYetError", "judge", "printable"]

PROPAGATION_SECONDS = 180
"""How long a refusal may be the echo of a policy that was made a moment ago. IAM is eventually consistent, as a rule
within seconds; AWS gives no bound."""

PATIENCE_SECONDS = 50 * 60
"""When a request is given up. A custom resource cannot outlive an hour, and the provider framework, which stops at 55
minutes, says only "Operation timed out"."""

REASON_LIMIT = 1000
"""Characters of a reason. CloudFormation takes 4096 bytes for the whole answer, and breaks on non-printing characters
(aws-cloudformation/cloudformation-coverage-roadmap#1601)."""

_TRANSIENT_CODES = frozenset(
    {
        "ConditionalRequestConflict",
        "OperationAborted",
        "RequestTimeout",
        "RequestTimeTooSkewed",
        "SlowDown",
        "Throttling",
    }
)
_REFUSED_STATUS = 403

log = logging.getLogger(__name__)


class ArtifactError(Exception):
    """Ends the request; its text is the reason that the user reads in the stack's events."""

    def __init__(self, reason: str) -> None:
        super().__init__(printable(reason))


class NotYetError(Exception):
    """The next poll takes it up again: the time of this one is up, or another deployment was faster."""


def printable(text: str) -> str:
    """The text as CloudFormation can carry it: printable ASCII on one line, at most `REASON_LIMIT` characters."""
    line = " ".join("".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in text).split())
    return line if len(line) <= REASON_LIMIT else f"{line[: REASON_LIMIT - 3]}..."


def judge(error: Exception, *, waited: float) -> None:
    """Return where the next poll may succeed; raise where it will not, or where the patience is at its end.

    Args:
        error: what stopped this poll.
        waited: seconds since the request was accepted.

    Raises:
        ArtifactError: the request has failed.
    """
    reason = _reason(error)
    if not _is_transient(error, waited):
        raise ArtifactError(reason + _log_group()) from error
    if waited > PATIENCE_SECONDS:
        raise ArtifactError(
            f"not finished after {PATIENCE_SECONDS // 60} minutes ({reason}); what is copied stays, and the next "
            f"deployment of this stack goes on from there{_log_group()}"
        ) from error
    log.info("waiting for the next poll: %s", printable(reason))


def _log_group() -> str:
    # The provider framework adds a name that holds only for functions without a log group of their own.
    name = os.environ.get("AWS_LAMBDA_LOG_GROUP_NAME")
    return f" [log group {name}]" if name else ""


def _reason(error: Exception) -> str:
    if isinstance(error, ArtifactError | NotYetError):
        return str(error)
    return " ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def _is_transient(error: Exception, waited: float) -> bool:
    if not isinstance(error, ClientError):
        # botocore has no common base for the network's faults: a host that cannot be reached is a ConnectionError, an
        # answer that breaks off an HTTPClientError, and one that ends early an IncompleteReadError.
        return isinstance(error, NotYetError | ConnectionError | HTTPClientError | IncompleteReadError)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status == _REFUSED_STATUS and waited < PROPAGATION_SECONDS:
        return True
    return status == 429 or status >= 500 or error.response.get("Error", {}).get("Code") in _TRANSIENT_CODES
