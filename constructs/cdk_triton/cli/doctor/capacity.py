"""Checks what a platform needs in an account: its image, instances for the endpoint, a GPU to build on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.quotas import CODEBUILD_GPU, endpoint_usage, processing_usage, quotas, request_of, unlisted
from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import (
    REPOSITORY,
    ServingPlatform,
    accounts,
    codebuild_gpu,
    codebuild_gpu_regions,
    processing_instance,
)

if TYPE_CHECKING:
    from cdk_triton.cli.doctor.account import Account

__all__ = ["build_gpu", "endpoint_instances", "executions", "image"]

LAMBDA_QUOTA: Final = "Concurrent executions"
"""L-B99A9384. "New AWS accounts have reduced concurrency and memory quotas" ("Lambda quotas"): such accounts report 10.
"""

FEW_EXECUTIONS: Final = 10
"""Up to here, the functions of some other app or of a store's many models make each other wait."""

MANIFESTS: Final = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)


def image(account: Account, platform: ServingPlatform) -> Answer:
    """SageMaker's image of the release, in the registry of the region.

    The call is BatchGetImage, by which images are pulled, because the owner of a shared registry often allows others no
    other action.
    """
    name = platform.image_identity
    try:
        uri = platform.image_uri(account.region)
    except ConfigurationError as error:  # the tables know of none there
        found, _, fix = str(error).partition(": ")
        return Answer(subject="image", state=State.ERROR, found=found, fix=fix)
    try:
        answer = account.client("ecr").batch_get_image(
            registryId=accounts(str(platform.release))[account.region],
            repositoryName=REPOSITORY,
            imageIds=[{"imageTag": name.partition(":")[2]}],
            acceptedMediaTypes=list(MANIFESTS),
        )
        missing = not answer["images"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "RepositoryNotFoundException":
            raise
        missing = True
    if missing:
        return Answer(
            subject="image",
            state=State.ERROR,
            found=f"{uri} does not exist",
            fix="use another release or region, or build an image of your own and give the serving platform its digest",
        )
    return Answer(subject="image", state=State.OK, found=uri)


def executions(account: Account) -> Answer:
    """How many Lambda functions can run at once; a store's handlers share them with the region's other functions."""
    subject = "Lambda concurrency"
    quota = quotas(account, "lambda", [LAMBDA_QUOTA]).get(LAMBDA_QUOTA)
    if quota is None:
        return unlisted(subject, LAMBDA_QUOTA, account)
    if quota.value <= FEW_EXECUTIONS:
        return Answer(
            subject=subject,
            state=State.WARNING,
            found=f"all functions of the region share {quota.value} concurrent executions, as in a new account: many "
            "models take longer to deploy, and other functions are throttled meanwhile",
            fix=request_of(quota, account, 1000),
        )
    return Answer(
        subject=subject, state=State.OK, found=f"all functions of the region share {quota.value} concurrent executions"
    )


def endpoint_instances(account: Account, platform: ServingPlatform) -> Answer:
    """How many instances of the type endpoints can have."""
    subject, name = "endpoint quota", endpoint_usage(platform.instance_type)
    quota = quotas(account, "sagemaker", [name]).get(name)
    if quota is None:
        return unlisted(subject, name, account)
    if quota.value == 0:
        return Answer(
            subject=subject,
            state=State.ERROR,
            found=f"no endpoint may have an {platform.instance_type}: the quota '{name}' is 0",
            fix=request_of(quota, account, 2),
        )
    if quota.value == 1:
        # "SageMaker creates a new fleet during the deployment while maintaining the old fleet" (DeploymentConfig).
        return Answer(
            subject=subject,
            state=State.WARNING,
            found=f"the quota '{name}' is 1: enough for the first deployment of one instance, but an update of its "
            "endpoint runs the old and the new instance together for a while",
            fix=request_of(quota, account, 2),
        )
    return Answer(
        subject=subject,
        state=State.OK,
        found=f"all endpoints of the region may have {quota.value} instances of {platform.instance_type}; an "
        "update needs the instances of its endpoint twice",
    )


def build_gpu(account: Account, platform: ServingPlatform) -> Answer:
    """A machine with the GPU to build on, of the service that a store chooses by itself.

    That is CodeBuild where it has that GPU in the region, and SageMaker Processing elsewhere.
    """
    subject, processing = "build quota", processing_instance(platform.instance)
    on_processing = processing and processing_usage(processing.name)
    if platform.gpu == codebuild_gpu() and account.region in codebuild_gpu_regions():
        service, name = "codebuild", CODEBUILD_GPU
        other = "or give the store builders=[SageMakerProcessingBuilder()], which has a quota of its own: "
        other += f"'{on_processing}'"
    elif on_processing:
        service, name, other = "sagemaker", on_processing, ""
    else:
        return Answer(
            subject=subject,
            state=State.WARNING,
            found=f"neither CodeBuild nor SageMaker Processing has the {platform.gpu} of {platform.instance_type}",
            fix="build on a machine of your own and put the results into the repository, or serve on another GPU; a "
            "repository without recipes and golden requests needs neither",
        )
    quota = quotas(account, service, [name]).get(name)
    if quota is None:
        return unlisted(subject, name, account)
    if quota.value == 0:
        fix = f"{request_of(quota, account, 1)}; a repository without recipes and golden requests needs no job"
        return Answer(
            subject=subject,
            state=State.ERROR,
            found=f"nothing can be built on an {platform.gpu}: the quota '{name}' of {_SERVICES[service]} is 0",
            fix=f"{fix}; {other}" if other else fix,
        )
    return Answer(subject=subject, state=State.OK, found=f"the quota '{name}' is {quota.value}")


_SERVICES: Final = {"codebuild": "CodeBuild", "sagemaker": "SageMaker"}
