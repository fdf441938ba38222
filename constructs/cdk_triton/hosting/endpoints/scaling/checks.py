"""Rejects contradictory limits and targets of scaling, which the service reports late or never."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

import jsii
from aws_cdk import Annotations, IAspect
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import IConstruct

from cdk_triton._tokens import reject_token
from cdk_triton._wording import quoted
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.literals import allowed_whole, is_number, is_token, is_whole
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = [
    "NothingScales",
    "check_capacities",
    "check_count",
    "check_new_policy",
    "check_number",
    "check_percent",
    "check_scheduled",
]

NOTHING_SCALES_WARNING: Final = "cdk-triton:NothingScales"

_ON_NONE: Final = (
    "; a real-time variant with a model needs at least one instance, only inference components and asynchronous "
    "endpoints scale to zero"
)


def check_capacities(
    what: str,
    initial: int,
    min_capacity: int,
    max_capacity: int,
    *,
    least: int = 1,
    counted: str = "instances",
    begins: str = "an initial_instance_count of {}",
) -> None:
    """Reject limits that a variant or a component cannot have; the minimum may be 0 if `least` is.

    Args:
        what: the name of the variant or component in messages.
        initial: the initial number of instances or copies.
        min_capacity: the minimum.
        max_capacity: the maximum.
        least: the smallest minimum that is allowed.
        counted: the word for the scaled units.
        begins: the words for the initial number.

    Raises:
        ConfigurationError: the limits contradict each other or the initial number, or the maximum is 0.
    """
    _check_capacity(f"min_capacity of {what}", min_capacity, least, counted=counted)
    _check_capacity(f"max_capacity of {what}", max_capacity, why=_ON_NONE if least else "", counted=counted)
    _check_order(what, min_capacity, max_capacity)
    if any(map(is_token, (min_capacity, max_capacity, initial))):
        return
    if not min_capacity <= initial <= max_capacity:
        raise ConfigurationError(
            f"{what} begins with {begins.format(initial)}, but scales between {min_capacity} and {max_capacity}: use "
            f"an initial number from {min_capacity} to {max_capacity}"
        )


def check_scheduled(
    what: str,
    scheduled: tuple[int | None, int | None],
    standing: tuple[int, int],
    *,
    least: int = 1,
    why: str | None = None,
    counted: str = "instances",
) -> None:
    """Reject contradictory limits of a schedule. A limit that the schedule omits is that of the target.

    Application Auto Scaling rejects a minimum above the maximum only at the scheduled time.

    Args:
        what: the name of the schedule in messages.
        scheduled: the minimum and maximum of the schedule.
        standing: the limits of the target.
        least: the fewest instances or copies that the schedule may set.
        why: the reason for `least`, as the end of a sentence. None means that a real-time variant needs an instance.
        counted: the word for the scaled units.

    Raises:
        ConfigurationError: the limits contradict each other, or are below `least`.
    """
    for name, capacity in zip(("min_capacity", "max_capacity"), scheduled, strict=True):
        if capacity is not None:
            _check_capacity(f"{name} of {what}", capacity, least, _ON_NONE if why is None else why, counted)
    low, high = (own if given is None else given for given, own in zip(scheduled, standing, strict=True))
    _check_order(what, low, high)


def check_new_policy(target: autoscaling.ScalableTarget, id: str, what: str) -> None:
    """Reject an id that is empty or a token, and a second policy with the same id.

    Raises:
        ConfigurationError: the id is empty or a token, or the target has it already.
    """
    if not id:
        raise ConfigurationError(f"a policy of {what} has an empty id: give it a name")
    reject_token(id, f"the id of a policy of {what}")
    if target.node.try_find_child(id) is not None:
        raise ConfigurationError(f"{what} has two policies called {id!r}: give each a name of its own")


def check_count(what: str, count: int | None) -> None:
    """Reject a count that is neither None nor a whole number of at least 1.

    Raises:
        ConfigurationError: the count is another value.
    """
    if count is not None and not is_whole(count, 1):
        raise ConfigurationError(f"{what} is {quoted(count)}: use {allowed_whole(count, 1)}")


def check_percent(what: str, number: float) -> None:
    """Reject a number that is not a percentage. A number below 1 is a share, and would keep a variant at its maximum.

    Raises:
        ConfigurationError: the number is not from 1 to 100.
    """
    check_number(what, number, at_most=100)
    if number < 1:
        raise ConfigurationError(
            f"{what} is {number!r}, less than one percent: write {100 * number:g} for {100 * number:g} %"
        )


def check_number(what: str, number: float, *, at_most: float = math.inf) -> None:
    """Reject a value that is not a positive number, or is above `at_most`.

    Raises:
        ConfigurationError: the value is not such a number.
    """
    reject_token(number, what)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ConfigurationError(f"{what} is {number!r}, but cdk-triton computes the target from it: give a number")
    if not (is_number(number) and 0 < number <= at_most):
        allowed = "a positive number" if math.isinf(at_most) else f"a number above 0 and at most {at_most:g}"
        raise ConfigurationError(f"{what} is {quoted(number)}: use {allowed}")


@jsii.implements(IAspect)
class NothingScales:
    """Warns, when the app is complete, about a scalable target that no policy and no schedule uses.

    Equal limits need no policy, because registering the target sets the number (API reference,
    RegisterScalableTarget).

    Args:
        what: the word for the scaled units.
        method: the method that returned the object to which policies are added.
        unpublished: for an asynchronous endpoint, the predefined metrics that SageMaker does not publish.
    """

    def __init__(
        self,
        what: str = "instances",
        method: str = "auto_scale_instance_count",
        unpublished: Collection[str] = (),
    ) -> None:
        self._what = what
        self._method = method
        self._unpublished = unpublished

    def visit(self, node: IConstruct) -> None:
        """Look at one construct."""
        if not isinstance(node, autoscaling.CfnScalableTarget) or node.node.scope is None:
            return
        policies = [c for c in node.node.scope.node.find_all() if isinstance(c, autoscaling.CfnScalingPolicy)]
        if node.min_capacity == 0:
            return  # StaysAtZero reports it
        fixed = node.min_capacity == node.max_capacity
        useless = [metric for metric in map(_predefined_metric, policies) if metric in self._unpublished]
        if not fixed and len(useless) == len(policies) and not stack_of(node).resolve(node.scheduled_actions):
            why = f", because SageMaker does not publish {useless[0]} for asynchronous endpoints" if useless else ""
            Annotations.of(node).add_warning_v2(
                NOTHING_SCALES_WARNING,
                f"no policy and no schedule scales the number of {self._what} within its limits{why}: call a scale_on_ "
                f"method on the object that {self._method} returned, or acknowledge this",
            )


def _predefined_metric(policy: autoscaling.CfnScalingPolicy) -> str:
    """The predefined metric that a policy tracks; "" for another one."""
    tracked = stack_of(policy).resolve(policy.target_tracking_scaling_policy_configuration) or {}
    return str(tracked.get("predefinedMetricSpecification", {}).get("predefinedMetricType", ""))


def _check_capacity(what: str, capacity: int, least: int = 1, why: str = _ON_NONE, counted: str = "instances") -> None:
    if not is_whole(capacity, least):
        reason = why if least == 1 and is_number(capacity) and capacity < 1 else ""
        allowed = allowed_whole(capacity, least, counted)
        raise ConfigurationError(f"{what} is {quoted(capacity)}: use {allowed}{reason}")


def _check_order(what: str, low: int, high: int) -> None:
    if not is_token(low) and not is_token(high) and low > high:
        raise ConfigurationError(
            f"{what} would scale between min_capacity {low} and max_capacity {high}: raise max_capacity or lower "
            "min_capacity"
        )
