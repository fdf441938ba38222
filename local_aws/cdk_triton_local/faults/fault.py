"""What a fault consists of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from cdk_triton_local.process import Call

__all__ = ["Callers", "Fault", "Rejection", "ServiceError"]


@dataclass(frozen=True)
class ServiceError:
    """An error response.

    Attributes:
        code: the error code in the API reference of the service.
        status: the HTTP status.
        message: the text.
        is_late: whether the service carries the call out, and only its response is lost.
    """

    code: str
    status: int
    message: str
    is_late: bool = False


class Callers(Enum):
    """Whose calls are rejected. CloudFormation and other services repeat their own calls until a fault has passed."""

    FUNCTIONS = "functions"
    FUNCTIONS_AND_USERS = "functions and users"
    EVERYBODY = "everybody"


def _always(call: Call) -> bool:
    return True


@dataclass(frozen=True)
class Rejection:
    """The calls of some operations that are rejected.

    Attributes:
        service: as boto3 calls it.
        operations: their names; none for all operations of the service.
        errors: the error of the first call, of the second call, and so on; later calls succeed.
        callers: whose calls count.
        is_lasting: whether all further calls get the last error.
        is_of_caller: whether all operations of a caller count as one, instead of each operation separately.
        applies: whether a call counts.
        seconds: how long after a function was invoked first; later calls succeed.
        required: the actions that a role, which the call passes to a service, has to be allowed; a role that has them
            is accepted.
        is_unscoped: whether the role has to be allowed these on every resource, without a condition.
    """

    service: str
    errors: tuple[ServiceError, ...]
    operations: frozenset[str] = frozenset()
    callers: Callers = Callers.FUNCTIONS
    is_lasting: bool = False
    is_of_caller: bool = False
    applies: Callable[[Call], bool] = _always
    seconds: float = math.inf
    required: frozenset[str] = frozenset()
    is_unscoped: bool = False


@dataclass(frozen=True)
class Fault:
    """A documented behaviour of AWS.

    Attributes:
        name: the name for `--faults`.
        note: one sentence that ends with a full stop.
        source: the page that describes it.
        rejections: the calls that are rejected.
        repeats_events: whether Lambda delivers each asynchronous event twice.
        start_seconds: how long jobs and endpoints wait for a machine, by service.
        isolates_functions: whether functions in subnets without a route to the internet need VPC endpoints.
    """

    name: str
    note: str
    source: str
    rejections: tuple[Rejection, ...] = ()
    repeats_events: bool = False
    start_seconds: Mapping[str, float] = field(default_factory=dict)
    isolates_functions: bool = False
