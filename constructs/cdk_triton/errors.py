"""Every exception that cdk-triton raises on purpose.

::

    CdkTritonError
    ├── ConfigurationError          a value given to the library cannot be used (also a ValueError)
    ├── RuleError                   the rules of another distribution cannot be loaded
    ├── RepositoryError             a model repository cannot be read
    │   └── ModelConfigError        a config.pbtxt is not a model configuration
    ├── ServeError                  SageMaker's `serve` script would exit with this message
    ├── ArchiveError                an archive cannot be written
    ├── InvocationError             an endpoint did not answer as asked
    │   ├── PayloadTooLargeError    the request is larger than SageMaker accepts
    │   ├── InvocationTimeoutError  no answer in time (also a TimeoutError)
    │   │   └── ResultNotReadyError an asynchronous answer is not there yet: ask for it again
    │   ├── NoCapacityError         the inference component has no copy: the same call may succeed in some minutes
    │   ├── ResultExpiredError      an asynchronous answer never came, or is not there any more
    │   ├── ResultAccessError       the caller may not read an asynchronous answer
    │   ├── ModelNotReadyError      the target model is still being loaded: the same call may succeed in a moment
    │   └── ModelError              the model container answered with an error
    ├── StoreError                  an artifact store in an account cannot be read or changed as asked
    └── LocalError                  the local AWS cannot do what was asked
        └── TemplateError           a template has something that the local CloudFormation does not model

A message is one sentence that names the thing, the value, the reason and the fix. Findings about a model repository
are not exceptions: they are values (`cdk_triton.triton.Finding`), and are all reported at once.
"""

from __future__ import annotations

__all__ = [
    "ArchiveError",
    "CdkTritonError",
    "ConfigurationError",
    "InvocationError",
    "InvocationTimeoutError",
    "LocalError",
    "ModelConfigError",
    "ModelError",
    "ModelNotReadyError",
    "NoCapacityError",
    "PayloadTooLargeError",
    "RepositoryError",
    "ResultAccessError",
    "ResultExpiredError",
    "ResultNotReadyError",
    "RuleError",
    "ServeError",
    "StoreError",
    "TemplateError",
]


class CdkTritonError(Exception):
    """The base class of every error that this library raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle without `__init__`, which Exception would call with the message alone."""
        # Otherwise an error with attributes of its own would break the process pool that it comes out of.
        return _made_without_init, (type(self), self.args), vars(self)


def _made_without_init(kind: type[CdkTritonError], args: tuple[object, ...]) -> CdkTritonError:
    return kind.__new__(kind, *args)


class ConfigurationError(CdkTritonError, ValueError):
    """A value given to the library cannot be used, such as an unknown release or a timeout out of its range."""


class RuleError(CdkTritonError):
    """The rules of another distribution cannot be loaded, because a module of it fails or declares a rule wrongly."""


class RepositoryError(CdkTritonError):
    """A model repository cannot be read: the directory is missing or empty, or has a link to a path outside it."""


class ModelConfigError(RepositoryError):
    """A `config.pbtxt` is not a model configuration.

    Attributes:
        path: the file, as the user would write it.
        line: the line of the fault, counted from 1, or None if the parser does not report it.
        column: the column of the fault, counted from 1, or None if the parser does not report it.
        fix: the end of the message, with the way to fix the fault; "" if only the fault is known.
    """

    def __init__(
        self, message: str, *, path: str, line: int | None = None, column: int | None = None, fix: str = ""
    ) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.column = column
        self.fix = fix


class ServeError(CdkTritonError):
    """SageMaker's `serve` script would not start the server. The message is the script's own."""


class ArchiveError(CdkTritonError):
    """An archive cannot be written, or a file for an archive or a key cannot be read.

    For example, the disk is full, a link leaves the repository, or a file changed after the repository was read.
    """


class InvocationError(CdkTritonError):
    """An endpoint did not respond as expected. This is the base class of the client's errors."""


class PayloadTooLargeError(InvocationError):
    """The request body is larger than SageMaker accepts; it was not sent.

    Attributes:
        size: the size of the request body in bytes.
        limit: the largest body that SageMaker accepts, in bytes.
    """

    def __init__(self, message: str, *, size: int, limit: int) -> None:
        super().__init__(message)
        self.size = size
        self.limit = limit


class InvocationTimeoutError(InvocationError, TimeoutError):
    """The client got no connection or no response in time. The model may have run."""


class NoCapacityError(InvocationError):
    """The inference component has no copy.

    If the component scales to zero, a copy starts within minutes: call again later.
    """


class ResultNotReadyError(InvocationTimeoutError):
    """The response of an asynchronous endpoint does not exist yet. The same call may succeed later."""


class ResultExpiredError(InvocationError):
    """An asynchronous request expired in the queue, or its response does not exist any more."""


class ResultAccessError(InvocationError):
    """The caller has no permission to read the response to an asynchronous request, or to check that it exists."""


class ModelNotReadyError(InvocationError):
    """SageMaker is still downloading or loading the target model. The same call may succeed in a moment."""


class ModelError(InvocationError):
    """The model container returned an error.

    Attributes:
        status: the container's HTTP status (SageMaker's OriginalStatusCode).
        original_message: the server's own message (SageMaker's OriginalMessage).
    """

    def __init__(self, message: str, *, status: int, original_message: str) -> None:
        super().__init__(message)
        self.status = status
        self.original_message = original_message


class StoreError(CdkTritonError):
    """An artifact store in an account cannot be read or changed as requested, or a build of the store has failed."""


class LocalError(CdkTritonError):
    """The local AWS cannot do the requested operation."""


class TemplateError(LocalError):
    """A template uses a feature that the local CloudFormation does not support."""
