"""A bucket that a construct creates: encrypted, for TLS only, not public, versioned, and retained by default."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Annotations, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton.hosting.naming.acknowledgements import acknowledge_nist
from cdk_triton.hosting.naming.per_construct import path_of

__all__ = ["own_bucket"]

LOGS_WARNING = "cdk-triton:AccessLogsWithKey"


def own_bucket(
    scope: Construct,
    id: str,
    *,
    key: kms.IKey | None,
    access_logs: s3.IBucket | None,
    why_not_replicated: str,
    bucket_name: str | None = None,
    lifecycle_rules: Sequence[s3.LifecycleRule] | None = None,
    removal_policy: RemovalPolicy | None = None,
    auto_delete_objects: bool = False,
) -> s3.Bucket:
    """Create a bucket.

    Args:
        scope: the construct that needs the bucket. The object keys of access logs begin with the construct's path.
        id: the construct's id.
        key: the KMS key that encrypts the objects. None: S3 encrypts them with its own key.
        access_logs: the bucket for access logs.
        why_not_replicated: the reason why the bucket is not replicated, for the rule of NIST 800-53.
        bucket_name: the name that the user chose.
        lifecycle_rules: the rules by which objects expire.
        removal_policy: what happens to the bucket when its stack is deleted. By default, the bucket stays, unless it is
            empty because the creation of the stack has failed.
        auto_delete_objects: whether the bucket is emptied before it is deleted.
    """
    if access_logs is not None:
        _warn_about_key(scope, access_logs)
    bucket = s3.Bucket(
        scope,
        id,
        bucket_name=bucket_name,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.S3_MANAGED if key is None else s3.BucketEncryption.KMS,
        encryption_key=key,
        bucket_key_enabled=None if key is None else True,  # one call of KMS for many objects
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        versioned=True,
        # When a stack of its own fails the first time, the bucket is empty, and nobody would find it again.
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if removal_policy is None else removal_policy,
        auto_delete_objects=auto_delete_objects or None,
        server_access_logs_bucket=access_logs,
        server_access_logs_prefix=None if access_logs is None else f"{scope.node.path}/",
        lifecycle_rules=None if lifecycle_rules is None else list(lifecycle_rules),
    )
    acknowledge_nist(bucket, {"S3BucketReplicationEnabled": why_not_replicated})
    return bucket


def _warn_about_key(scope: Construct, access_logs: s3.IBucket) -> None:
    """Warn about access logs that S3 may fail to write.

    "Default server-side encryption with AWS Key Management Service (AWS KMS) keys (SSE-KMS) is not supported"
    ("Enabling Amazon S3 server access logging", S3's user guide). aws/aws-cdk#25350 reports that S3 writes access logs
    if the policy of the key allows `logging.s3.amazonaws.com` to use the key. So this is not an error.
    """
    if (key := access_logs.encryption_key) is not None:
        Annotations.of(scope).add_warning_v2(
            LOGS_WARNING,
            f"the bucket {path_of(access_logs)} for access logs has the key {path_of(key)}, which S3's user guide does "
            "not support, so logs may be missing: use a bucket with S3's own keys, or acknowledge this",
        )
