"""The limits are those of the service model."""

from __future__ import annotations

import boto3
import pytest
from botocore.model import Shape, StructureShape

from cdk_triton.sagemaker import HOST_AMIS, limits
from cdk_triton.triton import environment


def shape(service: str, name: str) -> Shape:
    found: Shape = boto3.client(service, region_name="us-east-1").meta.service_model.shape_for(name)  # type: ignore[call-overload]
    return found


@pytest.mark.parametrize(
    ("value", "service", "name", "key"),
    [
        (limits.MAX_NAME_LENGTH, "sagemaker", "EndpointName", "max"),
        (limits.MAX_NAME_LENGTH, "sagemaker", "VariantName", "max"),
        (limits.NAME_PATTERN, "sagemaker", "EndpointName", "pattern"),
        (limits.NAME_PATTERN, "sagemaker", "VariantName", "pattern"),
        (limits.MIN_TIMEOUT_SECONDS, "sagemaker", "ProductionVariantModelDataDownloadTimeoutInSeconds", "min"),
        (limits.MAX_TIMEOUT_SECONDS, "sagemaker", "ProductionVariantModelDataDownloadTimeoutInSeconds", "max"),
        (
            limits.MIN_TIMEOUT_SECONDS,
            "sagemaker",
            "ProductionVariantContainerStartupHealthCheckTimeoutInSeconds",
            "min",
        ),
        (
            limits.MAX_TIMEOUT_SECONDS,
            "sagemaker",
            "ProductionVariantContainerStartupHealthCheckTimeoutInSeconds",
            "max",
        ),
        (limits.MIN_VOLUME_GB, "sagemaker", "ProductionVariantVolumeSizeInGB", "min"),
        (limits.MAX_VOLUME_GB, "sagemaker", "ProductionVariantVolumeSizeInGB", "max"),
        (limits.MAX_PRODUCTION_VARIANTS, "sagemaker", "ProductionVariantList", "max"),
        (environment.MAX_VARIABLES, "sagemaker", "EnvironmentMap", "max"),
        (environment.MAX_TEXT_BYTES, "sagemaker", "EnvironmentKey", "max"),
        (environment.MAX_TEXT_BYTES, "sagemaker", "EnvironmentValue", "max"),
        (limits.MAX_IMAGE_LENGTH, "sagemaker", "ContainerImage", "max"),
        (limits.MAX_TARGET_MODEL_LENGTH, "sagemaker-runtime", "TargetModelHeader", "max"),
        (limits.MAX_INVOCATION_BYTES, "sagemaker-runtime", "BodyBlob", "max"),
    ],
)
def test_a_limit_is_the_one_of_the_service_model(value: int | str, service: str, name: str, key: str) -> None:
    assert shape(service, name).metadata[key] == value


def test_the_limit_of_an_environment_is_the_one_that_the_service_model_describes() -> None:
    container = shape("sagemaker", "ContainerDefinition")
    assert isinstance(container, StructureShape)
    described = container.members["Environment"].documentation
    assert f"each key and value in the <code>Environment</code> map is {environment.MAX_TEXT_BYTES} bytes" in described
    assert f"all keys and values in the map, combined, is {environment.MAX_BYTES // 1024} KB" in described


def test_the_host_amis_are_the_gpu_ones_of_the_service_model() -> None:
    offered = shape("sagemaker", "ProductionVariantInferenceAmiVersion").metadata["enum"]
    assert {ami.name for ami in HOST_AMIS} == {name for name in offered if "-gpu-" in name}
