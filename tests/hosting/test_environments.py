"""What AWS would not find, because it is in another account or region, is refused at synth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from cdk_triton import (
    CodeBuildGpuBuilder,
    DataCapture,
    ServingPlatform,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

HERE = cdk.Environment(account="111122223333", region="eu-west-1")
NORTH = cdk.Environment(account="111122223333", region="eu-north-1")
OTHERS = cdk.Environment(account="444455556666", region="eu-west-1")


@pytest.fixture(name="app")
def _app(world: World) -> cdk.App:
    return world.app()


@pytest.fixture(name="stack")
def _stack(app: cdk.App) -> cdk.Stack:
    return cdk.Stack(app, "Here", env=HERE)


@pytest.mark.parametrize(
    ("env", "there"),
    [(NORTH, "eu-north-1"), (OTHERS, "444455556666")],
    ids=["region", "account"],
)
def test_an_endpoint_is_where_its_model_is(
    messages: Messages, world: World, app: cdk.App, stack: cdk.Stack, env: cdk.Environment, there: str
) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    with messages.raises(ConfigurationError) as caught:
        TritonEndpoint(cdk.Stack(app, "There", env=env), "Endpoint", model=model)
    assert there in str(caught.value)


def test_what_only_the_deployment_knows_is_not_rejected(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    TritonEndpoint(cdk.Stack(app, "There"), "Endpoint", model=model)


def test_a_model_is_where_its_vpc_is(messages: Messages, world: World, app: cdk.App, stack: cdk.Stack) -> None:
    vpc = ec2.Vpc(cdk.Stack(app, "There", env=NORTH), "Vpc", max_azs=2)
    with messages.raises(ConfigurationError):
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, vpc=vpc)


def test_a_model_has_a_role_of_its_account(messages: Messages, world: World, stack: cdk.Stack) -> None:
    role = iam.Role.from_role_arn(stack, "Theirs", "arn:aws:iam::444455556666:role/theirs")
    with messages.raises(ConfigurationError):
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, role=role)


def test_a_store_is_where_its_key_is(messages: Messages, app: cdk.App, stack: cdk.Stack) -> None:
    key = kms.Key(cdk.Stack(app, "There", env=NORTH), "Key")
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", encryption_key=key)


@pytest.mark.parametrize(("env", "there"), [(NORTH, "eu-north-1"), (OTHERS, "444455556666")], ids=["region", "account"])
def test_access_logs_stay_where_the_store_is(
    messages: Messages, app: cdk.App, stack: cdk.Stack, env: cdk.Environment, there: str
) -> None:
    bucket = s3.Bucket(cdk.Stack(app, "There", env=env), "Logs")
    with messages.raises(ConfigurationError) as caught:
        TritonArtifactStore(stack, "Store", access_logs_bucket=bucket)
    assert there in str(caught.value)


def test_volumes_are_encrypted_with_a_key_of_their_region(
    messages: Messages, world: World, app: cdk.App, stack: cdk.Stack
) -> None:
    key = kms.Key(cdk.Stack(app, "There", env=NORTH), "Key")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, encryption_key=key)


def test_captured_data_is_encrypted_with_a_key_of_its_buckets_region(
    messages: Messages, world: World, app: cdk.App, stack: cdk.Stack
) -> None:
    key = kms.Key(cdk.Stack(app, "There", env=NORTH), "Key")
    capture = DataCapture(bucket=s3.Bucket(stack, "Captured"), sampling_percentage=5, encryption_key=key)
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, data_capture=capture)


def test_access_logs_may_go_to_a_bucket_imported_with_its_region(app: cdk.App, stack: cdk.Stack) -> None:
    there = cdk.Stack(app, "There", env=NORTH)
    bucket = s3.Bucket.from_bucket_attributes(there, "Logs", bucket_name="logs", region="eu-west-1")
    TritonArtifactStore(stack, "Store", access_logs_bucket=bucket)


def test_builds_write_with_a_key_of_their_region(messages: Messages, app: cdk.App, stack: cdk.Stack) -> None:
    key = kms.Key(cdk.Stack(app, "There", env=NORTH), "Key")
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", builders=[CodeBuildGpuBuilder(encryption_key=key)])


def test_a_key_may_be_one_of_another_account(stack: cdk.Stack) -> None:
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:444455556666:key/theirs")
    TritonArtifactStore(stack, "Store", encryption_key=key)


def own_image(region: str) -> ServingPlatform:
    image = f"111122223333.dkr.ecr.{region}.amazonaws.com/triton@sha256:{'a' * 64}"
    return ServingPlatform(image=image, release="25.09", instance_type="ml.g5.2xlarge")


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_an_own_image_is_where_its_model_is(messages: Messages, world: World, stack: cdk.Stack, kind: str) -> None:
    def make(id: str, platform: ServingPlatform) -> None:
        if kind == "single":
            TritonModel(stack, id, repository=world.repository(), platform=platform)
        else:
            TritonMultiModel(stack, id, ensembles={"text": world.repository()}, platform=platform)

    make("Near", own_image("eu-west-1"))
    with messages.raises(ConfigurationError) as caught:
        make("Far", own_image("eu-north-1"))
    assert "eu-north-1" in str(caught.value)


def test_an_own_image_may_be_where_only_the_deployment_goes(world: World, app: cdk.App) -> None:
    anywhere = cdk.Stack(app, "Anywhere")
    TritonModel(anywhere, "Model", repository=world.repository(), platform=own_image("eu-north-1"))


THEIR_TOPICS = ["arn:aws:sns:eu-north-1:111122223333:pager", "arn:aws:sns:eu-west-1:444455556666:pager"]


def test_alarms_are_published_in_their_region(messages: Messages, world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)
    there, of_others = (sns.Topic.from_topic_arn(stack, arn[12:26], arn) for arn in THEIR_TOPICS)
    with messages.raises(ConfigurationError) as caught:
        endpoint.monitor(topic=there)
    assert "eu-north-1" in str(caught.value)

    endpoint.monitor(topic=of_others)  # the refused one left nothing behind


@pytest.mark.parametrize("arn", THEIR_TOPICS, ids=["region", "account"])
def test_rollbacks_are_told_to_a_topic_of_the_same_environment(
    messages: Messages, world: World, stack: cdk.Stack, arn: str
) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, endpoint_name="search")
    with messages.raises(ConfigurationError) as caught:
        endpoint.add_rollback_notification(sns.Topic.from_topic_arn(stack, "Topic", arn))
    assert arn in str(caught.value)
