"""The corrections that moto 5.2.5 needs; `cdk_triton_local.moto_state` lists each with its reason."""

from __future__ import annotations

import functools
from typing import Any

from cdk_triton_local.moto_state.cloudwatch import correct_cloudwatch
from cdk_triton_local.moto_state.machines import correct_machines
from cdk_triton_local.moto_state.objects import correct_objects
from cdk_triton_local.moto_state.overwriting import correct_overwriting
from cdk_triton_local.moto_state.patching import replace_method
from cdk_triton_local.moto_state.roles import correct_roles
from cdk_triton_local.moto_state.scaling import correct_scaling

__all__ = ["correct_moto"]


def correct_moto() -> None:
    """Correct moto; a second call changes nothing.

    Raises:
        LocalError: moto does not have a method that is corrected.
    """
    from moto.s3.models import FakeBucket
    from moto.sagemaker.models import FakeEndpointConfig, SageMakerModelBackend

    replace_method(FakeBucket, "get_permission", lambda original: _neutral)
    # botocore's list of instance types is the service's own.
    replace_method(FakeEndpointConfig, "validate_instance_type", lambda original: _validate_instance_type)
    replace_method(FakeEndpointConfig, "validate_production_variants", _validate_instances)
    replace_method(SageMakerModelBackend, "validate_production_variants", _validate_models)
    correct_cloudwatch()
    correct_machines()
    correct_objects()
    correct_overwriting()
    correct_roles()
    correct_scaling()


def _neutral(bucket: Any, action: str, resource: str) -> Any:
    from moto.iam.access_control import PermissionResult

    return PermissionResult.NEUTRAL


def _validate_models(original: Any) -> Any:
    def validate_production_variants(backend: Any, production_variants: list[dict[str, Any]]) -> None:
        """CreateEndpointConfig: a variant without a model hosts inference components."""
        original(backend, [variant for variant in production_variants if "ModelName" in variant])

    return validate_production_variants


def _validate_instance_type(config: Any, instance_type: str) -> None:
    from moto.sagemaker.exceptions import ValidationError

    if instance_type not in _instance_types():
        raise ValidationError(
            message=f"1 validation error detected: Value '{instance_type}' at "
            "'productionVariants.1.member.instanceType' failed to satisfy constraint: Member must satisfy enum value "
            "set"
        )


def _validate_instances(original: Any) -> Any:
    def validate_production_variants(config: Any, production_variants: list[dict[str, Any]]) -> None:
        """A variant has an instance type, serverless settings or, which moto does not have, instance pools."""
        original(config, [variant for variant in production_variants if "InstancePools" not in variant])

    return validate_production_variants


@functools.cache
def _instance_types() -> frozenset[str]:
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"))
    return frozenset(model.shape_for("ProductionVariantInstanceType").metadata["enum"])
