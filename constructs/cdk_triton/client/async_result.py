"""`AsyncResult`: a request to an asynchronous endpoint, whose response is written to S3."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cdk_triton.client import objects
from cdk_triton.client.payload import decode_stored
from cdk_triton.client.runtime import default_client, model_error, server_words
from cdk_triton.errors import ConfigurationError, InvocationError, ResultExpiredError, ResultNotReadyError
from cdk_triton.sagemaker.limits import ASYNC_SECONDS, MAX_QUEUE_SECONDS

if TYPE_CHECKING:
    from cdk_triton.client.payload import InferenceResult

__all__ = ["AsyncResult"]

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0

_MARGIN_SECONDS = 600
"""The service may need so much beyond the queue and the container, for example to upload an answer."""

# The words of SageMaker's ModelError, and of its service for a request that expired.
_FROM_CONTAINER = re.compile(r'Received (?:client|server) error \((\d+)\) from \S+ with message "(.*)"', re.DOTALL)
_EXPIRED = re.compile(r"\brequest\b.*\bexpired\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class AsyncResult:
    """A request that was submitted; `result` waits for its response.

    Another process can create an `AsyncResult` from the same locations, for example from the locations in a
    notification.

    Attributes:
        endpoint_name: the endpoint.
        inference_id: the identifier of the request in SageMaker's logs and notifications.
        output_location: the S3 URI of the response.
        failure_location: the S3 URI of the error message; None if SageMaker returned none.
        submitted: the time when the request was sent, with a time zone; by default the present time.
        queue_seconds: how many seconds the request may wait in the queue.
        invocation_seconds: how many seconds the container may work on the request.
        s3: a boto3 `s3` client; by default a client that boto3's default session creates.

    Raises:
        ConfigurationError: `submitted` is not a time with a time zone, or `queue_seconds` or `invocation_seconds` is
            not a number.
    """

    endpoint_name: str
    inference_id: str
    output_location: str
    failure_location: str | None = None
    submitted: datetime = field(default_factory=lambda: datetime.now(UTC))
    queue_seconds: int = MAX_QUEUE_SECONDS
    invocation_seconds: int = ASYNC_SECONDS
    s3: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Reject a time that cannot be compared.

        Raises:
            ConfigurationError: `submitted` is not a time with a time zone, or `queue_seconds` or `invocation_seconds`
                is not a number.
        """
        if not isinstance(self.submitted, datetime) or self.submitted.tzinfo is None:
            raise ConfigurationError(
                f"submitted of AsyncResult is {self.submitted!r}: give a time with a time zone, such as "
                "datetime.now(UTC)"
            )
        for name in ("queue_seconds", "invocation_seconds"):
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, int | float):
                raise ConfigurationError(f"{name} of AsyncResult is {seconds!r}: give a number of seconds")

    def result(self, timeout: float = 0.0) -> InferenceResult:
        """Return the outputs, as `TritonClient.infer` does.

        Args:
            timeout: how many seconds to wait for the response. With 0, the method looks once and does not wait.

        Raises:
            ResultNotReadyError: there is no response yet; call again.
            ModelError: the container returned an error; the message contains Triton's own message.
            ResultExpiredError: the request expired in the queue, or the response does not exist any more.
            ResultAccessError: the caller has no permission to read the response.
            InvocationError: any other failure of SageMaker or S3, or a response that cannot be read.
            ConfigurationError: `output_location` or `failure_location` is not an S3 URI, or `timeout` is not a number
                of seconds.
        """
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
            raise ConfigurationError(
                f"timeout is {timeout!r}: give a number of seconds, 0 or more; with 0, the call looks for the answer "
                "once"
            )
        s3 = default_client("s3") if self.s3 is None else self.s3
        end, pause = time.monotonic() + timeout, _FIRST_PAUSE
        while True:
            found = self._look(s3)
            if found is not None:
                return found
            left = end - time.monotonic()
            if left <= 0:
                raise ResultNotReadyError(
                    f"{self._where}: there is no answer at {self.output_location} yet; call result() again"
                )
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)

    @property
    def _where(self) -> str:
        return f"endpoint '{self.endpoint_name}', request '{self.inference_id}'"

    def _look(self, s3: Any) -> InferenceResult | None:
        # Only what is missing before the last look at the output can be missing for ever.
        is_over = (datetime.now(UTC) - self.submitted).total_seconds() > (
            self.queue_seconds + self.invocation_seconds + _MARGIN_SECONDS
        )
        output = objects.find(s3, objects.location(self.output_location), where=self._where)
        if output is not None:
            return decode_stored(output.body, output.content_type, where=self._where)
        if self.failure_location is not None:
            failure = objects.find(s3, objects.location(self.failure_location), where=self._where)
            if failure is not None:
                raise _error_of(failure.body.decode(errors="replace"), self._where)
        if is_over:
            raise ResultExpiredError(
                f"{self._where}: S3 does not have an answer or an error message for the request of "
                f"{self.submitted:%Y-%m-%d %H:%M} UTC any more; submit the request again"
            )
        return None


def _error_of(text: str, where: str) -> InvocationError:
    """Return the error that an error message in S3 describes.

    AWS does not document these messages. This function expects the text of SageMaker's ModelError, alone or as JSON
    with the members of that error.
    """
    message, words = text.strip(), None
    status: int | None = None
    try:
        members = json.loads(text)
    except ValueError:
        members = None
    if isinstance(members, dict):
        message = str(members.get("Message") or members.get("message") or members.get("error") or message)
        status, words = _status(members.get("OriginalStatusCode")), members.get("OriginalMessage")
    if (quoted := _FROM_CONTAINER.search(message)) is not None:
        status, words = status or int(quoted[1]), words or quoted[2]
    if status is None and _EXPIRED.search(message):
        return ResultExpiredError(f"{where}: SageMaker dropped the request: {message.rstrip('.')}; submit it again")
    if status is None:
        return InvocationError(
            f"{where}: SageMaker did not process the request: {message}; read more in the log of the endpoint"
        )
    said = server_words(str(words if words is not None else message)).strip().removesuffix(".")
    return model_error(where, status, said)


def _status(value: object) -> int | None:
    """None if the value is not a number, because AWS does not document the members."""
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else None
