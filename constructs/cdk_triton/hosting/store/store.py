"""`TritonArtifactStore`: the bucket for archives, with the handlers and builders that fill it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton._checked import checked
from cdk_triton._jsii import invoke_for_struct
from cdk_triton._tokens import has_token
from cdk_triton.artifacts import S3File
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.keys import require_store_keys
from cdk_triton.hosting.access.network import function_network
from cdk_triton.hosting.access.permissions import Statement, allow
from cdk_triton.hosting.access.vpc_endpoints import await_route_to
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards
from cdk_triton.hosting.naming.per_construct import arn_of, encryption_key_of
from cdk_triton.hosting.naming.references import keep_exports
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.hosting.store.bucket import (
    check_bucket,
    check_removal,
    let_logs_use,
    store_bucket,
)
from cdk_triton.hosting.store.builds.builders import Builder, key_statement
from cdk_triton.hosting.store.builds.selection import BUILDING
from cdk_triton.hosting.store.builds.store_builders import StoreBuilders
from cdk_triton.hosting.store.imported import (
    ImportedArtifactStore,
    allow_promotion,
    check_promotion,
    grant_read_of_artifacts,
)
from cdk_triton.hosting.store.provider import (
    HandlerFunctions,
    endpoint_states,
    handler_code,
    lambda_role,
    log_writing,
    provider,
)
from cdk_triton.hosting.store.shared import SharedArtifactStore, export_store
from cdk_triton.hosting.store.used_by import record_user
from cdk_triton.protocol.layout import ASSET_PREFIX, CATALOGUE_PREFIX, SERVED_PREFIXES
from cdk_triton.sagemaker import ServingPlatform

__all__ = ["DEFAULT_STORE_ID", "TritonArtifactStore"]

LONGEST_POLL = Duration.minutes(5)
"""A poll rarely takes more than 20 seconds, unless it reads an input of several gigabytes, or is the last poll of a
request and copies archives."""

DEFAULT_STORE_ID = "TritonArtifacts"


class TritonArtifactStore(Construct):
    """Keeps the archives of all stacks of an account and region, even when these stacks are deleted.

    The store has a *handler*, a Lambda function that copies archives to the bucket and starts builds.

    Give the store its own stack. If the store is in a model's stack, a failed first deployment removes the handler and
    orphans the retained bucket, and the next deployment starts with an empty store. In its own stack, nothing is
    orphaned: if the first deployment fails, the bucket is empty, and CloudFormation removes it with the handler.

    The bucket is versioned and encrypted, and retained unless `removal_policy` says otherwise. It blocks public access,
    and rejects requests without TLS. Archives and their manifests are written once, and never changed or deleted,
    because a rollback needs the old archives. Incomplete uploads expire after 1 day, replaced or deleted versions after
    30 days, and the objects that builds read and write after 7 days.

    A repository with recipes is built by the first builder that has the GPU of the model's platform. By default, the
    store has a `SageMakerProcessingBuilder`. If the region of the store's stack is known and CodeBuild has GPUs there,
    a `CodeBuildGpuBuilder` comes first. If the region is unknown, a `CodeBuildGpuBuilder` that you pass is accepted
    without a check of the region.

    The handler can read every object whose name begins with `triton-` in the CDK's bootstrap bucket, not only the
    archives that it needs. If the handler's role listed exact names, each deployment would change the role, and use it
    before IAM has propagated the change. A few hundred names would also exceed the size limits of a role's policies.

    A store with `promotes_from` neither packs nor builds, but copies complete archives (with a manifest) byte for byte
    from the source store. It rejects a deployment of any other archive, unless the archive is already in the store.

    Attributes:
        bucket: the bucket.
        former_keys: the KMS keys that the store had before.
        promotes_from: the source store, from which archives are promoted; None if this store packs and builds archives.
        service_token: the provider of `Custom::TritonArtifacts`.
        handler_role: the role that reads the inputs of builds from S3. Allow it to read an input that is in a bucket of
            another account, or that is encrypted with your own KMS key.
        build_roles: the roles of the builders' jobs, by the builder's kind. Grant them permission to pull your own
            image.

    Args:
        scope: the stack or construct that the store belongs to; if possible, a stack that contains only the store.
        id: the construct's id.
        builders: the services that run builds, in order of preference, at most one of each kind.
        encryption_key: your own KMS key for the bucket, the logs and the output of builds; by default, S3 and
            CloudWatch Logs encrypt with their own keys. Models of this store can decrypt with your key. The key policy
            must allow the account's IAM policies to grant access, as the policy of a CDK key does, and must allow
            CloudWatch Logs of the region to use the key. For an imported key, synth warns, and you must allow
            CloudWatch Logs in the key policy yourself. You can also pass an alias that this app creates; the store then
            uses the alias's key.
        former_keys: the KMS keys that the store had before `encryption_key`. An archive stays encrypted with the key
            with which it was written. Models, builds and the handler can decrypt with all of these keys, so that
            running endpoints and rollbacks can read older archives.
        access_logs_bucket: the bucket that receives the access logs of the store's bucket, under the store's construct
            path as prefix. Use a bucket of the app, or an imported bucket whose policy you maintain. The bucket must be
            encrypted with S3's own keys, because S3 writes access logs to no other bucket ("Enabling Amazon S3 server
            access logging").
        promotes_from: the source store, in another account or region, where the archives were built and tested. Import
            it with `TritonArtifactStore.from_bucket`. In the app of the source store, call `grant_read` for this
            account.
        export_prefix: the beginning of the names of CloudFormation exports, such as `triton-artifacts`, with which
            other apps of the account and region import the store (`TritonArtifactStore.from_exports`). The builders can
            then pull any of SageMaker's Triton images.
        bucket_name: the bucket's name, for a store that another account or region promotes from. By default
            CloudFormation generates one. With another name, the store gets a new, empty bucket.
        removal_policy: what happens to the bucket when it is removed from its stack, or when the stack is deleted. By
            default the bucket stays. `RemovalPolicy.DESTROY` suits stacks that are made for a test or a pull request.
            Without `auto_delete_objects`, CloudFormation then fails to delete a bucket that is not empty.
        auto_delete_objects: whether every object, with all its versions, is deleted before the bucket. A function of
            the CDK (`Custom::S3AutoDeleteObjects`) deletes them, as for `s3.Bucket`. This argument needs
            `removal_policy=RemovalPolicy.DESTROY`.
        vpc: the VPC in which the store's functions run. In a VPC without a route to the internet,
            `add_vpc_endpoints(vpc, store_functions=True)` adds the VPC endpoints of the services that they call. By
            default, the functions run in Lambda's own network. Builders have their own `vpc` argument.
        vpc_subnets: the subnets of the VPC; by default the private subnets.
        security_groups: security groups in the VPC; by default a new security group that allows all outbound and no
            inbound traffic.

    Raises:
        ConfigurationError: an argument is not valid. By argument:

            * `scope`: the stack's synthesizer names assets only during the deployment.
            * `builders`: two builders are of the same kind.
            * `encryption_key`, `former_keys`: a key is in another region, asymmetric or for HMAC, is an alias imported
              by its name only, or is both `encryption_key` and in `former_keys`.
            * `access_logs_bucket`: the bucket is in another account or region.
            * `promotes_from`: the argument is given together with `builders` or `export_prefix`.
            * `export_prefix`: the prefix cannot begin an export's name.
            * `bucket_name`: S3 rejects the name.
            * `removal_policy`: the policy is `SNAPSHOT`.
            * `auto_delete_objects`: `removal_policy` is not `DESTROY`.
            * `vpc`: the VPC is in another region, or `vpc_subnets` or `security_groups` are given without `vpc`.
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        builders: Sequence[Builder] | None = None,
        encryption_key: kms.IKey | None = None,
        former_keys: Sequence[kms.IKey] = (),
        access_logs_bucket: s3.IBucket | None = None,
        promotes_from: ImportedArtifactStore | None = None,
        export_prefix: str | None = None,
        bucket_name: str | None = None,
        removal_policy: RemovalPolicy | None = None,
        auto_delete_objects: bool | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
    ) -> None:
        super().__init__(scope, id)
        stack_of(self)  # or a sentence that it needs one
        encryption_key, former = require_store_keys(self, encryption_key, former_keys)
        self.former_keys: Sequence[kms.IKey] = former
        check_bucket(self, bucket_name, access_logs_bucket)
        check_removal(self, removal_policy, auto_delete_objects=bool(auto_delete_objects))
        check_promotion(self, promotes_from, builders, export_prefix)
        self.promotes_from = promotes_from
        self.bucket: s3.IBucket = store_bucket(
            self,
            encryption_key,
            access_logs_bucket,
            bucket_name,
            removal_policy,
            auto_delete_objects=bool(auto_delete_objects),
        )
        self.node.default_child = self.bucket.node.default_child
        let_logs_use(self, encryption_key, self.former_keys)
        log_group = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.DESTROY,
            encryption_key=encryption_key,
        )
        code = handler_code()
        self._asset_bucket, prefix = _place_of_assets(self, code)
        self.handler_role = lambda_role(self, "IsCompleteRole")
        self._builds = StoreBuilders(self, builders if promotes_from is None else (), self.bucket, self.handler_role)
        self._network = function_network(self, vpc, vpc_subnets, security_groups)
        made = HandlerFunctions(code, log_group, self._network)
        variables = {"STORE_BUCKET": self.bucket.bucket_name, "BUILDERS": self._builds.settings}
        promotion = {} if promotes_from is None else {"PROMOTES_FROM": promotes_from.bucket.bucket_name}
        is_complete = made.function(
            self, "IsComplete", "artifacts.is_complete", variables | promotion, LONGEST_POLL, self.handler_role
        )
        logging = log_writing(log_group)
        copying, reasons = self._copying(f"{prefix}{ASSET_PREFIX}")
        endpoints, of_endpoints = endpoint_states(self)
        allow(self.handler_role, logging, *copying, *endpoints, *self._builds.handler_statements)
        acknowledge_wildcards(self.handler_role, reasons | of_endpoints | self._builds.handler_reasons)
        self.build_roles = self._builds.roles
        for role in self.build_roles.values() if self.former_keys else ():  # of jobs that run while the key changes
            allow(role, _reading(self.former_keys))
        self._builds.start_by(is_complete)
        if promotes_from is not None:
            allow_promotion(self, self.handler_role, promotes_from)
            if self._network is not None:
                await_route_to(promotes_from.bucket, self._network, self)
        self._handler_arn = is_complete.function_arn
        self.service_token = provider(self, made, is_complete)
        if export_prefix is not None:
            export_store(
                self,
                export_prefix,
                bucket=self.bucket,
                service_token=self.service_token,
                handler=self.handler_role,
                builders=self.build_roles,
                had_key=bool(self.former_keys),
            )
        if id != DEFAULT_STORE_ID:  # no other stack refers to the store that `store_of` makes
            keep_exports(
                self,
                [
                    self.bucket.bucket_name,
                    arn_of(self.bucket),
                    self.service_token,
                    self._handler_arn,
                    *(role.role_name for role in (self.handler_role, *self.build_roles.values())),
                    *([] if encryption_key is None else [encryption_key.key_arn]),
                    *(key.key_arn for key in self.former_keys),
                    *([] if self._network is None else [*self._network.subnets, *self._network.security_groups]),
                ],
            )

    @staticmethod
    def from_bucket(
        scope: Construct, id: str, bucket: s3.IBucket, *, former_keys: Sequence[kms.IKey] = ()
    ) -> ImportedArtifactStore:
        """Import the store of another account or region, to promote archives from it.

        Args:
            scope: the stack or construct that uses the store.
            id: the construct's id.
            bucket: the bucket of that store. If the store has an `encryption_key`, import the bucket with it:
                `s3.Bucket.from_bucket_attributes(self, "Tested", bucket_name="…",
                encryption_key=kms.Key.from_key_arn(self, "TestedKey", "arn:aws:kms:…"))`.
            former_keys: the `former_keys` of that store.

        Raises:
            ConfigurationError: a key is asymmetric or for HMAC, or is an alias that was imported by its name only.
        """
        return ImportedArtifactStore(scope, id, bucket=bucket, former_keys=former_keys)

    @staticmethod
    def from_exports(
        scope: Construct,
        id: str,
        export_prefix: str,
        *,
        builders: Sequence[Builder] | None = None,
        has_encryption_key: bool = False,
        encryption_keys: Sequence[kms.IKey] = (),
    ) -> SharedArtifactStore:
        """Import the store of another app in this account and region, to use it as a store of this app.

        Deploy the store's app first, with a version of this library that is at least as new as this app's.
        CloudFormation rejects a deployment that uses a missing export, and the store's handler rejects a builder that
        the store does not have.

        Args:
            scope: any stack of this app.
            id: the construct's id.
            export_prefix: the store's `export_prefix`.
            builders: the store's `builders`; this app chooses among them. By default, the region of this stack
                determines the builders.
            has_encryption_key: whether the store has an `encryption_key`, which its app then exports.
            encryption_keys: the KMS keys that models must be able to use: the store's key first, then its
                `former_keys`. CloudFormation does not change an exported key while another stack imports it. So before
                the owner replaces the store's key, pass both the old and the new key here, and deploy the importing
                apps. Not allowed with `has_encryption_key`.

        Raises:
            ConfigurationError: `export_prefix` cannot begin an export's name, two builders are of the same kind, or
                both `has_encryption_key` and `encryption_keys` are given; or a key is asymmetric, for HMAC, or an alias
                imported by its name only.
        """
        return SharedArtifactStore(
            scope,
            id,
            export_prefix=export_prefix,
            builders=builders,
            has_encryption_key=has_encryption_key,
            encryption_keys=encryption_keys,
        )

    @checked
    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to read the complete archives, through the policies of the bucket and of its KMS key.

        Before a store of another account can promote from this one, call this with `iam.AccountPrincipal(account)`.
        """
        return grant_read_of_artifacts(self, self.bucket, self.former_keys, grantee)

    def _require_assets_of(self, scope: Construct, bucket_name: str) -> None:
        """Reject a stack whose bucket for assets differs from that of the store's stack, or record the stack as a user.

        There is only one bucket, because copies of one archive in two places may differ in their bytes, and an
        interrupted copy is resumed part by part.
        """
        record_user(self.bucket, scope)
        if bucket_name == self._asset_bucket:
            return
        theirs, ours = (_readable(stack_of(self).resolve(name)) for name in (bucket_name, self._asset_bucket))
        if theirs != ours:
            unknown = ("${AWS::" in theirs) != ("${AWS::" in ours)  # one of the stacks has an environment
            how = ", by the same env= of both stacks," if unknown else ""
            raise ConfigurationError(
                f"the stack {stack_of(scope).node.path} publishes its assets to {theirs}, but the artifact store "
                f"{self.node.path} reads {ours}: deploy both to one account and region{how} with one bootstrap "
                "qualifier, or give the stack a store of its own"
            )

    def _builder_for(
        self, scope: Construct, platform: ServingPlatform, inputs: Iterable[S3File], work: str = BUILDING
    ) -> Builder:
        return self._builds.builder_for(scope, platform, inputs, work)

    def _copying(self, asset_prefix: str) -> tuple[list[Statement], dict[str, str]]:
        """The handler's permissions to copy assets into the store, and the reason for each ARN with a wildcard."""
        bucket_arn = arn_of(self.bucket)
        assets = f"arn:{Aws.PARTITION}:s3:::{self._asset_bucket}/{asset_prefix}*"
        objects = [f"{bucket_arn}/{prefix}*" for prefix in SERVED_PREFIXES]
        catalogue = f"{bucket_arn}/{CATALOGUE_PREFIX}*"
        reasons = {
            assets: "A new asset has a new key. With exact keys, the deployment that reads the asset would change this "
            "role, and IAM takes a while to propagate a change.",
            **dict.fromkeys(objects, "The bucket is the store's own, and keys of later models are not known yet."),
            catalogue: "The handler checks whether an ensemble of a stack was also published. Later names are not "
            "known yet.",
        }
        statements = [
            Statement(actions=["s3:GetObject"], resources=[assets]),
            Statement(actions=["s3:GetObject"], resources=[catalogue]),
            Statement(actions=["s3:GetObject", "s3:PutObject", "s3:ListMultipartUploadParts"], resources=objects),
            # s3:ListBucket makes a missing object a 404 instead of a 403.
            Statement(actions=["s3:ListBucket", "s3:ListBucketMultipartUploads"], resources=[bucket_arn]),
        ]
        if (key := encryption_key_of(self.bucket)) is not None:
            statements.append(key_statement(key))
        if self.former_keys:
            statements.append(_reading(self.former_keys))
        return statements, reasons


