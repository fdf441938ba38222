"""Changes that SageMaker rejects, because of how the endpoint is configured now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cdk_triton_local.endpoints import Endpoint
from cdk_triton_local.endpoints.instance_pools import instance_types
from cdk_triton_local.endpoints.traffic import moves_stepwise

__all__ = [
    "SageMakerError",
    "reject_no_longer_asynchronous",
    "reject_other_type_of_scaled",
    "reject_steps_to_other_variants",
    "reject_zero_instances",
]


class SageMakerError(Exception):
    """A ValidationException of SageMaker's API."""


def reject_zero_instances(counts: Mapping[str, int | None], before: Mapping[str, Any]) -> None:
    """Only asynchronous endpoints and variants with inference components may have no instance.

    Sources: "Scale an endpoint to zero instances" and "Autoscale an asynchronous endpoint". The text is ours.
    """
    none = [name for name, count in counts.items() if count == 0]
    if none and "AsyncInferenceConfig" not in before and "ModelName" in before["ProductionVariants"][0]:
        raise SageMakerError(
            f"Variant {none[0]} of a real-time endpoint cannot have a DesiredInstanceCount of 0; it needs one instance "
            "at least."
        )


def reject_other_type_of_scaled(types: Mapping[str, str], scaled: Collection[str], before: Mapping[str, Any]) -> None:
    """Reject another instance type for a variant that Application Auto Scaling scales.

    Source: "Update endpoints that use auto scaling" in the developer guide. It does not cover instance pools, so they
    are rejected here too. The text is ours.
    """
    for variant in before["ProductionVariants"]:
        name, old = variant["VariantName"], instance_types(variant)
        new = types.get(name, old)
        if name in scaled and new != old:
            raise SageMakerError(
                f"Variant {name} is registered with Application Auto Scaling, so its instance type cannot change from "
                f"{old} to {new}; deregister it first."
            )


def reject_no_longer_asynchronous(wanted: Endpoint, *, was_asynchronous: bool) -> None:
    """Reject a real-time configuration for an asynchronous endpoint.

    The first sentence is SageMaker's (aws/sagemaker-python-sdk#3124, which has only the beginning of the second).
    Nothing is known about the opposite change, so it is accepted.
    """
    if was_asynchronous and wanted.asynchronous is None:
        raise SageMakerError(
            f"The AsyncInferenceConfig parameter cannot be removed from this endpoint {wanted.name}. To change the "
            "endpoint type, create another endpoint."
        )


def reject_steps_to_other_variants(wanted: Endpoint, deployment: Mapping[str, Any], before: Collection[str]) -> None:
    """Reject canary, linear and rolling updates to a configuration with other variants.

    The same names are needed before and after ("Deployment guardrails" in the developer guide). The text is ours.
    """
    old, new = sorted(before), sorted(each.name for each in wanted.variants)
    if old != new and moves_stepwise(deployment):
        raise SageMakerError(
            f"The update of endpoint {wanted.name} shifts traffic step by step, so its variants cannot change from "
            f"{', '.join(old)} to {', '.join(new)}."
        )
