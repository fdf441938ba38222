"""Functions that are inactive, as if nobody had called them for weeks.

"A function becomes inactive when it has been idle long enough for Lambda to reclaim the external resources that were
configured for it. When you try to invoke a function that is inactive, the invocation fails and Lambda sets the function
to pending state until those resources are recreated" ("Lambda function states"). AWS does not document how long that
takes; `cdk_triton.protocol.invocation` names what was measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection

from cdk_triton_local.lambdas.not_run import NotRunError

__all__ = ["InactiveFunctions"]


class InactiveFunctions:
    """The functions that a call has to activate first."""

    def __init__(self) -> None:
        self._pending_seconds: dict[str, float] = {}  # by the function's name
        self._active_at: dict[str, float] = {}  # of those that have been called
        self._lock = threading.Lock()

    def add(self, functions: Collection[str], pending_seconds: float) -> None:
        """Make functions inactive. The first call of each one fails, and so does each one in the next seconds."""
        with self._lock:
            for name in functions:
                self._pending_seconds[name] = pending_seconds
                self._active_at.pop(name, None)

    def activate(self, function: str) -> None:
        """Return if a function is active, or begin to activate it.

        Raises:
            NotRunError: the function is not active yet.
        """
        with self._lock:
            if function not in self._pending_seconds:
                return
            if function not in self._active_at:
                self._active_at[function] = time.monotonic() + self._pending_seconds[function]
                message = (
                    "The function is inactive and its VPC connection is no longer available. Wait for the VPC "
                    "connection to reestablish and try again."
                )
                raise NotRunError("ResourceNotReadyException", 502, message)
            if time.monotonic() < self._active_at[function]:
                message = "Lambda is initializing your function. It will be ready to invoke shortly."
                raise NotRunError("CodeArtifactUserPendingException", 409, message)
            del self._pending_seconds[function], self._active_at[function]
