"""Sends copies of requests to a shadow variant, whose answers are dropped."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cdk_triton.sagemaker import limits
from cdk_triton_local.endpoints import Invocation
from cdk_triton_local.triton.deadline import Deadline
from cdk_triton_local.triton.gateway import answer
from cdk_triton_local.triton.responses import ErrorResponses, RejectedInvocationError
from cdk_triton_local.triton.variant import RetiredError, RunningVariant

__all__ = ["Shadow"]

_WORKERS = 4
_WAITING = 100  # copies of requests of up to 6 MB each, for a shadow that is slower than its production variant


class Shadow:
    """Sends copies of requests, which do not wait for them.

    Args:
        variant: the variant that answers the copies.
        endpoint: the endpoint's name.
        log: gets a line per copy that was answered, with the status and no content.
    """

    def __init__(self, variant: RunningVariant, endpoint: str, log: Callable[[str], None]) -> None:
        self.variant = variant
        self._who = f"endpoint {endpoint}: shadow {variant.name}"
        self._log = log
        self._places = threading.BoundedSemaphore(_WORKERS + _WAITING)
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix=f"shadow {variant.name}")

    def copy(self, production: RunningVariant, invocation: Invocation, errors: ErrorResponses) -> None:
        """Send a copy of a request for `production`, with a probability that is the ratio of the weights."""
        if random.random() * production.weight >= self.variant.weight:  # noqa: S311 no secret
            return
        if not self._places.acquire(blocking=False):
            self._log(f"{self._who} did not get a copy: {_WAITING} copies are waiting")
            return
        with contextlib.suppress(RuntimeError):  # closed: an update swapped the variants meanwhile
            self._pool.submit(self._answer, invocation, errors).add_done_callback(lambda _: self._places.release())

    def close(self) -> None:
        """Accept no further copies, and drop those that wait."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answer(self, invocation: Invocation, errors: ErrorResponses) -> None:
        since = time.monotonic()
        try:
            status = answer(self.variant, invocation, errors, Deadline(limits.MAX_INVOCATION_SECONDS)).status
        except RejectedInvocationError as rejection:
            status = rejection.response.status
        except RetiredError:
            return
        except Exception as error:  # nothing waits for this answer, so the log is the only place for the error
            self._log(f"{self._who}: {error!r}")
            return
        self._log(f"{self._who} answered a copy with {status} after {1000 * (time.monotonic() - since):.0f} ms")
