"""The builders of an artifact store, with their resources and permissions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import CfnResource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton.artifacts import S3File
from cdk_triton.hosting.access.images import PULL_ACTIONS, container_image
from cdk_triton.hosting.access.permissions import Statement, allow
from cdk_triton.hosting.access.vpc_endpoints import await_network
from cdk_triton.hosting.naming.per_construct import arn_of
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.hosting.store.builds.builders import Builder, BuildService
from cdk_triton.hosting.store.builds.grants import allow_pull, object_arn
from cdk_triton.hosting.store.builds.selection import BUILDER_IDS, BuilderChoice
from cdk_triton.protocol.layout import STAGING_PREFIX
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["StoreBuilders"]


class StoreBuilders:
    """The resources of the store's builders, and their permissions.

    Attributes:
        handler_statements: the permissions that the handler needs to start and watch jobs.
        handler_reasons: the reason for each ARN with a wildcard in `handler_statements`.

    Args:
        store: the store's construct.
        builders: the builders in order of preference. None: CodeBuild, if the store's region is known to have
            CodeBuild's GPUs, and then Processing.
        bucket: the store's bucket.
        handler: the role of the handler that starts and watches jobs.

    Raises:
        ConfigurationError: two builders are of the same kind.
    """

    def __init__(
        self,
        store: Construct,
        builders: Sequence[Builder] | None,
        bucket: s3.IBucket,
        handler: iam.Role,
    ) -> None:
        self._store, self._handler = store, handler
        self._choice = BuilderChoice(store, builders)
        self._services: dict[str, BuildService] = {
            builder._kind: builder._provide(Construct(store, BUILDER_IDS[builder._kind]), bucket)
            for builder in self._choice.builders
        }
        self._granted: set[str] = set()
        made = self._services.values()
        staging, reasons = _staging_by_handler(bucket)
        self.handler_statements = [*(each for service in made for each in service.handler_statements), staging]
        self.handler_reasons = reasons | {arn: why for each in made for arn, why in each.handler_reasons.items()}

    @property
    def settings(self) -> str:
        """The settings of the builders for the handlers, as the JSON text of their variable `BUILDERS`."""
        # Not the CDK's to_json_string, which drops null values. The tokens here are names and ARNs, which need no
        # escaping.
        services = {kind: self._services.get(kind) for kind in BUILDER_IDS}
        return json.dumps({kind: service and dict(service.settings) for kind, service in services.items()})

    @property
    def roles(self) -> Mapping[str, iam.Role]:
        """The role of each builder's jobs, by its kind."""
        return {kind: service.role for kind, service in self._services.items()}

    def start_by(self, function: lambda_.Function) -> None:
        """Create the function that starts jobs only after the permissions of the jobs' roles and the jobs' networks.

        The function's role is created before them, because the policy of the store's key may name the role, and the
        logs of builds need the key.
        """
        function.node.add_dependency(*self.roles.values())
        for kind, service in self._services.items():
            if service.network is not None:
                resource = function.node.default_child
                assert isinstance(resource, CfnResource)  # as CDK makes functions
                await_network(resource, service.network, self._store.node.find_child(BUILDER_IDS[kind]), "builds")

    def builder_for(self, scope: Construct, platform: ServingPlatform, inputs: Iterable[S3File], work: str) -> Builder:
        """Choose the builder for a platform, and grant what its builds need: the image, and the inputs from S3.

        Raises:
            ConfigurationError: no builder of the store has the platform's GPU.
        """
        builder = self._choice.builder_for(scope, platform, work)
        self._allow_pull(scope, platform, self._services[builder._kind].role)
        for file in inputs:
            self._allow_input(file)
        return builder

    def _allow_pull(self, scope: Construct, platform: ServingPlatform, role: iam.Role) -> None:
        image = container_image(self._store, platform)
        if image.repository_arn is None or image.is_in_app:
            # In the model's stack, which depends on the store's. In the store's, the two would depend on each other.
            allow_pull(scope, image, role)
        elif self._is_new(role, image.repository_arn):
            allow(role, Statement(actions=list(PULL_ACTIONS), resources=[image.repository_arn]))

    def _allow_input(self, file: S3File) -> None:
        arn = object_arn(file)
        if self._is_new(self._handler, arn):
            allow(self._handler, Statement(actions=["s3:GetObject"], resources=[arn]))

    def _is_new(self, role: iam.Role, resource: str) -> bool:
        grant = f"{role.node.path} {stack_of(role).resolve(resource)}"
        new = grant not in self._granted
        self._granted.add(grant)
        return new


def _staging_by_handler(bucket: s3.IBucket) -> tuple[Statement, dict[str, str]]:
    """The handler writes the inputs of builds there, reads their outputs, and keeps its locks."""
    objects = f"{arn_of(bucket)}/{STAGING_PREFIX}*"
    actions = ["s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject"]
    reason = "A build gets its id when it starts, so the name of its folder is not known at synth."
    return Statement(actions=actions, resources=[objects]), {objects: reason}
