"""Corrects Application Auto Scaling of moto 5.2.5; a test fails when moto no longer needs a correction.

Source: the API reference of Application Auto Scaling, by operation. Texts of errors are the service's where they are
known from its answers for other services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias

from cdk_triton_local.moto_state.patching import replace_method
from cdk_triton_local.moto_state.roles import make_scaling_role

__all__ = [
    "COMPONENTS",
    "VARIANTS",
    "ChangeInstances",
    "components",
    "correct_scaling",
    "scaled_resource",
    "scaled_variants",
    "use_change",
]

ChangeInstances: TypeAlias = Callable[[Any, Iterable[dict[str, Any]], Mapping[str, int]], None]
"""Gets moto's endpoint, the summaries of its variants, and the numbers of instances by variant."""

VARIANTS = ("sagemaker", "sagemaker:variant:DesiredInstanceCount")
COMPONENTS = ("sagemaker", "sagemaker:inference-component:DesiredCopyCount")


def correct_scaling() -> None:
    """Correct the operations of `_CORRECTIONS`; a second call changes nothing."""
    from moto.applicationautoscaling.models import ApplicationAutoscalingBackend
    from moto.applicationautoscaling.responses import ApplicationAutoScalingResponse

    replace_method(ApplicationAutoScalingResponse, "_validate_params", _validate)
    for name, make in _CORRECTIONS.items():
        replace_method(ApplicationAutoscalingBackend, name, make)


def scaled_variants(account: str, region: str, endpoint: str) -> frozenset[str]:
    """The variants of an endpoint that are registered as scalable targets."""
    from moto.applicationautoscaling.models import applicationautoscaling_backends

    namespace, dimension = VARIANTS
    targets = applicationautoscaling_backends[account][region].describe_scalable_targets(namespace, None, dimension)
    found = (target.resource_id.split("/") for target in targets)
    return frozenset(variant for _, name, _, variant in found if name == endpoint)


def components(account: str, region: str) -> MutableMapping[str, Any]:
    """SageMaker's inference components by name, kept with moto's endpoints: they are forgotten together."""
    from moto.sagemaker.models import sagemaker_backends

    backend = sagemaker_backends[account][region]
    found: MutableMapping[str, Any] = vars(backend).setdefault("inference_components", {})
    return found


def use_change(account: str, region: str, change: ChangeInstances) -> None:
    """Set what changes the instance counts of variants. It is kept with moto's endpoints."""
    from moto.sagemaker.models import sagemaker_backends

    vars(sagemaker_backends[account][region])["change_instances"] = change


def _register(original: Any) -> Any:
    def register_scalable_target(backend: Any, namespace: str, r_id: str, dimension: str, **more: Any) -> Any:
        """RegisterScalableTarget: "changes the resource's current capacity to a value that is inside of this range".

        moto changes none, requires no limits, and checks of ECS services only whether they exist.
        """
        from moto.applicationautoscaling.exceptions import AWSValidationException

        is_new = r_id not in backend.targets.get(dimension, {})
        if is_new and None in (more["min_capacity"], more["max_capacity"]):
            # The sentence of the API reference, because the text of the service is not known.
            raise AWSValidationException(
                "When you register a new scalable target, you must specify values for the minimum and maximum capacity"
            )
        if (namespace, dimension) not in (VARIANTS, COMPONENTS):
            return original(backend, namespace, r_id, dimension, **more)
        found = scaled_resource(backend.account_id, backend.region_name, r_id)
        if found is None:
            kind = "endpoint variant" if (namespace, dimension) == VARIANTS else "inference component"
            raise AWSValidationException(f"SageMaker {kind} doesn't exist: {r_id}")
        # The service uses its own role, whatever role the request names.
        more["role_arn"] = make_scaling_role(backend.account_id, backend.region_name)
        register = original if (namespace, dimension) == VARIANTS else _register_component
        target = register(backend, namespace, r_id, dimension, **more)
        count, scale = found
        target.is_pending = count is None  # "auto scaling is blocked while the update operation is in progress"
        if count is not None and (within := min(max(count, target.min_capacity), target.max_capacity)) != count:
            scale(within)
        return target

    return register_scalable_target


def scaled_resource(account: str, region: str, resource: str) -> tuple[int | None, Callable[[int], None]] | None:
    """The number of instances or copies, None while it cannot change, and a function that sets it."""
    from moto.sagemaker.models import sagemaker_backends

    hosting: Any = sagemaker_backends[account][region]
    kind, name, *rest = resource.split("/")
    if kind == "inference-component":
        state = components(account, region).get(name)
        return None if state is None else (state.copies if state.status == "InService" else None, state.scale)
    endpoint = hosting.endpoints.get(name)
    summary = None if endpoint is None else _summary_of(endpoint, rest[1])
    if summary is None:
        return None
    count = summary.get("CurrentInstanceCount", 0) if endpoint.endpoint_status == "InService" else None
    return count, lambda wanted: hosting.change_instances(endpoint, [summary], {rest[1]: wanted})


