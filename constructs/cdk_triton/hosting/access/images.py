"""The container image of a platform, as it appears in a template."""

from __future__ import annotations

import re
from typing import NamedTuple

from aws_cdk import Aws, CfnMapping, Stack
from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import region_of, require_same, stack_of
from cdk_triton.sagemaker import REPOSITORY, ServingPlatform, accounts, image_name, registry_accounts

__all__ = ["PULL_ACTIONS", "ContainerImage", "container_image", "sagemaker_repositories"]

PULL_ACTIONS = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
"""The actions that a pull needs on the image's repository."""

# The registries of "Amazon ECR endpoints and quotas": dkr.ecr, dkr.ecr-fips, and for IPv6 dkr-ecr, dkr-ecr-fips.
# CDK writes account, region and domain as tokens if they have no value before the deployment.
_UNRESOLVED = r"\$\{Token\[[^\]]*\]\}"
_ECR_IMAGE = re.compile(
    rf"(?P<account>\d{{12}}|{_UNRESOLVED})\.dkr[.-]ecr(-fips)?\.(?P<region>[a-z0-9-]+|{_UNRESOLVED})\.[^/]+"
    r"/(?P<repository>[^@:]+)[@:].+"
)


class ContainerImage(NamedTuple):
    """An image, and the repository that its pull needs permission for.

    Attributes:
        uri: the image's name in the container definition.
        repository_arn: the repository of Amazon ECR. None if the name is a single token or names another registry: then
            the user must grant the pull.
        is_in_app: whether a stack of this app creates the repository.
    """

    uri: str
    repository_arn: str | None
    is_in_app: bool = False


def container_image(scope: Construct, platform: ServingPlatform) -> ContainerImage:
    """The image for the region of the scope's stack.

    If that region is unresolved at synth, the template gets a mapping from region to the account that owns SageMaker's
    registry there: one per stack and release, `TritonImages<release>`.

    Raises:
        ConfigurationError: SageMaker has no such image in the stack's region, or the platform's image is certainly in
            another region.
    """
    stack = stack_of(scope)
    if platform.image is not None:
        _require_own_region(scope, platform.image)
        arn = _repository_arn(stack, platform.image)
        return ContainerImage(platform.image, arn, is_in_app=_refers_to_resources(stack.resolve(arn)))
    region = region_of(stack)
    if not has_token(region):
        uri = platform.image_uri(region)
        return ContainerImage(uri, _repository_arn(stack, uri))
    release = platform.release or ""  # a platform without an own image has one
    account = _account_mapping(stack, release).find_in_map(region, "account")
    uri = f"{account}.dkr.ecr.{region}.{Aws.URL_SUFFIX}/{image_name(release)}"
    return ContainerImage(uri, _arn(stack, account, region, REPOSITORY))


def sagemaker_repositories(scope: Construct) -> list[str]:
    """The ARNs of SageMaker's own repositories for the region of the scope's stack, whatever the release.

    If that region is unresolved at synth, the account in the ARNs is `*`, because the mapping of a release has no
    account for a region that does not have the release.
    """
    stack = stack_of(scope)
    region = region_of(stack)
    owners = ["*"] if has_token(region) else registry_accounts(region)
    return [_arn(stack, owner, region, REPOSITORY) for owner in owners]


def _account_mapping(stack: Stack, release: str) -> CfnMapping:
    name = f"TritonImages{release.replace('.', '')}"
    found = stack.node.try_find_child(name)
    if isinstance(found, CfnMapping):
        return found
    return CfnMapping(
        stack, name, mapping={region: {"account": account} for region, account in sorted(accounts(release).items())}
    )


def _require_own_region(scope: Construct, uri: str) -> None:
    """Reject an image that SageMaker does not pull.

    The image in Amazon ECR "must be in the same region as the model or endpoint you are creating" (`Image` of
    ContainerDefinition in SageMaker's API).
    """
    match = _ECR_IMAGE.fullmatch(uri)
    if match:
        image = "the image of its platform" if has_token(uri) else f"the image {uri}"
        here = region_of(scope)
        reason = f"SageMaker pulls from Amazon ECR of its own region only: copy the image to {here} and use the copy"
        require_same("region", path_of(scope), here, image, match["region"], reason)


def _repository_arn(stack: Stack, uri: str) -> str | None:
    match = _ECR_IMAGE.fullmatch(uri)
    return match and _arn(stack, match["account"], match["region"], match["repository"])


def _refers_to_resources(value: object) -> bool:
    """Whether a resolved value refers to a resource of a template; `AWS::AccountId` and its like are not resources."""
    if isinstance(value, list):
        return any(map(_refers_to_resources, value))
    if not isinstance(value, dict):
        return False
    return (
        "Fn::GetAtt" in value
        or not str(value.get("Ref", "AWS::")).startswith("AWS::")
        or any(map(_refers_to_resources, value.values()))
    )


def _arn(stack: Stack, account: str, region: str, repository: str) -> str:
    return stack.format_arn(
        service="ecr", account=account, region=region, resource="repository", resource_name=repository
    )
