"""`cdk-triton artifacts list` and `show`: what is in a store, and who uses it."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.cli.artifacts.conftest import key_of, store_template
from tests.docs.blocks import of_kind, shape

from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.artifacts.users import read_users
from cdk_triton.protocol import layout

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import World

    from golden_messages import Messages

BUILD = {
    "schema": 1,
    "build": "cdk-triton-0123456789abcdef",
    "seconds": 812.5,
    "probed": {"gpu": "NVIDIA A10G", "tensorrt": "10.13.3.9"},
    "warnings": ["DALI is 1.51.1, and the release has 1.51.2"],
    "stand_ins": ["trtexec"],
    "steps": [
        {
            "name": "the TensorRT plan of bert",
            "commands": [["trtexec", "--onnx=model.onnx", "--fp16"]],
            "parity": {"y": {"largest_difference": 0.002, "tolerance": 0.01}},
        }
    ],
}


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


@pytest.mark.parametrize("by", ["key", "repository and key", "target model"])
def test_an_archive_that_was_published_without_a_manifest_is_shown_from_the_catalogue(
    run: Any, world: World, by: str
) -> None:
    target = "tenant-2.tar.gz"
    key = key_of(target)
    world.serve("fleet", target, key)
    world.published("fleet", "tenant", target, "tenant-1.tar.gz")
    name = {"key": key[:12], "repository and key": f"tenant/{key[:12]}", "target model": target}[by]

    shown = run("artifacts", "show", name, "--store", world.stack, "--format", "json")
    text = run("artifacts", "show", name, "--store", world.stack).out

    document = json.loads(shown.out)
    (archive,) = document["archives"]
    assert document["manifest"] is None
    assert datetime.fromisoformat(archive.pop("stored")) < datetime.now(UTC)
    assert archive == {
        "artifact_key": key,
        "target_model": target,
        "prefix": "fleets/fleet/25.09-a10g/",
        "size": 4,
        "state": "current",
        "multi_model": "fleet",
        "ensemble": "tenant",
        "repository": "tenant",
        "live": "2026-11-01T12:00:00+00:00",
        "publisher": "p",
        "execution": "e",
    }
    assert "ensemble: tenant\n" in text


def test_published_archives_whose_keys_begin_alike_are_named(messages: Messages, run: Any, world: World) -> None:
    for digit in "01":
        world.serve("fleet", f"tenant-{digit}.tar.gz", "ab" + digit * 62)
    world.published("fleet", "tenant", "tenant-1.tar.gz", "tenant-0.tar.gz")

    outcome = run("artifacts", "show", "ab", "--store", world.stack)

    assert outcome.status == 2
    messages.record("cdk-triton artifacts", outcome.said)


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
    (shown,) = of_kind("cli/artifacts/test_list_and_show.py")
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


def test_show_says_what_was_built_and_how(run: Any, world: World) -> None:
    key = world.commit("text", "1", build=BUILD)

    outcome = run("artifacts", "show", key[:8], "--store", world.stack)

    assert outcome.status == 0
    for line in (
        "repository: text",
        "    tensorrt: 10.13.3.9",
        "  warnings: DALI is 1.51.1, and the release has 1.51.2",
        "  stand_ins: trtexec",
        "    - name: the TensorRT plan of bert",
        "        - trtexec --onnx=model.onnx --fp16",
        "          tolerance: 0.01",
    ):
        assert line in outcome.out.splitlines()
    as_json = run("artifacts", "show", key, "--store", world.stack, "--format", "json")
    assert json.loads(as_json.out)["build"] == BUILD


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("xyz", id="no digits"),
        pytest.param("0000", id="unknown"),
        pytest.param("", id="empty"),
    ],
)
def test_a_key_that_means_nothing_is_a_usage_error(messages: Messages, run: Any, world: World, key: str) -> None:
    outcome = run("artifacts", "show", key, "--store", world.stack)
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton artifacts", outcome.said.replace(world.bucket, "BUCKET"))


@pytest.mark.slow
def test_a_key_that_means_several_is_a_usage_error_with_their_names(run: Any, world: World) -> None:
    for number in range(17):  # there are 16 digits
        world.commit("text", str(number))
    starts = sorted(each["key"] for each in listed(run, world)["artifacts"])
    shared = next(a[0] for a, b in itertools.pairwise(starts) if a[0] == b[0])

    outcome = run("artifacts", "show", shared, "--store", world.stack)

    assert outcome.status == 2
    assert f"text/{shared}" in outcome.said


def test_one_content_under_two_names_is_shown_by_the_name_that_was_said(
    messages: Messages, run: Any, world: World
) -> None:
    """Their keys are the same to the last digit, so that more of it says nothing."""
    key = world.commit("text", "1")
    assert world.commit("copy", "1") == key
    outcome = run("artifacts", "show", key, "--store", world.stack)
    assert outcome.status == 2
    assert f"copy/{key}, text/{key}" in outcome.said
    messages.record("cdk-triton artifacts", outcome.said.replace(world.bucket, "BUCKET"))

    shown = run("artifacts", "show", f"copy/{key}", "--store", world.stack, "--format", "json")

    assert json.loads(shown.out)["repository"] == "copy"


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


@pytest.mark.slow
def test_show_compares_the_figures_of_rehearsals_between_versions(
    run: Any, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    latency = {"concurrency": 4, "answers": 900, "p50_milliseconds": 4.0, "p90_milliseconds": 5.0}
    memory = {"gpu": {"before": 300.0, "peak": 2411.0}, "host": {"peak": 800.0}, "shared": {"peak": 16.0}}
    before = world.commit("text", "1")
    world.rehearse("text", before, "r", load_seconds=3.0, memory=memory)
    other = world.commit("image", "3")
    world.rehearse("image", other, "r", load_seconds=99.0)
    monkeypatch.setattr(world, "age", timedelta(days=1))
    now = world.commit("text", "2")
    figures = {"latency": {**latency, "p99_milliseconds": 9.5}, "memory": {**memory, "gpu": None}}
    world.rehearse("text", now, "r", load_seconds=4.5, requests=[{}, {}], stand_ins=["serve"], **figures)
    world.put(layout.pass_key("text", now, key_of("x")), b'{"schema": 9}')

    document = json.loads(run("artifacts", "show", now, "--store", world.stack, "--format", "json").out)

    (found,) = document["rehearsals"]
    previous = found.pop("previous")
    assert {name: found[name] for name in ("load_seconds", "p99_milliseconds", "gpu_memory_mib", "requests")} == {
        "load_seconds": 4.5,
        "p99_milliseconds": 9.5,
        "gpu_memory_mib": None,
        "requests": 2,
    }
    assert (previous["artifact_key"], previous["load_seconds"], previous["gpu_memory_mib"]) == (before, 3.0, 2411.0)
    text = " ".join(run("artifacts", "show", now, "--store", world.stack).out.split())
    assert "load_seconds: 4.5" in text
    assert "previous: artifact_key:" in text