def _summary_of(endpoint: Any, variant: str) -> dict[str, Any] | None:
    """The ProductionVariantSummary of a variant or a shadow of moto's endpoint."""
    shadows = getattr(endpoint, "shadow_production_variants", None) or ()
    return next((each for each in (*endpoint.production_variants, *shadows) if each["VariantName"] == variant), None)


def _register_component(backend: Any, namespace: str, r_id: str, dimension: str, **more: Any) -> Any:
    """For the copies of an inference component, a dimension that moto does not have."""
    from moto.applicationautoscaling.models import FakeScalableTarget

    targets = backend.targets.setdefault(dimension, {})
    if r_id in targets:
        targets[r_id].update(more["min_capacity"], more["max_capacity"], more["suspended_state"])
    else:
        targets[r_id] = FakeScalableTarget(backend, namespace, r_id, dimension, **more)
    return targets[r_id]


def _validate(original: Any) -> Any:
    def _validate_params(response: Any) -> None:
        """All operations: moto's list of scalable dimensions lacks that of inference components."""
        if (response._get_param("ServiceNamespace"), response._get_param("ScalableDimension")) != COMPONENTS:
            original(response)

    return _validate_params


def _deregister(original: Any) -> Any:
    def deregister_scalable_target(backend: Any, namespace: str, r_id: str, dimension: str) -> None:
        """DeregisterScalableTarget: "deletes the scaling policies and the scheduled actions"."""
        _require_target(backend, namespace, r_id, dimension)
        original(backend, namespace, r_id, dimension)
        for key, policy in list(backend.policies.items()):
            if (policy.service_namespace, policy.resource_id, policy.scalable_dimension) == (
                namespace,
                r_id,
                dimension,
            ):
                policy.delete_alarms(backend.account_id, backend.region_name)
                del backend.policies[key]
        for action in backend.describe_scheduled_actions(None, namespace, r_id, dimension):
            backend.delete_scheduled_action(namespace, action.scheduled_action_name, r_id, dimension)

    return deregister_scalable_target


def _put_policy(original: Any) -> Any:
    def put_scaling_policy(backend: Any, **policy: Any) -> Any:
        """PutScalingPolicy: not "until you have registered the resource"; an update keeps its ARN."""
        place = (policy["service_namespace"], policy["resource_id"], policy["scalable_dimension"])
        _require_target(backend, *place)
        before = backend.policies.get("\t".join((*place, policy["policy_name"])))
        after = original(backend, **policy)
        if before is not None:
            after.policy_arn = before.policy_arn
        return after

    return put_scaling_policy


def _put_action(original: Any) -> Any:
    def put_scheduled_action(backend: Any, **action: Any) -> None:
        """PutScheduledAction: "You cannot create a scheduled action until you have registered the resource"."""
        from moto.applicationautoscaling.exceptions import AWSValidationException

        if action["start_time"] is not None or action["end_time"] is not None:
            raise AWSValidationException(
                f"the local AWS does not run the scheduled action {action['scheduled_action_name']}, because it has a "
                "StartTime or an EndTime; leave them out"
            )
        _require_target(backend, action["service_namespace"], action["resource_id"], action["scalable_dimension"])
        original(backend, **action)

    return put_scheduled_action


def _delete_policy(original: Any) -> Any:
    def delete_scaling_policy(backend: Any, **policy: Any) -> None:
        """DeleteScalingPolicy: what is not there is an ObjectNotFoundException."""
        place = (policy["service_namespace"], policy["resource_id"], policy["scalable_dimension"])
        if "\t".join((*place, policy["policy_name"])) not in backend.policies:
            raise _not_found(f"No scaling policy found for {_described(*place)}, policy name: {policy['policy_name']}")
        original(backend, **policy)

    return delete_scaling_policy


def _describe_policies(original: Any) -> Any:
    def describe_scaling_policies(backend: Any, **asked: Any) -> Any:
        """DescribeScalingPolicies: moto takes the policies of variant `a` for those of `ab`, too."""
        token, policies = original(backend, **asked)
        wanted = asked["resource_id"]
        return token, [policy for policy in policies if wanted in (None, policy.resource_id)]

    return describe_scaling_policies


_CORRECTIONS: dict[str, Callable[[Any], Any]] = {
    "register_scalable_target": _register,
    "deregister_scalable_target": _deregister,
    "put_scaling_policy": _put_policy,
    "put_scheduled_action": _put_action,
    "delete_scaling_policy": _delete_policy,
    "describe_scaling_policies": _describe_policies,
}


def _require_target(backend: Any, namespace: str, resource: str, dimension: str) -> None:
    if resource not in backend.targets.get(dimension, {}):
        raise _not_found(f"No scalable target registered for {_described(namespace, resource, dimension)}")


def _described(namespace: str, resource: str, dimension: str) -> str:
    return f"service namespace: {namespace}, resource ID: {resource}, scalable dimension: {dimension}"


def _not_found(message: str) -> Exception:
    from moto.core.exceptions import JsonRESTError

    return JsonRESTError("ObjectNotFoundException", message)