def _reading(former_keys: Sequence[kms.IKey]) -> Statement:
    return Statement(actions=["kms:Decrypt"], resources=[key.key_arn for key in former_keys])


def _place_of_assets(store: TritonArtifactStore, code: lambda_.Code) -> tuple[str, str]:
    """The bucket of the CDK's bootstrap, and the text before the names of assets in it, with or without a slash."""
    place = invoke_for_struct(code, "bind", store).struct("s3_location")
    object_key = "" if place is None else place.text("object_key")
    if place is None or has_token(object_key):
        raise ConfigurationError(
            f"the synthesizer of {stack_of(store).node.path} names assets only during the deployment, but the store's "
            "handler needs their bucket and prefix at synth: use DefaultStackSynthesizer or "
            "CliCredentialsStackSynthesizer"
        )
    by_hash = re.search(r"[0-9a-f]{64}\.zip$", object_key)  # a synthesizer of the user's own may name it otherwise
    return place.text("bucket_name"), object_key[: by_hash.start() if by_hash else object_key.rfind("/") + 1]


def _readable(name: object) -> str:
    """A bucket's name as in `Fn::Sub`, without the JSON around it."""
    text = name["Fn::Sub"] if isinstance(name, dict) and list(name) == ["Fn::Sub"] else name
    return json.dumps(text)
