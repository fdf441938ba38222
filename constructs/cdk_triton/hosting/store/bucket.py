"""The bucket of an artifact store, and the policy of its key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import ArnFormat, Aws, CfnDeletionPolicy, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_triton._tokens import has_token, sample_note, with_samples
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.buckets import own_bucket
from cdk_triton.hosting.access.keys import warn_about_store_key
from cdk_triton.hosting.naming.per_construct import path_of
from cdk_triton.hosting.naming.stacks import require_own_region, require_same, share_a_partition, stack_of
from cdk_triton.hosting.naming.taken_names import take_name
from cdk_triton.protocol.layout import STAGING_PREFIX

__all__ = ["check_bucket", "check_removal", "keep_when_creation_fails", "let_logs_use", "store_bucket"]

_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")

_RESERVED_BEGINNINGS: Final = ("xn--", "sthree-", "amzn-s3-demo-")
_RESERVED_ENDS: Final = ("-s3alias", "--ol-s3", "--x-s3", "--table-s3")
"""S3 keeps these for names of its own. `.mrap` is missing because names with a dot are rejected anyway."""


def keep_when_creation_fails(bucket: s3.IBucket) -> None:
    """Keep a bucket that may have objects if its stack cannot be created: CloudFormation deletes only empty ones."""
    resource = bucket.node.default_child
    assert isinstance(resource, s3.CfnBucket)  # the store makes it
    if resource.cfn_options.deletion_policy == CfnDeletionPolicy.RETAIN_EXCEPT_ON_CREATE:
        resource.cfn_options.deletion_policy = CfnDeletionPolicy.RETAIN


def check_bucket(scope: Construct, name: str | None, access_logs: s3.IBucket | None) -> None:
    """Reject a name that S3 would reject, or that has a dot, and a bucket that S3 would not log to.

    S3's certificate does not fit names with dots ("General purpose bucket naming rules" in S3's user guide).

    Raises:
        ConfigurationError: the name, as far as it is known, is not valid for a bucket, or another store of the app has
            it; or the bucket for access logs is certainly in another account or region.
    """
    if name is not None:
        _check_name(scope, name)
        fix = "names of buckets are unique in all accounts and regions: give each store a name of its own"
        take_name(scope, "bucket_name", name, share_a_partition, fix)
    if access_logs is not None:
        _check_access_logs(scope, access_logs)


def check_removal(scope: Construct, removal_policy: RemovalPolicy | None, *, auto_delete_objects: bool) -> None:
    """Reject a removal policy that a bucket cannot have, as `s3.Bucket` does.

    Raises:
        ConfigurationError: the policy is `SNAPSHOT`, or the objects of a bucket that is retained would be deleted.
    """
    if removal_policy is RemovalPolicy.SNAPSHOT:
        raise ConfigurationError(
            f"removal_policy of {path_of(scope)} is RemovalPolicy.SNAPSHOT, but S3 has no snapshots of buckets: use "
            "RemovalPolicy.RETAIN or RemovalPolicy.DESTROY"
        )
    if auto_delete_objects and removal_policy is not RemovalPolicy.DESTROY:
        raise ConfigurationError(
            f"{path_of(scope)} has auto_delete_objects=True, but its bucket is kept: add "
            "removal_policy=RemovalPolicy.DESTROY, or remove auto_delete_objects"
        )


def store_bucket(
    scope: Construct,
    key: kms.IKey | None,
    access_logs: s3.IBucket | None,
    bucket_name: str | None,
    removal_policy: RemovalPolicy | None,
    *,
    auto_delete_objects: bool,
) -> s3.Bucket:
    """Create the child `Bucket`."""
    day = Duration.days(1)
    return own_bucket(
        scope,
        "Bucket",
        key=key,
        access_logs=access_logs,
        why_not_replicated="S3 replicates into a bucket that another stack makes, with a role of its own. A replica is "
        "not needed, because the sources give every archive again, and a second region has a store of its own.",
        bucket_name=bucket_name,
        removal_policy=removal_policy,
        auto_delete_objects=auto_delete_objects,
        lifecycle_rules=[
            s3.LifecycleRule(
                id="ExpireWhatNobodyRefersTo",
                abort_incomplete_multipart_upload_after=day,
                noncurrent_version_expiration=Duration.days(30),
            ),
            # Longer than any job may wait and run: 8 and 36 hours.
            s3.LifecycleRule(
                id="ExpireWhatBuildsReadAndWrite",
                prefix=STAGING_PREFIX,
                expiration=Duration.days(7),
                noncurrent_version_expiration=day,
            ),
        ],
    )


def _check_name(scope: Construct, name: str) -> None:
    known = with_samples(name)
    what = f"bucket_name of {path_of(scope)} is {known!r}{sample_note(name)}"
    if not _BUCKET_NAME.fullmatch(known.ljust(3, "x") if has_token(name) else known):
        raise ConfigurationError(
            f"{what}: use 3 to 63 lower-case letters, digits and '-', with a letter or digit at both ends"
        )
    reserved = [*filter(known.startswith, _RESERVED_BEGINNINGS), *filter(known.endswith, _RESERVED_ENDS)]
    if reserved:
        where = "begin" if reserved[0] in _RESERVED_BEGINNINGS else "end"
        raise ConfigurationError(
            f"{what}, but S3 reserves names that {where} with {reserved[0]!r}: choose another name"
        )


def _check_access_logs(scope: Construct, bucket: s3.IBucket) -> None:
    """Reject a bucket that S3 would not log to ("Enabling Amazon S3 server access logging", S3's user guide)."""
    reason = (
        "S3 writes access logs to a bucket of the same account and region only, so use such a bucket; the CDK assumes "
        "that an imported bucket is in the account and region of its stack, unless from_bucket_attributes gives others"
    )
    require_own_region(scope, bucket, reason)
    require_same("account", path_of(scope), stack_of(scope).account, path_of(bucket), bucket.env.account, reason)


def let_logs_use(scope: Construct, key: kms.IKey | None, former_keys: Sequence[kms.IKey]) -> None:
    """Let CloudWatch Logs use a store's keys, including the former keys, with which older logs are encrypted."""
    stack = stack_of(scope)
    groups = stack.format_arn(
        service="logs", resource="log-group", resource_name="*", arn_format=ArnFormat.COLON_RESOURCE_NAME
    )
    condition = {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}}
    if key is not None:
        warn_about_store_key(scope, key, condition)
    for each in (*([] if key is None else [key]), *former_keys):
        _let_logs_use(each, stack.region, condition)


def _let_logs_use(key: kms.IKey, region: str, condition: Mapping[str, object]) -> None:
    """Allow CloudWatch Logs to use a key, for log groups by a pattern, because the key is created before them.

    "Encrypt log data in CloudWatch Logs using AWS Key Management Service", in the user guide of CloudWatch Logs.
    """
    key.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal(f"logs.{region}.{Aws.URL_SUFFIX}")],
            actions=["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
            resources=["*"],
            conditions=condition,
        )
    )
