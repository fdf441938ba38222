"""Keys, topics and buckets whose policies the app cannot change: a warning says what they have to allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Annotations, Match

from cdk_triton import AsyncInference, DataCapture, TritonArtifactStore, TritonEndpoint, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
OURS, THEIRS = (f"arn:aws:kms:eu-west-1:{account}:key/aaaa" for account in ("111122223333", "999999999999"))
KEY, TOPIC, CAPTURE = (f"cdk-triton:{name}NotGranted" for name in ("Key", "Topic", "Capture"))


@pytest.fixture(name="stack")
def _stack(world: World) -> cdk.Stack:
    return cdk.Stack(world.app(), "Search", env=IRELAND)


def warnings(stack: cdk.Stack, code: str) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(f"\\[ack: {code}\\]"))
    return [str(each.entry.data) for each in found]


def endpoint(world: World, stack: cdk.Stack, **options: object) -> TritonEndpoint:
    store = TritonArtifactStore(stack, "Store", builders=[])
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    return TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search", **options)  # type: ignore[arg-type]


def imported(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic.from_topic_arn(stack, "Topic", "arn:aws:sns:eu-west-1:111122223333:pager")


def with_an_imported_key(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic(stack, "Topic", master_key=kms.Key.from_key_arn(stack, "Key", OURS))


def with_the_name_of_an_alias(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic(stack, "Topic", master_key=kms.Alias.from_alias_name(stack, "Key", "alias/aws/sns"))


def with_a_key_of_the_app(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic(stack, "Topic", master_key=kms.Key(stack, "Key"))


def with_an_alias_of_the_app(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic(stack, "Topic", master_key=kms.Key(stack, "Key").add_alias("alias/own"))


def without_a_key(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic(stack, "Topic")


@pytest.mark.parametrize("make", [imported, with_an_imported_key, with_the_name_of_an_alias])
def test_a_topic_that_nobody_can_open_here_is_warned_about(
    make: Callable[[cdk.Stack], sns.ITopic], world: World, stack: cdk.Stack, messages: Messages
) -> None:
    made, topic = endpoint(world, stack), make(stack)
    made.monitor(topic=topic)
    made.add_rollback_notification(topic)

    found = warnings(stack, TOPIC)
    for each in found:
        messages.record(TOPIC, each)
    assert [
        service for service in ("cloudwatch", "events") if any(f"{service}.amazonaws.com" in each for each in found)
    ]
    assert len(found) == 2


@pytest.mark.parametrize("make", [with_a_key_of_the_app, with_an_alias_of_the_app, without_a_key])
def test_a_topic_of_the_app_is_opened_and_not_warned_about(
    make: Callable[[cdk.Stack], sns.ITopic], world: World, stack: cdk.Stack
) -> None:
    made, topic = endpoint(world, stack), make(stack)
    made.monitor(topic=topic)
    made.add_rollback_notification(topic)
    made.add_rollback_notification()

    assert warnings(stack, TOPIC) == []


def test_the_warnings_can_be_acknowledged(world: World, stack: cdk.Stack) -> None:
    made = endpoint(world, stack)
    made.monitor(topic=imported(stack))
    cdk.Annotations.of(stack).acknowledge_warning(TOPIC, "its policy allows it")

    assert warnings(stack, TOPIC) == []


def test_a_store_with_an_imported_key_is_warned_about(world: World, stack: cdk.Stack, messages: Messages) -> None:
    TritonArtifactStore(stack, "Store", encryption_key=kms.Key.from_key_arn(stack, "Key", OURS))

    (found,) = warnings(stack, KEY)
    messages.record(KEY, found)


@pytest.mark.parametrize(
    ("arn", "principal", "groups"),
    [
        pytest.param(
            "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/a",
            "arn:aws-us-gov:iam::111122223333:root",
            "arn:aws-us-gov:logs:<region>:<account>:log-group:*",
            id="of another partition",
        ),
        pytest.param(
            cdk.Fn.import_value("Key"),
            "arn:<partition>:iam::<account>:root",
            "arn:<partition>:logs:<region>:<account>:log-group:*",
            id="known at the deployment only",
        ),
    ],
)
def test_the_warning_of_a_store_contains_the_statements_without_tokens(
    world: World, arn: str, principal: str, groups: str
) -> None:
    stack = cdk.Stack(world.app(), "Anywhere")
    TritonArtifactStore(stack, "Store", encryption_key=kms.Key.from_key_arn(stack, "Key", arn))

    (found,) = warnings(stack, KEY)
    assert f"kms:* to the principal {principal} of" in found
    assert f'{{"ArnLike": {{"kms:EncryptionContext:aws:logs:arn": "{groups}"}}}}' in found


def test_a_store_with_a_key_of_the_app_is_not_warned_about(world: World, stack: cdk.Stack) -> None:
    store = TritonArtifactStore(stack, "Store", encryption_key=kms.Key(stack, "Key"))
    store.grant_read(iam.AccountPrincipal("999999999999"))

    assert warnings(stack, KEY) == []


def test_another_account_that_an_imported_key_does_not_know_is_warned_about(
    world: World, stack: cdk.Stack, messages: Messages
) -> None:
    key = kms.Key.from_key_arn(stack, "Key", OURS)
    TritonArtifactStore(stack, "Store", former_keys=[key])
    assert warnings(stack, KEY) == []
    granting = cdk.Stack(world.app("granting"), "Search", env=IRELAND)
    key = kms.Key.from_key_arn(granting, "Key", OURS)
    TritonArtifactStore(granting, "Store", former_keys=[key]).grant_read(iam.AccountPrincipal("999999999999"))

    (found,) = warnings(granting, KEY)
    messages.record(KEY, found)


def test_capture_into_another_account_is_warned_about(world: World, stack: cdk.Stack, messages: Messages) -> None:
    there = s3.Bucket.from_bucket_attributes(
        stack,
        "There",
        bucket_name="there",
        account="999999999999",
        encryption_key=kms.Key.from_key_arn(stack, "Key", THEIRS),
    )
    endpoint(world, stack, data_capture=DataCapture(bucket=there, sampling_percentage=5))

    ((bucket,), (key,)) = warnings(stack, CAPTURE), warnings(stack, KEY)
    messages.record(CAPTURE, bucket)
    messages.record(KEY, key)


def test_capture_in_the_own_account_is_not_warned_about(world: World, stack: cdk.Stack) -> None:
    here = s3.Bucket.from_bucket_attributes(
        stack, "Here", bucket_name="here", encryption_key=kms.Key.from_key_arn(stack, "Key", OURS)
    )
    endpoint(world, stack, data_capture=DataCapture(bucket=here, sampling_percentage=5))

    assert warnings(stack, CAPTURE) == warnings(stack, KEY) == []


def test_volumes_with_a_key_of_another_account_are_warned_about(
    world: World, stack: cdk.Stack, messages: Messages
) -> None:
    endpoint(world, stack, encryption_key=kms.Key.from_key_arn(stack, "Key", THEIRS))

    (found,) = warnings(stack, KEY)
    messages.record(KEY, found)


def test_a_bucket_for_access_logs_with_a_key_is_warned_of(messages: Messages, world: World, stack: cdk.Stack) -> None:
    logs = s3.Bucket(stack, "Logs", encryption_key=kms.Key(stack, "Key"))
    store = TritonArtifactStore(stack, "Store", builders=[], access_logs_bucket=logs)
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
    TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference(access_logs_bucket=logs))

    of_store, of_endpoint = warnings(stack, "cdk-triton:AccessLogsWithKey")

    assert of_store == of_endpoint
    messages.record("cdk-triton:AccessLogsWithKey", of_store)


def test_a_bucket_for_access_logs_without_a_key_is_not_warned_of(stack: cdk.Stack) -> None:
    logs = s3.Bucket(stack, "Logs", encryption=s3.BucketEncryption.S3_MANAGED)
    TritonArtifactStore(stack, "Store", builders=[], access_logs_bucket=logs)
    assert warnings(stack, "cdk-triton:AccessLogsWithKey") == []
