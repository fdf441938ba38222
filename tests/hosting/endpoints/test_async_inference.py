"""Asynchronous endpoints: configuration, bucket, permissions, and what they cannot have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Annotations, Match
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from cdk_triton import (
    AsyncInference,
    ContainerEnvironment,
    DataCapture,
    ServingPlatform,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

CONFIG, ENDPOINT, BUCKET = "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Endpoint", "AWS::S3::Bucket"
IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
DAYS = cdk.Duration.days


@pytest.fixture(name="bucket")
def _bucket(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_name(stack, "Given", "given")


def config(world: World, stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = world.only(stack, CONFIG)["Properties"]["AsyncInferenceConfig"]
    return found


def own_bucket(world: World, stack: cdk.Stack) -> dict[str, Any]:
    buckets = world.resources(stack, BUCKET)
    (found,) = (each for name, each in buckets.items() if name.startswith("EndpointAsyncBucket"))
    return dict(found)


def policy(world: World, stack: cdk.Stack) -> tuple[str, list[dict[str, Any]]]:
    ((name, found),) = ((n, p) for n, p in world.policies(stack).items() if n.startswith("EndpointAsync"))
    return name, found["Properties"]["PolicyDocument"]["Statement"]


def actions(statements: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Statement by its actions."""
    return {
        each["Action"] if isinstance(each["Action"], str) else " ".join(each["Action"]): each for each in statements
    }


def warnings(stack: cdk.Stack, code: str) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(rf"{code}\]"))
    return [str(each.entry.data) for each in found]


def test_without_arguments_the_endpoint_makes_a_bucket_that_expires(
    world: World, stack: cdk.Stack, model: TritonModel, flattened: Callable[[Any], str]
) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference())

    bucket = own_bucket(world, stack)
    rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {each["Prefix"]: each["ExpirationInDays"] for each in rules} == {
        "async/input/": 7,
        "async/output/": 7,
        "async/failures/": 7,
    }
    assert bucket["Properties"]["PublicAccessBlockConfiguration"]["RestrictPublicBuckets"] is True
    assert bucket["Properties"]["BucketEncryption"]
    assert bucket["UpdateReplacePolicy"] == "Retain"
    output = config(world, stack)["OutputConfig"]
    name = stack.resolve(endpoint.async_bucket.bucket_name)["Ref"] if endpoint.async_bucket else ""
    assert {key: flattened(value) for key, value in output.items()} == {
        "S3OutputPath": f"s3://<{name}>/async/output",
        "S3FailurePath": f"s3://<{name}>/async/failures",
    }
    assert warnings(stack, "cdk-triton:Async.*") == []


@pytest.mark.parametrize("inference_type", ["generate", "generate_stream"])
def test_a_container_that_generates_is_not_asynchronous(
    messages: Messages, world: World, stack: cdk.Stack, inference_type: Literal["generate", "generate_stream"]
) -> None:
    settings = ContainerEnvironment(inference_type=inference_type)
    model = TritonModel(stack, "Streams", repository=world.repository(), platform=world.platform, environment=settings)
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference())


def test_everything_is_in_the_configuration_as_the_api_has_it(
    world: World, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket
) -> None:
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:111122223333:key/a")
    topics = [sns.Topic.from_topic_arn(stack, n, f"arn:aws:sns:eu-west-1:111122223333:{n}") for n in ("Done", "Failed")]
    given = AsyncInference(
        bucket=bucket,
        input_prefix="search/in",
        output_prefix="search/out",
        failure_prefix="search/failed",
        encryption_key=key,
        success_topic=topics[0],
        error_topic=topics[1],
        max_concurrent_invocations_per_instance=3,
    )
    TritonEndpoint(stack, "Endpoint", model=model, asynchronous=given)

    found = config(world, stack)
    assert found == {
        "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 3},
        "OutputConfig": {
            "KmsKeyId": key.key_arn,
            "NotificationConfig": {"SuccessTopic": topics[0].topic_arn, "ErrorTopic": topics[1].topic_arn},
            "S3OutputPath": "s3://given/search/out",
            "S3FailurePath": "s3://given/search/failed",
        },
    }
    shape = ServiceModel(Loader().load_service_model("sagemaker", "service-2")).shape_for("AsyncInferenceConfig")
    assert not ParamValidator().validate(found, shape).has_errors()


