"""Calls of functions that Lambda rejects for now, although nothing is wrong with the function."""

from __future__ import annotations

from cdk_triton.errors import LocalError

__all__ = ["NotRunError"]


class NotRunError(LocalError):
    """Lambda does not run a function now. A later call may succeed.

    Attributes:
        code: the error of `Invoke`.
        status: the HTTP status of the error.
    """

    def __init__(self, code: str, status: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
