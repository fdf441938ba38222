"""Rehearsals at synth: what the deployment is told, and what cannot be rehearsed."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import numpy as np
import pytest
from aws_cdk.assertions import Annotations, Match

from cdk_triton import (
    ContainerEnvironment,
    GoldenRequest,
    ModelRepository,
    Rehearsal,
    SageMakerProcessingBuilder,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
    assert_no_errors,
)
from cdk_triton.artifacts import artifact_key
from cdk_triton.artifacts.served_repositories import SERVED_METADATA, gpu_minutes
from cdk_triton.cli.artifacts.assembly import read_metadata
from cdk_triton.errors import ArchiveError, ConfigurationError
from cdk_triton.protocol.layout import pass_key
from cdk_triton.protocol.plan import StackPlan
from cdk_triton.rehearsal.prepared import PreparedRehearsal
from cdk_triton.rehearsal.requests import golden_requests

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

DELIVERY = "Custom::TritonArtifacts"
REGION = cdk.Environment(account="111122223333", region="eu-west-1")
REQUEST = {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1, 1], "data": ["good morning"]}]}


def golden(repository: ModelRepository, **options: Any) -> ModelRepository:
    """The repository with a golden request, whose files lie beside it."""
    directory = repository.root.parent / f"golden-{repository.name}"
    directory.mkdir(exist_ok=True)
    (directory / "one.json").write_text(json.dumps(REQUEST))
    np.savez(directory / "one.npz", VECTOR=np.ones((1, 4), np.float32))
    request = GoldenRequest(f"../{directory.name}/one.json", expect=f"../{directory.name}/one.npz")
    return ModelRepository.from_directory(
        repository.root, recipes=repository.recipes, rehearsal=Rehearsal([request], **options)
    )


@pytest.fixture
def app(world: World) -> cdk.App:
    return world.app()


@pytest.fixture
def stack(app: cdk.App) -> cdk.Stack:
    return cdk.Stack(app, "Stack", env=REGION)


def planned(world: World, app: cdk.App, stack: cdk.Stack) -> StackPlan:
    resource = world.only(stack, DELIVERY)
    return StackPlan.parse(json.dumps(world.plan(app, resource)))


@pytest.mark.parametrize(
    ("plan", "absolute"),
    [
        (TensorRTPlan("network", onnx="network.onnx", precision="fp16"), 0.01),
        (TensorRTPlan("network", onnx="network.onnx", precision="bf16"), 0.05),
    ],
)
def test_the_default_tolerance_is_that_of_the_coarsest_recipe(
    plan: TensorRTPlan, absolute: float, world: World
) -> None:
    (asked,) = golden_requests(golden(world.repository_with_plan(recipes=[plan])))

    assert asked.comparison == {"how": "tolerance", "absolute": absolute, "relative": 2 * absolute}


@pytest.mark.parametrize(("load_timeout", "start_up"), [(900.5, 901), (300, None)], ids=["longer", "shorter"])
def test_an_endpoint_waits_at_least_as_long_as_the_rehearsal(
    load_timeout: float, start_up: int | None, world: World, stack: cdk.Stack
) -> None:
    """Or models pass that take 10 minutes to load, and the endpoint gives them up after 8."""
    repository = golden(world.repository(), load_timeout=load_timeout)
    model = TritonModel(stack, "Model", repository=repository, platform=world.platform)
    TritonEndpoint(stack, "Endpoint", model=model)

    (variant,) = world.only(stack, "AWS::SageMaker::EndpointConfig")["Properties"]["ProductionVariants"]

    assert variant.get("ContainerStartupHealthCheckTimeoutInSeconds") == start_up


def test_the_deployment_is_told_what_to_rehearse(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    repository = golden(world.repository(), max_gpu_memory_mib=8000, max_p99_milliseconds=50, concurrency=8)
    TritonModel(stack, "Model", repository=repository, platform=world.platform)

    (rehearsal,) = (plan := planned(world, app, stack)).rehearsals
    assert (rehearsal.repository, rehearsal.artifact_key) == ("text", plan.commits[0].artifact_key)
    assert rehearsal.image == "sagemaker-tritonserver:25.09-py3"
    document = dict(rehearsal.document)
    assert document["environment"]["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "ensemble"
    assert (document["mode"], document["load_timeout_seconds"]) == ("single", 480)
    assert document["budgets"] == {
        "load_seconds": None,
        "gpu_memory_mib": 8000,
        "p99_milliseconds": 50,
        "concurrency": 8,
    }
    (request,) = document["requests"]
    assert request["name"] == "../golden-text/one.json"
    assert request["comparison"] == {"how": "tolerance", "absolute": 0.001, "relative": 0.005}
    (bodies,) = rehearsal.inputs
    assert bodies.path == f"rehearsals/{rehearsal.key}.zip"
    with zipfile.ZipFile(Path(app.outdir) / f"asset.{bodies.key}") as archive:
        assert archive.namelist() == ["request0", "expected0"]
        assert b"good morning" in archive.read("request0")


def test_a_rehearsal_needs_the_machine_of_a_builder(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    TritonModel(stack, "Model", repository=golden(world.repository()), platform=world.platform)
    builder = planned(world, app, stack).builder
    assert builder is not None
    assert builder.kind == "codebuild"
    assert world.only(stack, DELIVERY)["Properties"]["BuildImage"]


def test_the_handler_may_find_out_whether_the_stack_rolls_back(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    """By a permission of the store: one of each model would fill the handler's role, which has a maximum size."""
    for name in ("text", "image"):
        TritonModel(stack, name, repository=golden(world.repository(name)), platform=world.platform)

    assert not world.resources(stack, "AWS::IAM::Policy")
    policies = world.resources(stack, "AWS::IAM::ManagedPolicy").values()
    statements = [each for policy in policies for each in policy["Properties"]["PolicyDocument"]["Statement"]]
    (statement,) = (each for each in statements if "cloudformation:DescribeStacks" in each["Action"])
    assert json.dumps(statement["Resource"]).count(":stack/*") == 1


