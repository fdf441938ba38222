"""Reads the scalable targets that moto keeps, with their policies and scheduled actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cdk_triton_local.moto_state.scaling import COMPONENTS, VARIANTS, scaled_resource
from cdk_triton_local.services.scaling import Policy, Schedule, Target

__all__ = ["scalable_targets"]


def scalable_targets(account: str, region: str) -> Sequence[Target]:
    """The targets whose variants and components exist."""
    from moto.applicationautoscaling.models import applicationautoscaling_backends

    backend = applicationautoscaling_backends[account][region]
    return [
        _target(backend, found, *of_resource)
        for dimension in (VARIANTS[1], COMPONENTS[1])
        for found in list(backend.targets.get(dimension, {}).values())
        if (of_resource := scaled_resource(account, region, found.resource_id)) is not None
    ]


def _target(backend: Any, found: Any, count: int | None, scale: Any) -> Target:
    place = (found.service_namespace, found.resource_id, found.scalable_dimension)

    def limit(least: int | None, most: int | None) -> None:
        backend.register_scalable_target(
            *place, min_capacity=least, max_capacity=most, role_arn=found.role_arn, suspended_state=None
        )

    return Target(
        resource=found.resource_id,
        least=found.min_capacity,
        most=found.max_capacity,
        suspended=found.suspended_state or {},
        policies=list(_policies(backend, place)),
        schedules=list(_schedules(backend, place)),
        is_pending=found.is_pending,
        count=count,
        scale=scale,
        limit=limit,
    )


def _policies(backend: Any, place: tuple[str, str, str]) -> Iterator[Policy]:
    for found in list(backend.policies.values()):
        if (found.service_namespace, found.resource_id, found.scalable_dimension) == place:
            tracking = found.target_tracking_scaling_policy_configuration
            body = tracking or found.step_scaling_policy_configuration
            yield Policy(found.policy_name, found.policy_arn, tracking is not None, body)


def _schedules(backend: Any, place: tuple[str, str, str]) -> Iterator[Schedule]:
    namespace, resource, dimension = place
    for found in backend.describe_scheduled_actions(None, namespace, resource, dimension):
        action = found.scalable_target_action or {}
        yield Schedule(
            found.scheduled_action_name,
            found.schedule,
            found.timezone,
            found.creation_time,
            action.get("MinCapacity"),
            action.get("MaxCapacity"),
        )
