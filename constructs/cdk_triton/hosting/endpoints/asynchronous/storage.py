"""The bucket of an asynchronous endpoint, and the permissions that the roles of its models need there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aws_cdk import Annotations, Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_sns as sns
from constructs import Construct, IConstruct

from cdk_triton.hosting.access.buckets import own_bucket
from cdk_triton.hosting.access.keys import has_own_policy, key_arn_for_service, key_behind, use_of_key, warn_about_key
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.endpoints.asynchronous.inference import AsyncInference
from cdk_triton.hosting.endpoints.model_role_policies import allow_models
from cdk_triton.hosting.endpoints.payload_space import warn_about_space
from cdk_triton.hosting.endpoints.shared_buckets import take
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.naming.acknowledgements import acknowledge_wildcards, imported_objects_arns
from cdk_triton.hosting.naming.literals import is_token
from cdk_triton.hosting.naming.per_construct import arn_of, path_of
from cdk_triton.hosting.naming.stacks import is_of_another_account, stack_of

__all__ = ["USE_OF_KEY", "AsyncStorage", "allow_async", "async_property", "async_storage"]

BUCKET_WARNING = "cdk-triton:AsyncBucketNotGranted"
EXPIRATION_WARNING = "cdk-triton:AsyncBucketNotExpiring"
TOPIC_WARNING = "cdk-triton:AsyncTopicNotGranted"

USE_OF_KEY = ("kms:Decrypt", "kms:GenerateDataKey")
"""To read and write objects. Multipart uploads need Decrypt, too ("Protecting data with server-side encryption")."""


@dataclass(frozen=True)
class AsyncStorage:
    """The configuration of an endpoint with its bucket.

    Attributes:
        asynchronous: the configuration that the app gave.
        bucket: the bucket that the app gave, or that the endpoint creates.
    """

    asynchronous: AsyncInference
    bucket: s3.IBucket

    @property
    def written(self) -> tuple[str, str]:
        """The prefixes of responses and of error messages."""
        return self.asynchronous.output_prefix, self.asynchronous.failure_prefix

    @property
    def prefixes(self) -> tuple[str, str, str]:
        """All three prefixes; requests first."""
        return (self.asynchronous.input_prefix, *self.written)

    @property
    def locations(self) -> dict[str, str]:
        """The S3 URIs of the prefixes, by what is below them."""
        names = ("input", "output", "failures")
        return {name: self.bucket.s3_url_for_object(each) for name, each in zip(names, self.prefixes, strict=True)}

    @property
    def output_key(self) -> kms.IKey | None:
        """The key that encrypts the responses; None if S3 encrypts them with its own key."""
        given = self.asynchronous.encryption_key
        return self.bucket.encryption_key if given is None else given

    @property
    def keys(self) -> list[kms.IKey]:
        """All keys that the objects may need: the key of the responses, and the bucket's key for requests."""
        found = {key.key_arn: key for key in (self.output_key, self.bucket.encryption_key) if key is not None}
        return list(found.values())

    @property
    def topics(self) -> list[sns.ITopic]:
        """The topics, each one once."""
        found = (self.asynchronous.success_topic, self.asynchronous.error_topic)
        return list({path_of(topic): topic for topic in found if topic is not None}.values())

    def objects(self, prefixes: Iterable[str]) -> list[str]:
        """The ARNs of everything below prefixes, in the form for policies."""
        return [f"{arn_of(self.bucket)}/{prefix}/*" for prefix in prefixes]

    def listing(self, prefixes: Iterable[str]) -> Statement:
        """The permission to list what is below prefixes."""
        condition = {"StringLike": {"s3:prefix": [f"{prefix}/*" for prefix in prefixes]}}
        return Statement(actions=["s3:ListBucket"], resources=[arn_of(self.bucket)], conditions=condition)


def async_storage(scope: Construct, asynchronous: AsyncInference | None) -> AsyncStorage | None:
    """The storage of an endpoint: the given bucket, or the child `AsyncBucket`, with rules by which objects expire.

    A real-time endpoint has none.
    """
    if asynchronous is None:
        return None
    bucket = asynchronous.bucket
    if bucket is None:
        bucket = own_bucket(
            scope,
            "AsyncBucket",
            key=asynchronous.encryption_key,
            access_logs=asynchronous.access_logs_bucket,
            why_not_replicated="Everything in the bucket expires after some days, and a caller can send a lost request "
            "again.",
        )
    storage = AsyncStorage(asynchronous, bucket)
    take(scope, bucket, storage.prefixes)
    if isinstance(bucket, s3.Bucket):
        for prefix in storage.prefixes:
            bucket.add_lifecycle_rule(
                prefix=f"{prefix}/",
                expiration=asynchronous._expiration,
                noncurrent_version_expiration=Duration.days(1),
                abort_incomplete_multipart_upload_after=Duration.days(1),
            )
    return storage


def async_property(storage: AsyncStorage | None) -> sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty | None:
    """The configuration in the form of CloudFormation; None for a real-time endpoint."""
    if storage is None:
        return None
    asynchronous, locations, key = storage.asynchronous, storage.locations, storage.output_key
    success, error = asynchronous.success_topic, asynchronous.error_topic
    count = asynchronous.max_concurrent_invocations_per_instance
    return sagemaker.CfnEndpointConfig.AsyncInferenceConfigProperty(
        client_config=None
        if count is None
        else sagemaker.CfnEndpointConfig.AsyncInferenceClientConfigProperty(
            max_concurrent_invocations_per_instance=count
        ),
        output_config=sagemaker.CfnEndpointConfig.AsyncInferenceOutputConfigProperty(
            s3_output_path=locations["output"],
            s3_failure_path=locations["failures"],
            kms_key_id=None if key is None else key_arn_for_service(key),
            notification_config=None
            if success is None and error is None
            else sagemaker.CfnEndpointConfig.AsyncInferenceNotificationConfigProperty(
                success_topic=None if success is None else success.topic_arn,
                error_topic=None if error is None else error.topic_arn,
            ),
        ),
    )