def test_a_real_time_endpoint_has_none_of_it(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)

    assert endpoint.async_bucket is None
    assert "AsyncInferenceConfig" not in world.only(stack, CONFIG)["Properties"]
    assert not [name for name in world.policies(stack) if name.startswith("EndpointAsync")]


def test_the_role_reads_and_writes_by_prefix_before_the_endpoint_exists(
    world: World, stack: cdk.Stack, model: TritonModel, flattened: Callable[[Any], str]
) -> None:
    key, other = kms.Key(stack, "Key"), kms.Key(stack, "Other")
    topic = sns.Topic(stack, "Topic", master_key=other)
    given = AsyncInference(encryption_key=key, success_topic=topic, error_topic=topic)
    TritonEndpoint(stack, "Endpoint", model=model, asynchronous=given)

    name, statements = policy(world, stack)
    found = actions(statements)
    assert flattened(found["s3:GetObject"]["Resource"]).endswith("/async/input/*")
    written = found["s3:AbortMultipartUpload s3:PutObject"]["Resource"]
    assert sorted(flattened(each).rpartition(">")[2] for each in written) == ["/async/failures/*", "/async/output/*"]
    assert found["s3:ListBucket"]["Condition"]["StringLike"]["s3:prefix"] == [
        "async/input/*",
        "async/output/*",
        "async/failures/*",
    ]
    assert stack.resolve(topic.topic_arn) == found["sns:Publish"]["Resource"]
    keys = found["kms:Decrypt kms:GenerateDataKey"]["Resource"]
    assert keys == [stack.resolve(each.key_arn) for each in (key, other)]
    assert name in world.only(stack, ENDPOINT)["DependsOn"]


def test_the_page_of_roles_has_what_the_roles_get(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    topic = sns.Topic(stack, "Topic")
    given = AsyncInference(encryption_key=kms.Key(stack, "Key"), error_topic=topic)
    TritonEndpoint(stack, "Endpoint", model=model, asynchronous=given)

    allowed = {action for key in actions(policy(world, stack)[1]) for action in key.split()}
    page = (world.root / "docs" / "roles.md").read_text()
    section = page.partition("With `asynchronous=`")[2].partition("\n#")[0]
    assert set(re.findall(r"`(\w+:\w+)`", section)) == allowed


def test_the_old_permissions_outlive_an_update_to_another_prefix(world: World) -> None:
    world.repository("text")

    def made(name: str, prefix: str) -> str:
        stack = cdk.Stack(world.app(name), "Stack")
        model = TritonModel(stack, "Model", repository=world.repository_again("text"), platform=world.platform)
        TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference(output_prefix=prefix))
        return policy(world, stack)[0]

    # CloudFormation removes another logical id after the endpoint's update.
    assert made("a", "one") == made("b", "one") != made("c", "two")


def test_the_roles_of_all_instance_pools_are_allowed_and_one_more_is_another_policy(world: World) -> None:
    world.repository("text")

    def made(name: str, *types: str) -> tuple[str, int]:
        stack = cdk.Stack(world.app(name), "Stack")
        models = [
            TritonModel(
                stack,
                f"Model{number}",
                repository=world.repository_again("text"),
                platform=ServingPlatform(release="25.09", instance_type=instance_type),
            )
            for number, instance_type in enumerate(types)
        ]
        variant = TritonVariant(model=models[0], fallback_models=models[1:])
        TritonEndpoint(stack, "Endpoint", variants=[variant], asynchronous=AsyncInference())
        ((id, found),) = ((n, p) for n, p in world.policies(stack).items() if n.startswith("EndpointAsync"))
        return id, len(found["Properties"]["Roles"])

    two, three = (
        made("a", "ml.g5.2xlarge", "ml.g6.2xlarge"),
        made("b", "ml.g5.2xlarge", "ml.g6.2xlarge", "ml.g4dn.2xlarge"),
    )
    assert (two[1], three[1]) == (2, 3)
    assert two[0] != three[0]


