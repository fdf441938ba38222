"""Keys of AWS KMS: the key behind an alias, and which key has a policy that this app can change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from aws_cdk import Annotations, ArnFormat
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import IConstruct

from cdk_triton._tokens import has_token, with_placeholders
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.permissions import Statement
from cdk_triton.hosting.naming.per_construct import cached_per_construct, path_of
from cdk_triton.hosting.naming.stacks import region_of, require_own_region, stack_of

__all__ = [
    "condition_in_words",
    "has_own_policy",
    "key_arn_for_service",
    "key_behind",
    "require_key",
    "require_store_keys",
    "require_symmetric",
    "use_of_key",
    "warn_about_key",
    "warn_about_store_key",
    "warn_about_topic",
]

SYMMETRIC = "SYMMETRIC_DEFAULT"

KEY_WARNING = "cdk-triton:KeyNotGranted"
TOPIC_WARNING = "cdk-triton:TopicNotGranted"


@cached_per_construct
def key_behind(key: kms.IKey) -> kms.IKey | None:
    """The key, or the key behind an alias; None for an alias that was imported by its name only."""
    if not hasattr(key, "alias_name"):
        return key
    try:
        target: kms.IKey = key.alias_target_key  # type: ignore[attr-defined]  # an IAlias
    except RuntimeError:  # jsii's, of the getter of Alias.from_alias_name
        return None
    return key_behind(target)


def require_key(key: kms.IKey, what: str) -> kms.IKey:
    """The key, or the key behind an alias of the app.

    KMS ignores the ARN of an alias in a policy. A policy can name an alias by the condition `kms:ResourceAliases`, but
    when the alias moves to another key, the access to everything that the first key has encrypted ends ("Use aliases to
    control access to KMS keys" in the developer guide of AWS KMS).

    Args:
        key: a key, or an alias.
        what: the argument, as the message calls it.

    Raises:
        ConfigurationError: the key is asymmetric, is for HMAC, or is an alias that was imported by its name only.
    """
    require_symmetric(key, what)
    found = key_behind(key)
    if found is None:
        name = key.key_id
        raise ConfigurationError(
            f"{what} is the alias {name}, which may move to another key, so data of the first key would become "
            f"unreadable: pass the key itself, by kms.Key.from_lookup(self, 'Key', alias_name='{name}') or "
            "kms.Key.from_key_arn"
        )
    return found


def require_symmetric(key: kms.IKey, what: str) -> None:
    """Reject a key of the app that S3, EBS and CloudWatch Logs cannot encrypt with.

    "Amazon Web Services services that are integrated with KMS use symmetric encryption KMS keys to protect your data"
    (CreateKey in the API of KMS); "Amazon S3 only supports symmetric encryption KMS keys" (`Encryption` in that of S3);
    "Amazon EBS does not support asymmetric KMS keys" (CreateVolume in that of EC2); "Do not associate an asymmetric KMS
    key with your log group" (AssociateKmsKey in that of CloudWatch Logs).

    Args:
        key: a key, or an alias.
        what: the argument, as the message calls it.

    Raises:
        ConfigurationError: the app creates the key with a key spec other than `SYMMETRIC_DEFAULT`.
    """
    resource = _resource_of(key)
    spec = None if resource is None else stack_of(resource).resolve(resource.key_spec)
    if isinstance(spec, str) and spec != SYMMETRIC:
        raise ConfigurationError(
            f"{what} is the key {path_of(key_behind(key) or key)} with the key spec {spec}, but S3, EBS and CloudWatch "
            "Logs encrypt with symmetric keys only: omit key_spec and key_usage of the key, or pass another key"
        )


def use_of_key(scope: IConstruct, key: kms.IKey, actions: Sequence[str]) -> Statement:
    """Allow the use of a key, or of the key behind an alias at the time of the call.

    For an alias, the statement is that of the CDK's `IAlias.grant`.

    Args:
        scope: what uses the key.
        key: a key, or an alias.
        actions: such as `kms:Decrypt`.
    """
    found = key_behind(key)
    if found is not None:
        return Statement(actions=actions, resources=[found.key_arn])
    every_key = stack_of(scope).format_arn(
        service="kms", resource="key", resource_name="*", arn_format=ArnFormat.SLASH_RESOURCE_NAME
    )
    condition = {"ForAnyValue:StringEquals": {"kms:ResourceAliases": key.key_id}}
    return Statement(actions=actions, resources=[every_key], conditions=condition)


def key_arn_for_service(key: kms.IKey) -> str:
    """The ARN to pass to a service: the ARN of an alias only if the key behind it is unknown.

    The ARN of an alias of the app would be literal text, so CloudFormation might create the alias too late.
    """
    found = key_behind(key)
    return key.key_arn if found is None else found.key_arn


def has_own_policy(key: kms.IKey) -> bool:
    """Whether the app creates the key, so that grants can change its policy."""
    return _resource_of(key) is not None


def _resource_of(key: kms.IKey) -> kms.CfnKey | None:
    """The CloudFormation resource of a key or of the key behind an alias; None if the app does not make the key."""
    found = key_behind(key)
    node = getattr(found, "node", None)  # what implements IKey in Python may have none
    nodes = () if node is None else (node.default_child, node.scope)  # the latter: Key.from_cfn_key
    return next((each for each in nodes if isinstance(each, kms.CfnKey)), None)


def require_store_keys(
    store: IConstruct, encryption_key: kms.IKey | None, former_keys: Sequence[kms.IKey]
) -> tuple[kms.IKey | None, list[kms.IKey]]:
    """The key of a store, and its former keys.

    Raises:
        ConfigurationError: a key is an alias that was imported by its name only, is in another region, or is in both
            arguments.
    """
    if encryption_key is not None:
        encryption_key = require_key(encryption_key, f"encryption_key of {path_of(store)}")
    former = [require_key(key, f"a key in former_keys of {path_of(store)}") for key in former_keys]
    if encryption_key is not None:
        stack = stack_of(store)
        current = stack.resolve(encryption_key.key_arn)
        if any(stack.resolve(key.key_arn) == current for key in former):
            raise ConfigurationError(
                f"former_keys of {path_of(store)} contain its encryption_key {path_of(encryption_key)}: list only the "
                "keys that the store had before"
            )
    for key in (*([] if encryption_key is None else [encryption_key]), *former):
        reason = f"S3 and CloudWatch Logs encrypt with keys of their own region: use a key in {region_of(store)}"
        require_own_region(store, key, reason)
    return encryption_key, former


def warn_about_key(construct: IConstruct, key: kms.IKey, wanted: str) -> None:
    """Warn that the policy of a key that this app does not create must allow something.

    Args:
        construct: what uses the key.
        key: the key.
        wanted: who needs which permission, as the end of "the policy allows …".
    """
    Annotations.of(construct).add_warning_v2(
        KEY_WARNING,
        f"this app does not create the key {path_of(key)} and cannot change the key's policy. Make sure that the "
        f"policy allows {wanted}. Then acknowledge this",
    )


def warn_about_store_key(store: IConstruct, key: kms.IKey, condition: Mapping[str, object]) -> None:
    """Warn that the functions of a store cannot be created until CloudWatch Logs is allowed to use the store's key.

    Args:
        store: the store.
        key: the store's KMS key.
        condition: the condition of the statement for CloudWatch Logs.
    """
    if not has_own_policy(key):
        partition, account = _owner_of(store, key)
        region = stack_of(store).region
        suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
        service = "CloudWatch Logs" if has_token(region) else f"CloudWatch Logs (logs.{region}.{suffix})"
        warn_about_key(
            store,
            key,
            f"{service} to use the key (kms:Encrypt*, kms:Decrypt*, kms:ReEncrypt*, kms:GenerateDataKey*, "
            f"kms:Describe*) under the condition {condition_in_words(store, key, condition)}, and IAM policies to "
            "grant access to the key. The statement for IAM policies allows kms:* to the principal "
            f"arn:{partition}:iam::{account}:root of the key's account",
        )


def condition_in_words(scope: IConstruct, key: kms.IKey, condition: Mapping[str, object]) -> str:
    """The condition of a statement as a warning shows it, without the JSON of tokens.

    Args:
        scope: what uses the key.
        key: the key, which is in the partition of the scope.
        condition: the condition, in which a literal ARN may contain tokens.
    """
    return with_placeholders(json.dumps(condition), partition=_owner_of(scope, key)[0])


def _owner_of(scope: IConstruct, key: kms.IKey) -> tuple[str, str]:
    """The partition and account of a key: of its ARN, or of the stack if the whole ARN is a token."""
    parts = key.key_arn.split(":")
    stack = stack_of(scope)
    partition, account = (parts[1], parts[4]) if len(parts) > 4 else (stack.partition, stack.account)
    return with_placeholders(partition), with_placeholders(account)


def warn_about_topic(construct: IConstruct, topic: sns.ITopic, service: str) -> None:
    """Warn if a service may lack permission for a topic or its key, and this app cannot add it.

    "Enable compatibility between event sources from AWS services and encrypted topics", in the developer guide of
    Amazon SNS, lists what the policy of a key needs.

    Args:
        construct: what publishes.
        topic: the topic.
        service: who publishes, such as `cloudwatch.amazonaws.com`.
    """
    if not isinstance(topic.node.default_child, sns.CfnTopic):
        Annotations.of(construct).add_warning_v2(
            TOPIC_WARNING,
            f"this app does not create the topic {path_of(topic)} and cannot change the policy of the topic or of its "
            f"key, so messages may be lost. Make sure that the topic's policy allows {service} to publish "
            f"(sns:Publish). If the topic has a key, make sure that the key's policy allows {service} to use the key "
            "(kms:Decrypt, kms:GenerateDataKey). Then acknowledge this",
        )
        return
    key = topic.master_key
    if key is not None and not has_own_policy(key):
        Annotations.of(construct).add_warning_v2(
            TOPIC_WARNING,
            f"this app does not create the key {path_of(key)} of the topic {path_of(topic)} and cannot change the "
            f"key's policy, so messages may be lost. Make sure that the policy allows {service} to use the key "
            "(kms:Decrypt, kms:GenerateDataKey), or give the topic a key of the app. Then acknowledge this",
        )