def test_the_cloud_assembly_tells_the_minutes(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    plan = golden(world.repository_with_plan())
    models = {"Built": plan, "Rehearsed": golden(world.repository("other")), "Plain": world.repository("plain")}
    for name, repository in models.items():
        TritonModel(stack, name, repository=repository, platform=world.platform)
    app.synth()
    found = gpu_minutes(data for _, data, _ in read_metadata(Path(app.outdir), SERVED_METADATA))
    assert found is not None
    assert (found.jobs, found.starting, round(found.rehearsals)) == (2, 16, 2)
    assert found.builds > 1


def test_the_cloud_assembly_tells_where_the_figures_of_each_ensemble_will_be(
    world: World, app: cdk.App, stack: cdk.Stack
) -> None:
    """`doctor --app` and `estimate` read them there, and find the variant by the logical id of the model."""
    shared = golden(world.repository())
    ensembles = {"a": shared, "b": shared, "plain": world.repository("plain")}
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)
    app.synth()

    ((path, served, _),) = read_metadata(Path(app.outdir), SERVED_METADATA)
    ids = {each: data for each, data, _ in read_metadata(Path(app.outdir), "aws:cdk:logicalId")}
    (rehearsal,) = planned(world, app, stack).rehearsals

    key = pass_key(rehearsal.repository, rehearsal.artifact_key, rehearsal.key)
    assert served["passes"] == {"a": key, "b": key}
    assert ids[f"{path}/Resource"] in world.resources(stack, "AWS::SageMaker::Model")