def test_callers_may_submit_and_read_and_not_invoke(
    world: World, stack: cdk.Stack, model: TritonModel, flattened: Callable[[Any], str]
) -> None:
    key = kms.Key(stack, "Key")
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference(encryption_key=key))
    caller = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())

    assert endpoint.grant_invoke(caller).success

    found = actions(world.statements(stack, "Caller"))
    assert set(found) == {
        "sagemaker:InvokeEndpointAsync",
        "s3:AbortMultipartUpload s3:PutObject",
        "s3:GetObject",
        "s3:ListBucket",
        "kms:Decrypt kms:GenerateDataKey",
    }
    assert flattened(found["s3:AbortMultipartUpload s3:PutObject"]["Resource"]).endswith("/async/input/*")
    read = [flattened(each).rpartition(">")[2] for each in found["s3:GetObject"]["Resource"]]
    assert sorted(read) == ["/async/failures/*", "/async/output/*"]
    assert found["s3:ListBucket"]["Condition"] == {"StringLike": {"s3:prefix": ["async/output/*", "async/failures/*"]}}


def test_a_grant_to_nobody_is_warned_of(stack: cdk.Stack, model: TritonModel) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference())
    endpoint.grant_invoke(iam.AccountPrincipal("444455556666"))
    assert len(warnings(stack, "cdk-triton:GrantWithoutEffect")) == 1


def test_target_models_are_rejected(messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference())
    caller = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    with messages.raises(ConfigurationError):
        endpoint.grant_invoke(caller, target_models=["text"])


def test_callers_find_the_locations_in_the_parameter_store(
    world: World, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket
) -> None:
    given = AsyncInference(bucket=bucket)
    TritonEndpoint(stack, "Endpoint", model=model, asynchronous=given, ssm_parameter_path="/search")

    parameters = world.resources(stack, "AWS::SSM::Parameter").values()
    values = {each["Properties"]["Name"]: each["Properties"]["Value"] for each in parameters}
    assert {name: values[f"/search/async/{name}"] for name in ("input", "output", "failures")} == {
        "input": "s3://given/async/input",
        "output": "s3://given/async/output",
        "failures": "s3://given/async/failures",
    }


def test_a_bucket_of_the_app_gets_rules(world: World, stack: cdk.Stack, model: TritonModel) -> None:
    bucket = s3.Bucket(stack, "Mine")
    TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference(bucket=bucket, expiration=DAYS(3)))

    buckets = world.resources(stack, BUCKET)
    (mine,) = (each for name, each in buckets.items() if name.startswith("Mine"))
    rules = mine["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {each["Prefix"]: each["ExpirationInDays"] for each in rules} == dict.fromkeys(
        ("async/input/", "async/output/", "async/failures/"), 3
    )
    assert not [name for name in buckets if name.startswith("EndpointAsync")]


def test_what_the_app_cannot_see_to_is_warned_of(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack", env=IRELAND)
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    bucket = s3.Bucket.from_bucket_attributes(stack, "Given", bucket_name="given", account="444455556666")
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:444455556666:key/a")
    topic = sns.Topic.from_topic_arn(stack, "Topic", "arn:aws:sns:eu-west-1:111122223333:done")
    given = AsyncInference(bucket=bucket, encryption_key=key, success_topic=topic)
    TritonEndpoint(stack, "Endpoint", model=model, asynchronous=given)

    codes = ("AsyncBucketNotGranted", "AsyncBucketNotExpiring", "KeyNotGranted", "AsyncTopicNotGranted")
    for code in (f"cdk-triton:{each}" for each in codes):
        (warning,) = warnings(stack, code)
        messages.record(code, warning)


def test_requests_that_do_not_fit_into_an_instance_are_warned_of(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    model = TritonModel(
        stack,
        "Model",
        repository=world.repository(),
        platform=ServingPlatform(release="26.05", instance_type="ml.g5.xlarge"),
        max_payload=cdk.Size.gibibytes(1),
    )
    given = AsyncInference(max_concurrent_invocations_per_instance=5)
    TritonEndpoint(stack, "Five", model=model, asynchronous=given)
    assert warnings(stack, "cdk-triton:PayloadsExceedInstance") == []  # 15 GiB of 16

    given = AsyncInference(max_concurrent_invocations_per_instance=6)
    TritonEndpoint(stack, "Six", model=model, asynchronous=given)
    (warning,) = warnings(stack, "cdk-triton:PayloadsExceedInstance")
    messages.record("cdk-triton:PayloadsExceedInstance", warning)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"max_concurrent_invocations_per_instance": 0}, id="none at a time"),
        pytest.param({"max_concurrent_invocations_per_instance": 1001}, id="1001 at a time"),
        pytest.param({"max_concurrent_invocations_per_instance": True}, id="a truth value"),
        pytest.param({"expiration": cdk.Duration.hours(12)}, id="half a day"),
        pytest.param({"expiration": cdk.Duration.hours(36)}, id="a day and a half"),
        pytest.param({"output_prefix": "/out"}, id="slash before"),
        pytest.param({"failure_prefix": ""}, id="no prefix"),
        pytest.param({"input_prefix": "async"}, id="above the others"),
        pytest.param({"input_prefix": "async/output"}, id="the same"),
        pytest.param({"output_prefix": "async/failures/out"}, id="below another"),
    ],
)
def test_what_sagemaker_would_reject_is_rejected(messages: Messages, arguments: dict[str, Any]) -> None:
    with messages.raises(ConfigurationError) as caught:
        AsyncInference(**arguments)
    assert all(name in str(caught.value) for name in arguments)


