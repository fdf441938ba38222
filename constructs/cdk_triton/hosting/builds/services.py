"""The builders of an artifact store: which there are, what they need there, and which of them builds for a platform."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import Annotations, Aws, CfnResource, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton.artifacts import S3File
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.acknowledgements import acknowledge_nist, acknowledge_wildcard
from cdk_triton.hosting.builds.builders import Builder, BuildService
from cdk_triton.hosting.builds.codebuild_gpu_builder import CodeBuildGpuBuilder
from cdk_triton.hosting.builds.processing_builder import SageMakerProcessingBuilder
from cdk_triton.hosting.images import container_image
from cdk_triton.hosting.models.execution_role import PULL_ACTIONS
from cdk_triton.hosting.permissions import allow
from cdk_triton.hosting.store.layout import STAGING_PREFIX
from cdk_triton.hosting.vpc_endpoints import await_network
from cdk_triton.sagemaker import ServingPlatform, codebuild_gpu_regions

__all__ = ["IMAGE_PULL", "BuildServices"]

NAMES = {"codebuild": "CodeBuild", "processing": "Processing"}
"""The construct id of each kind of builder below the store: a contract."""

PULL_WARNING = "cdk-triton:BuildImagePullNotGranted"

IMAGE_PULL = "BuildImagePull"
"""The construct id, below a model, of the policy that lets builds pull an image of the model's own app."""


class BuildServices:
    """What the store's builders made, and what they may do.

    Args:
        store: the store's construct.
        builders: in order of preference; None for CodeBuild, where the store's region is known to have its GPUs, and
            Processing.
        bucket: the store's bucket.
        handler: the role of the handler that starts and watches jobs.

    Raises:
        ConfigurationError: two builders are of one kind.
    """

    def __init__(
        self,
        store: Construct,
        builders: Sequence[Builder] | None,
        bucket: s3.IBucket,
        handler: iam.Role,
    ) -> None:
        self._store, self._handler = store, handler
        region = Stack.of(store).region
        self._region = None if Token.is_unresolved(region) else region
        self._builders = self._defaults() if builders is None else tuple(builders)
        self._services: dict[str, BuildService] = {}
        for builder in self._builders:
            if builder.kind in self._services:
                raise ConfigurationError(
                    f"{store.node.path} has two builders of the kind {type(builder).__name__}: give one of "
                    "each, or put the other into a store of its own"
                )
            scope = Construct(store, NAMES[builder.kind])
            self._services[builder.kind] = builder.provide(scope, bucket, handler)
        self._granted: set[str] = set()
        _allow_staging(handler, bucket)

    @property
    def settings(self) -> str:
        """What the handlers know of the builders, as the JSON text of their variable `BUILDERS`."""
        # Not CDK's to_json_string, which drops what is null. Names and ARNs, tokens here, need no escaping.
        services = {kind: self._services.get(kind) for kind in NAMES}
        return json.dumps({kind: service and dict(service.settings) for kind, service in services.items()})

    @property
    def roles(self) -> Mapping[str, iam.Role]:
        """The role of each builder's jobs, by its kind."""
        return {kind: service.role for kind, service in self._services.items()}

    def start_by(self, function: lambda_.Function) -> None:
        """Make the function that starts jobs after the networks that they run in."""
        resource = function.node.default_child
        for kind, service in self._services.items():
            if service.place is not None and isinstance(resource, CfnResource):
                await_network(resource, service.place, self._store.node.find_child(NAMES[kind]), "builds")

    def builder_for(self, scope: Construct, platform: ServingPlatform, inputs: Iterable[S3File]) -> Builder:
        """Choose the builder for a platform, and allow what its builds need: the image, and the inputs from S3.

        Raises:
            ConfigurationError: no builder can.
        """
        builder = next((b for b in self._builders if b.refusal(platform, self._region) is None), None)
        if builder is None:
            raise ConfigurationError(self._why_none(scope, platform))
        self._allow_pull(scope, platform, self._services[builder.kind].role)
        for file in inputs:
            self._allow_input(file)
        return builder

    def _defaults(self) -> tuple[Builder, ...]:
        # Where CodeBuild has no GPUs, a project for them cannot even be made.
        if self._region in codebuild_gpu_regions():
            return CodeBuildGpuBuilder(), SageMakerProcessingBuilder()
        return (SageMakerProcessingBuilder(),)

    def _why_none(self, scope: Construct, platform: ServingPlatform) -> str:
        refusals = [f"{type(b).__name__}: {b.refusal(platform, self._region)}" for b in self._builders]
        kinds = {builder.kind for builder in self._builders}
        possible = sorted(
            (b for b in (SageMakerProcessingBuilder(), CodeBuildGpuBuilder()) if not b.refusal(platform, self._region)),
            key=lambda builder: builder.kind in kinds,
        )
        if possible:
            mend = f"give the store the builder {type(possible[0]).__name__}()"
        else:
            mend = (
                "no builder of this library has that GPU. Build on a machine that has one, in the same image, put what "
                "the recipes produce into the repository and leave the recipes out, or serve on another GPU"
            )
        return (
            f"{scope.node.path} has recipes to build for {platform.instance_type} with its {platform.gpu}, and the "
            f"artifact store {self._store.node.path} has no builder for it ({'; '.join(refusals) or 'it has none'}): "
            f"{mend}"
        )

    def _allow_pull(self, scope: Construct, platform: ServingPlatform, role: iam.Role) -> None:
        image = container_image(self._store, platform)
        if image.repository_arn is None:
            Annotations.of(scope).add_warning_v2(
                PULL_WARNING,
                f"the image {image.uri} does not name a repository of Amazon ECR, so the role of the builds got no "
                "permission to pull it: call grant_pull on its repository for each of the store's build_roles, then "
                "acknowledge this",
            )
        elif image.is_in_app:
            # By the model's stack, which depends on the store's: the other way round they would depend on each other.
            statement = iam.PolicyStatement(actions=list(PULL_ACTIONS), resources=[image.repository_arn])
            policy = iam.Policy(scope, IMAGE_PULL, statements=[statement], roles=[role])
            acknowledge_nist(
                policy, "IAMNoInlinePolicy", "A role takes ten managed policies, and each such model adds one of these."
            )
        elif self._is_new(role, image.repository_arn):
            allow(role, iam.PolicyStatement(actions=list(PULL_ACTIONS), resources=[image.repository_arn]))

    def _allow_input(self, file: S3File) -> None:
        if set("*?$") & set(file.key):
            raise ConfigurationError(
                f"the key of s3://{file.bucket}/{file.key} has a character that IAM takes for a pattern, and the "
                "handler may read exact objects only: copy the object to a key without '*', '?' and '$'"
            )
        arn = f"arn:{Aws.PARTITION}:s3:::{file.bucket}/{file.key}"
        if self._is_new(self._handler, arn):
            allow(self._handler, iam.PolicyStatement(actions=["s3:GetObject"], resources=[arn]))

    def _is_new(self, role: iam.Role, resource: str) -> bool:
        grant = f"{role.node.path} {Stack.of(role).resolve(resource)}"
        new = grant not in self._granted
        self._granted.add(grant)
        return new


def _allow_staging(role: iam.Role, bucket: s3.IBucket) -> None:
    """The handler puts there what a build reads, takes from there what it wrote, and keeps its locks there."""
    objects = bucket.arn_for_objects(f"{STAGING_PREFIX}*")
    allow(
        role,
        iam.PolicyStatement(
            actions=["s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject"], resources=[objects]
        ),
    )
    acknowledge_wildcard(role, objects, "A build gets its id when it starts, so that its folder is not known before.")
