"""What a person asks AWS before a deployment: quotas, images, the role that scales."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton.sagemaker import accounts, gpu_instances, image_releases

if TYPE_CHECKING:
    from cdk_triton_local.aws import LocalAws

OWNER = accounts("25.09")["us-east-1"]
ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
SERVICE = "sagemaker.application-autoscaling.amazonaws.com"


def code_of(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    code: str = caught.value.response["Error"]["Code"]
    return code


@pytest.fixture
def quotas(local_aws: LocalAws) -> Any:
    return local_aws.client("service-quotas")


@pytest.mark.parametrize("operation", ["list_service_quotas", "list_aws_default_service_quotas"])
def test_every_instance_type_has_its_quotas_over_several_pages(quotas: Any, operation: str) -> None:
    pages = list(quotas.get_paginator(operation).paginate(ServiceCode="sagemaker", PaginationConfig={"PageSize": 40}))
    assert [len(page["Quotas"]) for page in pages[:-1]] == [40] * (len(pages) - 1)
    names = {quota["QuotaName"]: quota for page in pages for quota in page["Quotas"]}
    endpoints = {f"{each.name} for endpoint usage" for each in gpu_instances().values() if each.hosting}
    assert endpoints == {name for name in names if name.endswith("for endpoint usage")}
    assert "ml.g5.2xlarge for processing job usage" in names
    assert "ml.p4d.24xlarge for processing job usage" not in names  # Processing does not offer it
    assert len({quota["QuotaCode"] for quota in names.values()}) == len(names)
    assert {quota["Value"] for quota in names.values()} == {100.0}


def test_codebuild_has_its_quota_of_gpus(quotas: Any) -> None:
    quota = quotas.get_service_quota(ServiceCode="codebuild", QuotaCode="L-F1FE1B52")["Quota"]
    assert (quota["QuotaName"], quota["Value"]) == (
        "Concurrently running builds for Linux GPU Small environment",
        100.0,
    )


@pytest.mark.parametrize(
    ("operation", "arguments", "code"),
    [
        ("list_service_quotas", {"ServiceCode": "vpc"}, "NoSuchResourceException"),
        ("get_service_quota", {"ServiceCode": "codebuild", "QuotaCode": "L-0"}, "NoSuchResourceException"),
        (
            "list_service_quotas",
            {"ServiceCode": "codebuild", "NextToken": "another"},
            "InvalidPaginationTokenException",
        ),
        ("list_services", {}, "IllegalArgumentException"),
    ],
)
def test_other_quotas_are_rejected(quotas: Any, operation: str, arguments: Mapping[str, Any], code: str) -> None:
    assert code_of(getattr(quotas, operation), **arguments) == code


def batch_get(aws: LocalAws, *tags: str, registry: str = OWNER, repository: str = "sagemaker-tritonserver") -> Any:
    images = [{"imageTag": tag} for tag in tags]
    return aws.client("ecr").batch_get_image(registryId=registry, repositoryName=repository, imageIds=images)


def test_every_release_that_sagemaker_has_is_in_its_registry(local_aws: LocalAws) -> None:
    tags = [f"{release}-py3" for release in image_releases() if accounts(release).get("us-east-1") == OWNER]
    answer = batch_get(local_aws, *tags)
    assert [image["imageId"]["imageTag"] for image in answer["images"]] == tags
    assert len({image["imageId"]["imageDigest"] for image in answer["images"]}) == len(tags)
    assert all(json.loads(image["imageManifest"])["schemaVersion"] == 2 for image in answer["images"])
    assert answer["failures"] == []


def test_a_release_that_sagemaker_has_not_is_missing(local_aws: LocalAws) -> None:
    answer = batch_get(local_aws, "25.05-py3")
    assert answer["images"] == []
    assert [failure["failureCode"] for failure in answer["failures"]] == ["ImageNotFound"]


def test_sagemaker_has_no_other_repository(local_aws: LocalAws) -> None:
    with pytest.raises(ClientError, match=f"'mine' does not exist in the registry with id '{OWNER}'"):
        batch_get(local_aws, "1", repository="mine")


def test_an_own_registry_has_own_images(local_aws: LocalAws) -> None:
    ecr = local_aws.client("ecr")
    ecr.create_repository(repositoryName="mine")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}
    ecr.put_image(repositoryName="mine", imageManifest=json.dumps(manifest), imageTag="1")
    answer = batch_get(local_aws, "1", "2", registry="123456789012", repository="mine")
    assert [image["imageId"]["imageTag"] for image in answer["images"]] == ["1"]
    assert len(answer["failures"]) == 1


def test_the_role_that_scales_is_made_when_the_first_variant_is_registered(local_aws: LocalAws) -> None:
    iam, sagemaker = local_aws.client("iam"), local_aws.client("sagemaker")
    assert code_of(iam.get_role, RoleName=ROLE) == "NoSuchEntity"
    container = {"Image": "triton", "ModelDataUrl": "s3://models/model.tar.gz"}
    role = f"arn:aws:iam::{local_aws.account}:role/r"
    sagemaker.create_model(ModelName="m", ExecutionRoleArn=role, PrimaryContainer=container)
    variant = {"VariantName": "v", "ModelName": "m", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="c")

    for most in (2, 3):  # the second time it is there
        local_aws.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId="endpoint/e/variant/v",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            MinCapacity=1,
            MaxCapacity=most,
        )

    assert iam.get_role(RoleName=ROLE)["Role"]["Path"] == f"/aws-service-role/{SERVICE}/"
    assert code_of(iam.create_service_linked_role, AWSServiceName=SERVICE) == "EntityAlreadyExists"


def test_other_service_linked_roles_are_moto_s(local_aws: LocalAws) -> None:
    role = local_aws.client("iam").create_service_linked_role(AWSServiceName="autoscaling.amazonaws.com")["Role"]
    assert role["RoleName"] == "AWSServiceRoleForAutoScaling"


@pytest.mark.parametrize(
    ("correction", "without_it"),
    [
        (
            "the role that scales has another name",
            f"""
from moto.iam.models import IAMBackend
role = IAMBackend("aws", "123456789012").create_service_linked_role({SERVICE!r}, "", "")
assert role.name != {ROLE!r}
""",
        ),
        (
            "only the quotas of VPCs are known",
            """
from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.models import ServiceQuotasBackend
try:
    ServiceQuotasBackend("us-east-1", "123456789012").list_aws_default_service_quotas("sagemaker")
except NoSuchResource:
    pass
else:
    raise AssertionError
""",
        ),
    ],
    ids=lambda value: value if "\n" not in value else "",
)
def test_moto_still_needs_our_corrections_of_what_is_asked_before(correction: str, without_it: str) -> None:
    """If one of these fails, moto is fixed: remove `moto_state/roles.py` or `services/quotas.py`."""
    subprocess.run([sys.executable, "-c", without_it], check=True)
