"""`TritonArtifactStore`: the bucket that keeps archives, and the handlers and builders that bring them there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from aws_cdk import Annotations, Aws, Duration, IgnoreMode, RemovalPolicy, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import custom_resources as cr
from constructs import Construct, IConstruct

from cdk_triton.artifacts import S3File
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.acknowledgements import acknowledge, acknowledge_wildcard
from cdk_triton.hosting.assets import ASSET_PREFIX
from cdk_triton.hosting.build_services import BuildServices
from cdk_triton.hosting.builders import Builder
from cdk_triton.hosting.layout import STAGING_PREFIX
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["ITritonArtifactStore", "TritonArtifactStore", "store_of"]

QUERY_INTERVAL = Duration.seconds(30)
TOTAL_TIMEOUT = Duration.minutes(55)
"""A custom resource cannot outlive an hour, although the Provider accepts more (aws/aws-cdk#24974)."""

SLICE = Duration.minutes(5)
"""How long the handler copies in one poll. The framework's own function, which waits for it, is given 15 minutes."""

DEFAULT_STORE_ID = "TritonArtifacts"
IN_STACK_WARNING = "cdk-triton:ArtifactStoreInStack"


class ITritonArtifactStore(Protocol):
    """What models and fleets need of a store."""

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket, laid out as `cdk_triton.hosting.layout` says."""

    @property
    def service_token(self) -> str:
        """The provider of `Custom::TritonArtifacts`."""

    def require_assets_of(self, scope: Construct, bucket_name: str) -> None:
        """Refuse a stack whose assets the handler cannot read.

        Raises:
            ConfigurationError: they go to another bucket.
        """

    def builder_for(self, scope: Construct, platform: ServingPlatform, inputs: Iterable[S3File]) -> Builder:
        """Choose what builds for a platform, and allow it the image and the handler the inputs.

        Raises:
            ConfigurationError: no builder of the store has the platform's GPU.
        """


class TritonArtifactStore(Construct):
    """Keeps archives for every stack of an account and region; outlives the stacks that use it.

    Give it a stack of its own. Within the stack of a model, a first deployment that fails removes the handler and
    orphans the retained bucket, and the next one starts from nothing.

    The bucket is retained, versioned, encrypted by S3, closed to the public, and answers TLS only. Archives and their
    manifests are written once and never changed; nothing here deletes them, because a rollback needs the old ones.
    Uploads that were begun and never completed expire after a day, versions that somebody replaced or deleted after 30,
    what builds read and write after 7.

    Repositories with recipes are built by one of the builders, the first that has the GPU of the model's platform. By
    default they are `CodeBuildGpuBuilder`, where the region of the store's stack is known and has CodeBuild's GPU, and
    `SageMakerProcessingBuilder`. A builder that you name is taken at your word where the region is not known.

    The handler may read every object whose name begins with `triton-` in the bucket of the CDK's bootstrap, rather than
    the exact archives: about a hundred exact names overflow the 10 KB that AWS allows a role's policies, and they would
    change the role in the very deployment that needs it, before IAM has spread the change.

    Attributes:
        bucket: the bucket.
        service_token: the provider of `Custom::TritonArtifacts`.
        handler_role: reads what builds need from S3: where a bucket in another account or an encryption key of your own
            has to allow that, allow it to this role.
        build_roles: of the builders' jobs, by the builder's kind, for what no image name tells: who may pull it.

    Args:
        scope: a stack of its own, where possible.
        id: the construct's id.
        builders: what runs builds, in order of preference, at most one of each kind.

    Raises:
        ConfigurationError: the stack's synthesizer does not say where assets go, or two builders are of one kind.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,  # noqa: A002 - CDK's name
        *,
        builders: Sequence[Builder] | None = None,
    ) -> None:
        super().__init__(scope, id)
        self.bucket: s3.IBucket = _bucket(self)
        log_group = logs.LogGroup(
            self, "Logs", retention=logs.RetentionDays.THREE_MONTHS, removal_policy=RemovalPolicy.DESTROY
        )
        code = lambda_.Code.from_asset(_handlers(), exclude=["__pycache__", "*.pyc"], ignore_mode=IgnoreMode.GIT)
        self._asset_bucket, directory = _place_of_assets(self, code)
        self.handler_role = _lambda_role(self, "IsCompleteRole", log_group)
        role = _lambda_role(self, "OnEventRole", log_group)
        on_event = self._handler("OnEvent", "artifacts.on_event", code, Duration.seconds(30), log_group, role)
        is_complete = self._handler("IsComplete", "artifacts.is_complete", code, SLICE, log_group, self.handler_role)
        self._allow_copies(is_complete, f"{directory}{ASSET_PREFIX}")
        self._builds = BuildServices(self, builders, self.bucket, self.handler_role)
        self.build_roles = self._builds.roles
        for function in (on_event, is_complete):
            function.add_environment("BUILDERS", self._builds.settings)
        provider = cr.Provider(
            self,
            "Provider",
            on_event_handler=on_event,
            is_complete_handler=is_complete,
            query_interval=QUERY_INTERVAL,
            total_timeout=TOTAL_TIMEOUT,
            log_group=log_group,
            framework_on_event_role=_lambda_role(self, "ProviderOnEventRole", log_group),
            framework_complete_and_timeout_role=_lambda_role(self, "ProviderIsCompleteRole", log_group),
        )
        self.service_token = provider.service_token
        _acknowledge_what_cdk_forces(provider, [on_event, is_complete])

    def require_assets_of(self, scope: Construct, bucket_name: str) -> None:
        """Refuse a stack that publishes its assets to another bucket than the store's own stack does.

        One bucket, because copies of one archive in two places may differ in their bytes, and an interrupted copy is
        resumed part by part.

        Raises:
            ConfigurationError: the buckets differ.
        """
        theirs, ours = (json.dumps(Stack.of(self).resolve(name)) for name in (bucket_name, self._asset_bucket))
        if theirs != ours:
            raise ConfigurationError(
                f"{Stack.of(scope).node.path} publishes its assets to {theirs}, but the artifact store "
                f"{self.node.path} reads {ours}: deploy both to one account and region with one bootstrap qualifier, "
                "or give the stack a store of its own"
            )

    def builder_for(self, scope: Construct, platform: ServingPlatform, inputs: Iterable[S3File]) -> Builder:
        """Choose what builds for a platform, and allow it the image and the handler the inputs.

        Raises:
            ConfigurationError: no builder of the store has the platform's GPU.
        """
        return self._builds.builder_for(scope, platform, inputs)

    def _handler(
        self,
        id: str,  # noqa: A002
        handler: str,
        code: lambda_.Code,
        timeout: Duration,
        log_group: logs.ILogGroup,
        role: iam.IRole,
    ) -> lambda_.Function:
        return lambda_.Function(
            self,
            id,
            runtime=lambda_.Runtime.PYTHON_3_14,
            code=code,
            handler=handler,
            timeout=timeout,
            memory_size=512,
            role=role,
            environment={"STORE_BUCKET": self.bucket.bucket_name},
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            description=f"cdk-triton: {handler} of {self.node.path}"[:256],
        )

    def _allow_copies(self, function: lambda_.Function, asset_prefix: str) -> None:
        assets = f"arn:{Aws.PARTITION}:s3:::{self._asset_bucket}/{asset_prefix}*"
        objects = [self.bucket.arn_for_objects(f"{top}/*") for top in ("artifacts", "fleets")]
        acknowledge_wildcard(
            self, assets, "Exact keys of archives overflow the 10 KB of a role's policies at about 100."
        )
        for resource in objects:
            acknowledge_wildcard(self, resource, "The store's own bucket: keys follow from models that come later.")
        function.add_to_role_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=[assets]))
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["s3:GetObject", "s3:PutObject", "s3:ListMultipartUploadParts"], resources=objects
            )
        )
        # s3:ListBucket makes a missing object a 404 instead of a 403.
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["s3:ListBucket", "s3:ListBucketMultipartUploads"], resources=[self.bucket.bucket_arn]
            )
        )