def test_golden_requests_change_no_archive(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    plain = artifact_key(world.repository(), world.platform)
    TritonModel(stack, "Model", repository=golden(world.repository()), platform=world.platform)
    assert planned(world, app, stack).commits[0].artifact_key == plain


def test_a_rehearsal_has_one_key_until_something_of_it_changes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(directory: str, environment: ContainerEnvironment | None = None, **options: Any) -> str:
        app = world.app(directory)
        stack = cdk.Stack(app, "Stack", env=REGION)
        repository = golden(world.repository(), **options)
        TritonModel(stack, "Model", repository=repository, platform=world.platform, environment=environment)
        (rehearsal,) = planned(world, app, stack).rehearsals
        return rehearsal.key

    first = key("one")
    assert key("two") == first
    assert key("three", max_load_seconds=60) != first
    assert key("four", environment=ContainerEnvironment(thread_count=2)) != first
    assert key("five", environment=ContainerEnvironment(variables={"TABLE": "a"})) != first
    monkeypatch.setattr("cdk_triton.rehearsal.prepared.REHEARSAL_VERSION", 0)
    assert key("six") != first


def test_every_ensemble_of_a_multi_model_is_rehearsed_once(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    text, image = golden(world.repository("text")), golden(world.repository("image", weights="2"))
    plain = world.repository("plain", weights="3")
    ensembles = {"text": text, "again": text, "image": image, "plain": plain}
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)

    plan = planned(world, app, stack)
    assert sorted(each.repository for each in plan.rehearsals) == ["image", "text"]
    assert {each.document["mode"] for each in plan.rehearsals} == {"multi"}


def test_ensembles_with_one_archive_keep_their_own_golden_requests(
    world: World, app: cdk.App, stack: cdk.Stack
) -> None:
    plain = world.repository()
    limited, other = golden(plain, max_load_seconds=60), golden(plain, max_load_seconds=90)
    ensembles = {"limited": limited, "other": other, "same": golden(plain, max_load_seconds=60), "plain": plain}
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)

    plan = planned(world, app, stack)
    assert len(plan.commits) == 1
    assert [each.document["budgets"]["load_seconds"] for each in plan.rehearsals] == [60, 90]


def test_each_platform_of_an_instance_pool_is_rehearsed(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    repository = golden(world.repository())
    models = [
        TritonModel(stack, name, repository=repository, platform=replace(world.platform, instance_type=instance))
        for name, instance in (("A", "ml.g5.2xlarge"), ("B", "ml.g5.4xlarge"))
    ]
    TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=models[0], fallback_models=[models[1]])])

    plans = [StackPlan.parse(json.dumps(world.plan(app, each))) for each in world.resources(stack, DELIVERY).values()]
    keys = {rehearsal.key for plan in plans for rehearsal in plan.rehearsals}
    assert len(keys) == 2


def test_a_promoted_archive_needs_the_pass_of_its_origin(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    origin = TritonArtifactStore.from_bucket(
        stack, "Origin", cdk.aws_s3.Bucket.from_bucket_name(stack, "Bucket", "origin")
    )
    store = TritonArtifactStore(stack, "Store", promotes_from=origin)
    TritonModel(stack, "Model", repository=golden(world.repository()), platform=world.platform, store=store)

    plan = planned(world, app, stack)
    assert [each.inputs for each in plan.rehearsals] == [()]
    assert plan.builder is None


def test_a_literal_stands_for_a_token(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    repository = golden(world.repository(), environment={"TABLE": "prices"})
    environment = ContainerEnvironment(variables={"TABLE": cdk.Aws.STACK_NAME})
    TritonModel(stack, "Model", repository=repository, platform=world.platform, environment=environment)
    (rehearsal,) = planned(world, app, stack).rehearsals
    assert rehearsal.document["environment"]["TABLE"] == "prices"


def test_a_token_without_a_literal_is_an_error(messages: Messages, world: World, stack: cdk.Stack) -> None:
    environment = ContainerEnvironment(variables={"TABLE": cdk.Aws.STACK_NAME})
    repository = golden(world.repository())
    TritonModel(stack, "Model", repository=repository, platform=world.platform, environment=environment)
    assert 'environment={"TABLE": "…"}' in error_of(messages, stack)


def test_a_rehearsal_can_be_skipped(messages: Messages, world: World) -> None:
    context: dict[str, Any] = {"cdk-triton:rehearsal": "skip"}
    app = world.app(**context)
    stack = cdk.Stack(app, "Stack", env=REGION)
    TritonModel(stack, "Model", repository=golden(world.repository()), platform=world.platform)

    assert not planned(world, app, stack).rehearsals
    (found,) = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("without a rehearsal"))
    messages.record("cdk-triton:RehearsalSkipped", str(found.entry.data))


def test_another_context_value_is_rejected(messages: Messages, world: World) -> None:
    context: dict[str, Any] = {"cdk-triton:rehearsal": "no"}
    stack = cdk.Stack(world.app(**context), "Stack", env=REGION)
    with messages.raises(ConfigurationError):
        TritonModel(stack, "Model", repository=golden(world.repository()), platform=world.platform)


def error_of(messages: Messages, stack: cdk.Stack) -> str:
    """The one error of a model."""
    (found,) = Annotations.from_stack(stack).find_error("/Stack/Model", Match.any_value())
    text = str(found.entry.data)
    messages.record("cdk-triton:Rehearsal", text)
    return text


def gpus(repository: ModelRepository, *numbers: int) -> ModelRepository:
    """The repository with a network on these GPUs."""
    config = repository.root / "network/config.pbtxt"
    config.write_text(f"{config.read_text()} instance_group {{ kind: KIND_GPU gpus: {list(numbers)} }}")
    return ModelRepository.from_directory(repository.root)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"uncompressed": True}, id="no archive"),
        pytest.param({"environment": ContainerEnvironment(inference_type="generate")}, id="protocol"),
    ],
)
def test_a_way_to_serve_that_cannot_be_rehearsed_is_a_warning(
    messages: Messages, world: World, app: cdk.App, stack: cdk.Stack, options: dict[str, Any]
) -> None:
    TritonModel(stack, "Model", repository=golden(world.repository()), platform=world.platform, **options)
    assert not planned(world, app, stack).rehearsals
    (found,) = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("cannot be rehearsed"))
    messages.record("cdk-triton:NotRehearsed", str(found.entry.data))