@pytest.mark.parametrize("prefix", ["async/output", "async", "async/output/more"])
def test_prefixes_of_another_endpoint_are_rejected(
    messages: Messages, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket, prefix: str
) -> None:
    TritonEndpoint(stack, "First", model=model, asynchronous=AsyncInference(bucket=bucket))
    other = s3.Bucket.from_bucket_name(stack, "Again", "given")

    def made(id: str, prefix: str) -> None:
        given = AsyncInference(
            bucket=other, input_prefix="other/input", output_prefix=prefix, failure_prefix="other/failures"
        )
        TritonEndpoint(stack, id, model=model, asynchronous=given)

    with messages.raises(ConfigurationError):
        made("Second", prefix)
    made("Third", "other/out")


def test_values_without_an_effect_on_the_bucket_are_rejected(messages: Messages, bucket: s3.IBucket) -> None:
    with messages.raises(ConfigurationError):
        AsyncInference(bucket=bucket, expiration=DAYS(3))
    with messages.raises(ConfigurationError):
        AsyncInference(bucket=bucket, access_logs_bucket=bucket)


def test_no_model_writes_where_archives_are(messages: Messages, stack: cdk.Stack) -> None:
    store = TritonArtifactStore(stack, "Store")
    AsyncInference(bucket=store.bucket)
    with messages.raises(ConfigurationError):
        AsyncInference(bucket=store.bucket, output_prefix="artifacts")


def test_features_that_asynchronous_inference_has_not_are_rejected(
    messages: Messages, world: World, stack: cdk.Stack, model: TritonModel, bucket: s3.IBucket
) -> None:
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": world.repository()}, platform=world.platform)
    one, other = (TritonVariant(model=model, variant_name=name) for name in ("One", "Other"))
    cases: dict[str, dict[str, Any]] = {
        "multi-model": {"model": fleet},
        "variants": {"variants": [one, other]},
        "shadow": {"variants": [one], "shadow": other},
        "data_capture": {"model": model, "data_capture": DataCapture(bucket=bucket, sampling_percentage=1)},
    }
    for named, arguments in cases.items():
        with messages.raises(ConfigurationError) as caught:
            TritonEndpoint(stack, "Endpoint", **arguments, asynchronous=AsyncInference())
        assert named in str(caught.value)


@pytest.mark.parametrize("what", ["bucket", "key", "topic", "logs"])
def test_things_of_another_region_are_rejected(messages: Messages, world: World, what: str) -> None:
    stack = cdk.Stack(world.app(), "Stack", env=IRELAND)
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    far = s3.Bucket.from_bucket_attributes(stack, "Far", bucket_name="far", region="us-east-1")
    given = {
        "bucket": lambda: AsyncInference(bucket=far),
        "key": lambda: AsyncInference(
            encryption_key=kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:us-east-1:111122223333:key/a")
        ),
        "topic": lambda: AsyncInference(
            error_topic=sns.Topic.from_topic_arn(stack, "Topic", "arn:aws:sns:us-east-1:111122223333:a")
        ),
        "logs": lambda: AsyncInference(access_logs_bucket=far),
    }[what]()
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, asynchronous=given)


def test_keys_that_cannot_be_granted_are_rejected(messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
    asymmetric = kms.Key(stack, "Key", key_spec=kms.KeySpec.RSA_2048, key_usage=kms.KeyUsage.ENCRYPT_DECRYPT)
    for key in (asymmetric, kms.Alias.from_alias_name(stack, "Alias", "alias/a")):
        with messages.raises(ConfigurationError):
            TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference(encryption_key=key))


def test_a_fifo_topic_is_rejected(messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
    topic = sns.Topic(stack, "Topic", fifo=True)
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference(success_topic=topic))
