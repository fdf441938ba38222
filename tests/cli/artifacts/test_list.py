"""`cdk-triton artifacts list`: what is in a store, and who uses it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.cli.artifacts.conftest import BUILD, store_template
from tests.docs.blocks import of_kind, shape

from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.artifacts.users import read_users

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import World

    from golden_messages import Messages


def listed(run: Any, world: World) -> dict[str, Any]:
    outcome = run("artifacts", "list", "--store", world.stack, "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    document: dict[str, Any] = json.loads(outcome.out)
    return document


@pytest.mark.slow
def test_each_artifact_is_listed_with_its_users(run: Any, world: World) -> None:
    image, text = world.commit("image", "1"), world.commit("text", "1", build=BUILD)
    world.model("the-model", ModelDataUrl=world.archive("text", text))

    found = listed(run, world)

    assert found["bucket"] == world.bucket
    rows = {each["repository"]: each for each in found["artifacts"]}
    assert list(rows) == ["image", "text"]
    assert {name: rows["image"][name] for name in ("key", "platform", "size", "built", "in_use_by")} == {
        "key": image,
        "platform": "25.09-a10g",
        "size": 9,
        "built": False,
        "in_use_by": [],
    }
    assert (rows["text"]["built"], rows["text"]["in_use_by"]) == (True, ["model the-model"])


@pytest.mark.slow
def test_an_artifact_is_used_by_the_fleets_that_serve_a_copy_of_it(run: Any, world: World) -> None:
    now, before, old = (world.commit("text", name) for name in ("3", "2", "1"))
    for name, key in (("3", now), ("2", before), ("1", old)):
        world.serve("fleet", f"text-{name}.tar.gz", key)
    world.index("fleet", {"text": "text-3.tar.gz"}, {"text": "text-2.tar.gz"})
    world.model("fleet-model", Mode="MultiModel", ModelDataUrl=f"s3://{world.bucket}/fleets/fleet/25.09-a10g/")

    users = {each["key"]: each["in_use_by"] for each in listed(run, world)["artifacts"]}

    assert users == {now: ["multi-model fleet (current)"], before: ["multi-model fleet (previous)"], old: []}


@pytest.mark.slow
def test_the_target_models_that_callers_send_are_joined_with_their_artifacts(
    messages: Messages, run: Any, world: World
) -> None:
    now, before, old = (world.commit("text", name) for name in ("3", "2", "1"))
    for name, key in (("3", now), ("2", before), ("1", old)):
        world.serve("fleet", f"text-{name}.tar.gz", key)
    world.index("fleet", {"text": "text-3.tar.gz"}, {"text": "text-2.tar.gz"})
    world.model("fleet-model", Mode="MultiModel", ModelDataUrl=f"s3://{world.bucket}/fleets/fleet/25.09-a10g/")
    world.endpoint("fleet-endpoint", "fleet-model")
    since = datetime.now(UTC) - world.age

    rows = listed(run, world)["target_models"]
    found = {each["target_model"]: (each["key"], each["state"]) for each in rows}
    lines = [" ".join(line.split()) for line in run("artifacts", "list", "--store", world.stack).out.splitlines()]
    shown = run("artifacts", "show", "text-2.tar.gz", "--store", world.stack, "--format", "json")
    missing = run("artifacts", "show", "text-9.tar.gz", "--store", world.stack)

    assert found == {
        "text-1.tar.gz": (old, "dropped"),
        "text-2.tar.gz": (before, "previous"),
        "text-3.tar.gz": (now, "current"),
    }
    assert all(each["endpoints"] == ["fleet-endpoint"] for each in rows)
    assert all(abs(datetime.fromisoformat(each["since"]) - since) < timedelta(minutes=2) for each in rows)
    (line,) = [line for line in lines if line.startswith("text-3.tar.gz ")]
    assert line.startswith(f"text-3.tar.gz {now[:12]} current 20")
    assert line.endswith(" fleet-endpoint fleets/fleet/25.09-a10g/")
    assert json.loads(shown.out)["artifact_key"] == before
    assert missing.status == 2
    messages.record("cdk-triton artifacts", missing.said.replace(world.bucket, "BUCKET"))


def test_a_build_that_runs_is_listed(run: Any, world: World) -> None:
    world.lock("ab" * 32)

    outcome = run("artifacts", "list", "--store", world.stack)

    assert outcome.status == 0
    (row,) = [line for line in outcome.out.splitlines() if line.startswith("text")]
    assert " ".join(row.split()) == ("text abababababab running 2027-01-15 08:00 codebuild cdk-triton-0123456789abcdef")
    assert listed(run, world)["builds"] == [
        {
            "key": "ab" * 32,
            "repository": "text",
            "build": "cdk-triton-0123456789abcdef",
            "state": "running",
            "kind": "codebuild",
            "link": "log",
            "since": 1.8e9,
        }
    ]


def test_the_document_has_the_keys_and_types_of_its_page(run: Any, world: World) -> None:
    (shown,) = of_kind("cli/artifacts/test_list.py")
    key = world.commit("text", "1", build=BUILD)
    world.serve("fleet", "text-1.tar.gz", key)
    world.index("fleet", {"text": "text-1.tar.gz"})
    world.model("fleet-model", Mode="MultiModel", ModelDataUrl=f"s3://{world.bucket}/fleets/fleet/25.09-a10g/")
    world.endpoint("fleet-endpoint", "fleet-model")
    world.lock("ab" * 32)

    assert shape(listed(run, world)) == shape(json.loads(shown.text))


def test_the_table_is_for_a_person(run: Any, world: World) -> None:
    key = world.commit("text", "1", build=BUILD)

    lines = run("artifacts", "list", "--store", world.stack).out.splitlines()

    assert lines[0].split()[:4] == ["REPOSITORY", "KEY", "PLATFORM", "SIZE"]
    assert lines[1].split()[:5] == ["text", key[:12], "25.09-a10g", "9", "B"]
    assert lines[1].endswith("built  nobody")
    assert lines[2] == f"s3://{world.bucket}: 1 artifact, 9 B"


def test_what_was_promoted_is_told_from_what_was_built_here(run: Any, world: World) -> None:
    world.commit("text", "1", build=BUILD, promoted_from="the-tested-store")
    world.commit("web", "1", build=BUILD)

    rows = {each["repository"]: each["promoted_from"] for each in listed(run, world)["artifacts"]}
    lines = run("artifacts", "list", "--store", world.stack).out.splitlines()

    assert rows == {"text": "the-tested-store", "web": None}
    assert [line.split()[-2] for line in lines[1:3]] == ["promoted", "built"]


def test_without_a_stack_the_only_store_is_taken_and_several_are_named(
    messages: Messages, run: Any, world: World
) -> None:
    key = world.commit("text", "one")

    alone = run("artifacts", "list", "--format", "json")
    shown = run("artifacts", "show", key, "--format", "json")

    assert json.loads(alone.out)["bucket"] == world.bucket
    assert json.loads(shown.out)["artifact_key"] == key
    template = store_template()
    assert world.deploy(template, "a-store-of-others") == "CREATE_COMPLETE"
    try:
        several = run("artifacts", "list")
    finally:
        world.aws.client("cloudformation").delete_stack(StackName="a-store-of-others")
    assert (several.status, several.out) == (2, "")
    assert "a-store-of-others, the-store" in several.said
    messages.record("cdk-triton artifacts", several.said)


def test_a_region_without_a_store_is_a_usage_error(
    messages: Messages, run: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdk_triton.cli.artifacts.store.STORE_HANDLER", "another.handler")
    outcome = run("artifacts", "list")
    assert outcome.status == 2
    messages.record("cdk-triton artifacts", outcome.said)


def test_a_stack_that_does_not_exist_is_a_usage_error(messages: Messages, run: Any, world: World) -> None:
    outcome = run("artifacts", "list", "--store", "nothing")
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton artifacts", outcome.said)


@pytest.mark.slow
def test_a_stack_without_a_store_is_a_usage_error(messages: Messages, run: Any, world: World) -> None:
    world.deploy({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}, "another")
    outcome = run("artifacts", "list", "--store", "another")
    assert outcome.status == 2
    messages.record("cdk-triton artifacts", outcome.said)


def test_an_aws_that_does_not_answer_is_a_sentence(
    messages: Messages, run: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    outcome = run("artifacts", "list", "--store", world.stack)
    assert (outcome.status, outcome.out) == (1, "")
    messages.record("cdk-triton artifacts", outcome.said)


def test_a_rejection_of_aws_is_a_sentence(messages: Messages, run: Any, world: World) -> None:
    world.put("fleets/fleet/25.09-a10g/index.json", b"[]")
    outcome = run("artifacts", "list", "--store", world.stack)
    assert (outcome.status, outcome.out) == (1, "")
    messages.record("cdk-triton artifacts", outcome.said.replace(world.bucket, "BUCKET"))


def test_an_endpoint_on_a_deleted_model_or_configuration_is_said(messages: Messages, run: Any, world: World) -> None:
    world.model("gone", ModelDataUrl=world.archive("text", "ab" * 32))
    variant = {
        "VariantName": "v",
        "ModelName": "gone",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1.0,
        "InstanceType": "ml.g5.xlarge",
    }
    world.sagemaker.create_endpoint_config(EndpointConfigName="configuration", ProductionVariants=[variant])
    world.sagemaker.create_endpoint(EndpointName="endpoint", EndpointConfigName="configuration")
    world.sagemaker.delete_model(ModelName="gone")

    (unknown,) = listed(run, world)["unknown"]
    messages.record("cdk-triton artifacts", unknown)

    world.sagemaker.delete_endpoint_config(EndpointConfigName="configuration")
    (unknown,) = listed(run, world)["unknown"]
    messages.record("cdk-triton artifacts", unknown)


def test_an_endpoint_with_a_deleted_model_in_an_instance_pool_is_said(run: Any, world: World) -> None:
    for name in ("first", "gone"):
        world.model(name, ModelDataUrl=world.archive(name, "ab" * 32))
    pools = [
        {"InstanceType": "ml.g5.xlarge", "Priority": 1},
        {"InstanceType": "ml.g6.xlarge", "Priority": 2, "ModelNameOverride": "gone"},
    ]
    variant = {
        "VariantName": "v",
        "ModelName": "first",
        "InitialInstanceCount": 1,
        "InstancePools": pools,
        "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
    }
    world.sagemaker.create_endpoint_config(EndpointConfigName="configuration", ProductionVariants=[variant])
    world.sagemaker.create_endpoint(EndpointName="endpoint", EndpointConfigName="configuration")
    assert listed(run, world)["unknown"] == []

    world.sagemaker.delete_model(ModelName="gone")
    (unknown,) = listed(run, world)["unknown"]
    assert "the model 'gone', which was deleted" in unknown


def test_a_component_on_a_deleted_model_is_said(messages: Messages, run: Any, world: World) -> None:
    world.model("gone", ModelDataUrl=world.archive("text", "ab" * 32))
    variant = {"VariantName": "v", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    role = "arn:aws:iam::123456789012:role/role"
    world.sagemaker.create_endpoint_config(
        EndpointConfigName="configuration", ExecutionRoleArn=role, ProductionVariants=[variant]
    )
    world.sagemaker.create_endpoint(EndpointName="endpoint", EndpointConfigName="configuration")
    world.sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="endpoint", WaiterConfig={"Delay": 1})
    world.sagemaker.create_inference_component(
        InferenceComponentName="text",
        EndpointName="endpoint",
        VariantName="v",
        Specification={
            "ModelName": "gone",
            "ComputeResourceRequirements": {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024},
        },
        RuntimeConfig={"CopyCount": 1},
    )
    assert listed(run, world)["unknown"] == []

    world.sagemaker.delete_model(ModelName="gone")
    (unknown,) = listed(run, world)["unknown"]
    messages.record("cdk-triton artifacts", unknown)


class OneComponent:
    """A double of a region with one inference component, which names an archive itself: the local AWS has none such."""

    def pages(self, service: str, operation: str, member: str) -> list[dict[str, Any]]:
        return [{"InferenceComponentName": "own"}] if member == "InferenceComponents" else []

    def client(self, service: str) -> OneComponent:
        return self

    def describe_inference_component(self, *, InferenceComponentName: str) -> dict[str, Any]:  # noqa: N803 - boto3's
        container = {"Image": "image", "ArtifactUrl": "s3://store/artifacts/text/0f/model.tar.gz"}
        return {"InferenceComponentName": InferenceComponentName, "Specification": {"Container": container}}


def test_a_component_that_names_an_archive_itself_keeps_it() -> None:
    users = read_users(cast(Aws, OneComponent()))

    (reference,) = users.references
    assert reference.user == "component own"
    assert reference.covers("store", "artifacts/text/0f/model.tar.gz")
    assert users.unknown == ()