def test_a_missing_golden_file_is_an_error(messages: Messages, world: World, app: cdk.App, stack: cdk.Stack) -> None:
    repository = golden(world.repository())
    (repository.root.parent / "golden-text/one.npz").unlink()
    TritonModel(stack, "Model", repository=repository, platform=world.platform)
    assert "cdk-triton golden record" in error_of(messages, stack)
    assert not list(Path(app.outdir).glob("asset.triton-golden-*"))


def test_golden_files_have_a_size(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, world: World, stack: cdk.Stack
) -> None:
    monkeypatch.setattr("cdk_triton.rehearsal.requests.MAX_BYTES", 100)
    TritonModel(stack, "Model", repository=golden(world.repository()), platform=world.platform)
    assert "keep the requests" in error_of(messages, stack)


def test_a_machine_with_too_few_gpus_is_an_error(messages: Messages, world: World, stack: cdk.Stack) -> None:
    repository = golden(gpus(world.repository(), 0, 3))
    TritonModel(stack, "Model", repository=repository, platform="25.09/ml.g5.12xlarge")
    assert "needs 4 GPUs" in error_of(messages, stack)


def test_a_job_on_the_type_of_the_endpoint_has_its_gpus(world: World, app: cdk.App, stack: cdk.Stack) -> None:
    store = TritonArtifactStore(stack, "Store", builders=[SageMakerProcessingBuilder()])
    repository = golden(gpus(world.repository(), 0, 3))
    TritonModel(stack, "Model", repository=repository, platform="25.09/ml.g5.12xlarge", store=store)
    assert_no_errors(stack)


@pytest.mark.parametrize("instance_type", ["ml.g5.2xlarge", "ml.p4d.24xlarge"])
def test_a_store_without_a_builder_rehearses_nothing(
    messages: Messages, world: World, stack: cdk.Stack, instance_type: str
) -> None:
    store = TritonArtifactStore(stack, "Store", builders=[])
    repository, platform = golden(world.repository()), replace(world.platform, instance_type=instance_type)
    with messages.raises(ConfigurationError):
        TritonModel(stack, "Model", repository=repository, platform=platform, store=store)


def test_many_rehearsals_may_take_longer_than_a_deployment(messages: Messages, world: World, stack: cdk.Stack) -> None:
    ensembles = {f"text{number}": golden(world.repository(f"text{number}")) for number in range(45)}
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)
    (found,) = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("rehearsing 45 ensembles"))
    messages.record("cdk-triton:LongBuild", str(found.entry.data))


def test_golden_files_that_change_meanwhile_are_noticed(
    monkeypatch: pytest.MonkeyPatch, messages: Messages, world: World, stack: cdk.Stack
) -> None:
    repository = golden(world.repository())
    write = PreparedRehearsal.write_golden

    def changing(rehearsal: PreparedRehearsal, target: Path) -> None:
        (repository.root.parent / "golden-text/one.json").write_text(json.dumps(REQUEST).replace("good", "bad"))
        write(rehearsal, target)

    monkeypatch.setattr(PreparedRehearsal, "write_golden", changing)
    with messages.raises(ArchiveError):
        TritonModel(stack, "Model", repository=repository, platform=world.platform)
