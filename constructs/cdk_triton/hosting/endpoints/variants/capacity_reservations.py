"""ML capacity reservations: instances of one endpoint that were paid for in advance.

SageMaker has two kinds. A training plan whose target resource is "endpoint" is bought by CreateTrainingPlan ("Using
training plans for SageMaker inference endpoints" in SageMaker's developer guide). An ML reservation is set up by AWS
Support for an EC2 capacity reservation that is shared with SageMaker (hashicorp/terraform-provider-aws#45926).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.stacks import require_same, stack_of
from cdk_triton.sagemaker.limits import MAX_RESERVATION_ARN_LENGTH, RESERVATION_ARN_PATTERN

__all__ = ["check_reservation", "check_reservations", "reservation_property"]

PREFERENCE: Final = "capacity-reservations-only"
"""The only value of CapacityReservationPreference: no instance starts outside the reservation."""

TRAINING_PLAN: Final = "training-plan"

_OTHER_KINDS: Final = ("endpoint", "endpoint-config", "inference-component", "model")
"""Kinds of ARNs that a user may mistake for a reservation. AWS does not list the kinds of MlReservationArn."""


class _Reservation(NamedTuple):
    region: str
    account: str
    kind: str


def check_reservation(what: str, arn: str) -> None:
    """Reject what is not the ARN of a reservation.

    Raises:
        ConfigurationError: the text is not the ARN of a training plan or of an ML reservation.
    """
    if has_token(arn):
        return
    reservation = _parsed(arn)
    if reservation is None or reservation.kind in _OTHER_KINDS:
        raise ConfigurationError(
            f"{what} is {arn!r}, which is not the ARN of a training plan or of an ML reservation: use one such as "
            "arn:aws:sagemaker:us-east-1:111122223333:training-plan/search, from `aws sagemaker list-training-plans`"
        )


def check_reservations(scope: Construct, path: str, reservations: Mapping[str, str | None]) -> None:
    """Reject reservations that one endpoint cannot combine, or that are in another region or account.

    "You can use exactly one plan per inference endpoint" ("Deploy an inference endpoint using the API, AWS CLI" in
    SageMaker's developer guide); "Training plans cannot be shared across AWS accounts" ("Reserve the best training
    plan"). Endpoint and reservation are in the same region, because CreateEndpointConfig belongs to one region. AWS
    does not document the account of an ML reservation.

    Args:
        scope: the scope of the endpoint.
        path: the endpoint's path.
        reservations: the reservation of each variant, by the variant's name.

    Raises:
        ConfigurationError: the variants have several reservations, or one is certainly in another region or account.
    """
    given = {name: arn for name, arn in reservations.items() if arn is not None}
    if len({arn for arn in given.values() if not has_token(arn)}) > 1:
        raise ConfigurationError(
            f"{path} has different values of capacity_reservation_arn for its variants "
            f"{' and '.join(map(repr, given))}, but SageMaker takes one reservation for an endpoint: give all variants "
            "the same reservation, or move a variant to another endpoint"
        )
    here = stack_of(scope)
    for name, arn in given.items():
        reservation = _parsed(arn)
        if reservation is None:
            continue
        reserved = f"the capacity reservation of variant {name!r}"
        reason = f"instances start in the region of their reservation: use a reservation in {here.region}"
        require_same("region", path, here.region, reserved, reservation.region, reason)
        if reservation.kind == TRAINING_PLAN:
            reason = f"AWS accounts cannot share a training plan: use a plan of {here.account}"
            require_same("account", path, here.account, reserved, reservation.account, reason)


def reservation_property(arn: str | None) -> sagemaker.CfnEndpointConfig.CapacityReservationConfigProperty | None:
    """The reservation of a variant in the form of an endpoint configuration."""
    if arn is None:
        return None
    return sagemaker.CfnEndpointConfig.CapacityReservationConfigProperty(
        capacity_reservation_preference=PREFERENCE, ml_reservation_arn=arn
    )


def _parsed(arn: str) -> _Reservation | None:
    match = re.fullmatch(RESERVATION_ARN_PATTERN, arn)
    return _Reservation(*match.groups()) if match and len(arn) <= MAX_RESERVATION_ARN_LENGTH else None