def allow_async(
    scope: Construct, storage: AsyncStorage | None, endpoint: IConstruct, variants: Sequence[TritonVariant]
) -> None:
    """Let the roles of the endpoint's models read requests, write responses and publish notifications, or warn.

    The actions on S3 and SNS are those of "Complete the prerequisites" in the guide of asynchronous inference. If the
    bucket, a prefix, a topic or a role changes, CloudFormation creates a new policy, and removes the old policy after
    the update. Until then, the old instances read and write as before.

    Args:
        scope: the endpoint.
        storage: the endpoint's bucket and prefixes. None for a real-time endpoint, which needs no permissions.
        endpoint: the endpoint's L1 construct.
        variants: all variants of the endpoint.
    """
    if storage is None:
        return
    bucket, topics = storage.bucket, storage.topics
    statements = [
        Statement(actions=["s3:GetObject"], resources=storage.objects(storage.prefixes[:1])),
        Statement(actions=["s3:AbortMultipartUpload", "s3:PutObject"], resources=storage.objects(storage.written)),
        storage.listing(storage.prefixes),
    ]
    statements += [use_of_key(scope, key, USE_OF_KEY) for key in storage.keys]
    if topics:
        statements.append(Statement(actions=["sns:Publish"], resources=[topic.topic_arn for topic in topics]))
        keys = {key.key_arn: key for topic in topics if (key := _key_of_topic(topic)) is not None}
        statements += [use_of_key(scope, key, USE_OF_KEY) for key in keys.values()]
    roles = sorted({model.role.node.path for variant in variants for model in variant.models})
    decisive = [path_of(bucket), [path_of(topic) for topic in topics], roles]
    for policy in allow_models(scope, "Async", endpoint, variants, statements, decisive):
        reason = "SageMaker names the objects after inferences; only this endpoint uses the prefixes."
        arns = (arn for each in storage.prefixes for arn in imported_objects_arns(scope, bucket, f"{each}/*"))
        reasons = dict.fromkeys(arns, reason)
        for key in storage.keys:
            if key_behind(key) is None:
                (every_key,) = use_of_key(scope, key, ()).resources
                reasons[every_key] = "KMS ignores an alias ARN; the condition kms:ResourceAliases names the alias."
        acknowledge_wildcards(policy, reasons)
    _warn(scope, storage, variants)


def _key_of_topic(topic: sns.ITopic) -> kms.IKey | None:
    return topic.master_key if isinstance(topic, sns.Topic) else None


def _warn(scope: Construct, storage: AsyncStorage, variants: Sequence[TritonVariant]) -> None:
    """Warn about required permissions and expiration rules that the app cannot provide."""
    account, bucket = stack_of(scope).account, storage.bucket
    roles = ", ".join(dict.fromkeys(path_of(model.role) for variant in variants for model in variant.models))
    if is_of_another_account(bucket, account):
        Annotations.of(scope).add_warning_v2(
            BUCKET_WARNING,
            f"the bucket {path_of(bucket)} of the AsyncInference is in the account {bucket.env.account}, but the "
            f"endpoint is in {account}. Make sure that the bucket's policy allows the roles {roles} to read below "
            f"{storage.asynchronous.input_prefix}/ (s3:GetObject) and to write below "
            f"{'/ and '.join(storage.written)}/ (s3:PutObject, s3:AbortMultipartUpload). Then acknowledge this",
        )
    if not isinstance(bucket, s3.Bucket):
        Annotations.of(scope).add_warning_v2(
            EXPIRATION_WARNING,
            f"this app does not create the bucket {path_of(bucket)} and cannot add lifecycle rules to this bucket, so "
            f"requests and answers below {'/, '.join(storage.prefixes)}/ are never deleted: add rules to the bucket, "
            "then acknowledge this",
        )
    for key in storage.keys:
        if is_of_another_account(key, account):
            warn_about_key(scope, key, f"the roles {roles} and the callers to use the key ({', '.join(USE_OF_KEY)})")
    for variant, model in [(each, model) for each in variants for model in each.models]:
        size = getattr(model, "max_payload", None)
        if isinstance(size, int):
            count = storage.asynchronous.max_concurrent_invocations_per_instance
            concurrent = 1 if count is None or is_token(count) else count
            what = f"variant {variant.variant_name!r} of {path_of(scope)}"
            warn_about_space(scope, what, size, concurrent, model, variant.volume_size)
    for topic in storage.topics:
        _warn_about_topic(scope, topic, account, roles)


def _warn_about_topic(scope: Construct, topic: sns.ITopic, account: str, roles: str) -> None:
    key = _key_of_topic(topic)
    if not isinstance(topic, sns.Topic):
        Annotations.of(scope).add_warning_v2(
            TOPIC_WARNING,
            f"this app does not create the topic {path_of(topic)} and cannot read the topic's policy or key, so "
            "notifications may get lost. If the topic has a key, make sure that the key's policy allows the roles "
            f"{roles} to use the key ({', '.join(USE_OF_KEY)}). If the topic belongs to another account, make sure "
            "that the topic's policy allows the roles to publish (sns:Publish). Then acknowledge this",
        )
    elif key is not None and not has_own_policy(key) and is_of_another_account(key, account):
        warn_about_key(scope, key, f"the roles {roles} to use the key ({', '.join(USE_OF_KEY)})")