def store_of(scope: Construct, store: ITritonArtifactStore | None) -> ITritonArtifactStore:
    """The store that was given, or the one of the scope's stack, made when it is first needed and warned about."""
    if store is not None:
        return store
    stack = Stack.of(scope)
    found: IConstruct | None = stack.node.try_find_child(DEFAULT_STORE_ID)
    if isinstance(found, TritonArtifactStore):
        return found
    own = TritonArtifactStore(stack, DEFAULT_STORE_ID)
    Annotations.of(own).add_warning_v2(
        IN_STACK_WARNING,
        f"{stack.node.path} got an artifact store of its own, which is good for a first try: a deployment that fails "
        "the first time orphans its bucket. Put a TritonArtifactStore into a stack of its own and pass it as store=",
    )
    return own


def _bucket(scope: Construct) -> s3.Bucket:
    bucket = s3.Bucket(
        scope,
        "Bucket",
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.S3_MANAGED,
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        versioned=True,
        removal_policy=RemovalPolicy.RETAIN,
        lifecycle_rules=[
            s3.LifecycleRule(
                id="ExpireWhatNobodyRefersTo",
                abort_incomplete_multipart_upload_after=Duration.days(1),
                noncurrent_version_expiration=Duration.days(30),
            ),
            # Longer than any job may wait and run: 8 and 36 hours.
            s3.LifecycleRule(
                id="ExpireWhatBuildsReadAndWrite",
                prefix=STAGING_PREFIX,
                expiration=Duration.days(7),
                noncurrent_version_expiration=Duration.days(1),
            ),
        ],
    )
    acknowledge(bucket, "S1", "Access logs need a bucket of the user's choice; CloudTrail's data events tell more.")
    return bucket


def _acknowledge_what_cdk_forces(provider: cr.Provider, handlers: Sequence[lambda_.IFunction]) -> None:
    """The findings inside CDK's provider framework, which offers no way to avoid them."""
    scope = provider.node.scope
    assert scope is not None  # noqa: S101 - the store
    own = [provider.node.find_child(f"framework-{name}") for name in ("isComplete", "onTimeout")]
    for function in [*handlers, *(f for f in own if isinstance(f, lambda_.Function))]:
        acknowledge_wildcard(
            scope, f"{function.function_arn}:*", "CDK's grant_invoke covers the versions of this one function."
        )
    waiter = provider.node.find_child("waiter-state-machine")
    acknowledge(
        waiter,
        "SF1",
        "The waiter only repeats is_complete, and the functions log every poll. Its own log would need a role with "
        "logs:PutResourcePolicy on every resource.",
    )
    acknowledge(waiter, "SF2", "CDK's provider framework has no option for tracing; the waiter has one step.")


def _lambda_role(scope: Construct, id: str, log_group: logs.ILogGroup) -> iam.Role:  # noqa: A002
    role = iam.Role(scope, id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    log_group.grant_write(role)
    return role


def _handlers() -> str:
    """The directory of the handlers: in a wheel within the package, in a checkout beside `constructs/`."""
    package = Path(__file__).parents[1]
    installed = package / "_lambda"
    return str(installed if installed.is_dir() else package.parents[1] / "lambda")


def _place_of_assets(store: TritonArtifactStore, code: lambda_.Code) -> tuple[str, str]:
    """The bucket of the CDK's bootstrap, and the directory of the assets in it: empty, unless it was given a prefix."""
    place = code.bind(store).s3_location
    if place is None or Token.is_unresolved(place.object_key):
        raise ConfigurationError(
            f"the synthesizer of {Stack.of(store).node.path} names assets only during the deployment, but the store's "
            "handler needs to know where they lie: use DefaultStackSynthesizer or CliCredentialsStackSynthesizer"
        )
    directory, slash, _ = place.object_key.rpartition("/")
    return place.bucket_name, directory + slash
