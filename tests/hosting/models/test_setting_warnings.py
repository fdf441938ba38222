"""What the constructs say about settings that are allowed and probably not meant."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match

from cdk_triton import ContainerEnvironment, ModelRepository, ServingPlatform, TritonModel, TritonMultiModel
from cdk_triton.errors import ConfigurationError
from cdk_triton.sagemaker import DERIVED
from sample_repositories.files import DALI_PIPELINE

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

RELEASE_AFTER_UNLOAD = "--backend-config=dali,release_after_unload=true"


def warnings(stack: cdk.Stack, construct: str) -> list[str]:
    found = Annotations.from_stack(stack).find_warning(f"/Stack/{construct}", Match.any_value())
    return [str(each.entry.data) for each in found]


def dali(world: World) -> ModelRepository:
    root = world.directory / "dali"
    (root / "decode" / "1").mkdir(parents=True)
    (root / "decode" / "config.pbtxt").write_text(
        'backend: "dali" input { name: "IN" data_type: TYPE_UINT8 dims: -1 } '
        'output { name: "OUT" data_type: TYPE_UINT8 dims: -1 }'
    )
    (root / "decode" / "1" / "dali.py").write_text(DALI_PIPELINE)
    return ModelRepository.from_directory(root)


@pytest.mark.parametrize(
    ("release", "instance_type", "host_ami", "cited"),
    [
        pytest.param("25.09", "ml.g5.2xlarge", None, "13.0.1.012", id="the default host"),
        pytest.param("25.09", "ml.g5.2xlarge", "al2-ami-sagemaker-inference-gpu-3-1", "12.4", id="an older driver"),
        pytest.param("25.04", "ml.g5.2xlarge", "al2023-ami-sagemaker-inference-gpu-4-1", "12.9", id="the next major"),
        pytest.param("25.04", "ml.g7e.2xlarge", DERIVED, "deep-learning-containers#6187", id="CUDA 12 on Blackwell"),
        pytest.param("25.09", "ml.g7.2xlarge", "al2-ami-sagemaker-inference-gpu-3-1", "570", id="before Blackwell"),
    ],
)
def test_a_host_that_does_not_suit_the_platform(
    messages: Messages,
    world: World,
    stack: cdk.Stack,
    release: str,
    instance_type: str,
    host_ami: str | None,
    cited: str,
) -> None:
    platform = ServingPlatform(release=release, instance_type=instance_type, inference_ami_version=host_ami)
    TritonModel(stack, "Model", repository=world.repository(), platform=platform)
    (warning,) = warnings(stack, "Model")
    messages.record("cdk-triton:HostDriver", warning)
    assert cited in warning
    assert "[ack: cdk-triton:HostDriver]" in warning


DOWNLOADING = """
from transformers import AutoTokenizer


class TritonPythonModel:
    def initialize(self, args):
        self.tokenizer = AutoTokenizer.from_pretrained({})

    def execute(self, requests):
        return []
"""


def write_downloading(model: Path, call: str) -> None:
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(
        'backend: "python" input { name: "IN" data_type: TYPE_STRING dims: 1 } '
        'output { name: "OUT" data_type: TYPE_INT64 dims: -1 }'
    )
    (model / "1" / "model.py").write_text(DOWNLOADING.format(call))


@pytest.mark.parametrize(
    ("call", "isolation", "variables", "is_warned"),
    [
        pytest.param('"org/name"', True, {}, True, id="a name"),
        pytest.param('"org/name"', False, {}, False, id="with a network"),
        pytest.param('"org/name"', True, {"HF_HOME": "/opt/ml/model/hub"}, False, id="a directory of the archive"),
        pytest.param('"org/name", local_files_only=True', True, {}, False, id="from the disk only"),
        pytest.param('"/opt/ml/model/tokenizer"', True, {}, False, id="a path"),
        pytest.param("args['model_repository']", True, {}, False, id="no literal"),
    ],
)
def test_a_download_without_a_network(
    messages: Messages,
    world: World,
    stack: cdk.Stack,
    call: str,
    isolation: bool,
    variables: dict[str, str],
    is_warned: bool,
) -> None:
    root = world.directory / "texts"
    write_downloading(root / "tokens", call)
    TritonModel(
        stack,
        "Model",
        repository=ModelRepository.from_directory(root),
        platform="25.09/ml.g5.2xlarge",
        network_isolation=isolation,
        environment=ContainerEnvironment(variables=variables),
    )
    found = [each for each in warnings(stack, "Model") if "DownloadWithoutNetwork" in each]
    assert len(found) == is_warned
    for each in found:
        messages.record("cdk-triton:DownloadWithoutNetwork", each)


@pytest.mark.parametrize("additional", [(), ("tokens",)], ids=["not loaded", "loaded too"])
def test_a_download_of_another_model(world: World, stack: cdk.Stack, additional: tuple[str, ...]) -> None:
    root = world.directory / "texts"
    write_downloading(root / "tokens", '"org/name"')
    write_downloading(root / "texts", '"org/name", local_files_only=True')
    TritonModel(
        stack,
        "Model",
        repository=ModelRepository.from_directory(root),
        platform="25.09/ml.g5.2xlarge",
        network_isolation=True,
        environment=ContainerEnvironment(default_model_name="texts", additional_models=additional),
    )
    found = [each for each in warnings(stack, "Model") if "DownloadWithoutNetwork" in each]
    assert len(found) == len(additional)


def test_a_release_newer_than_the_tables(messages: Messages, world: World, stack: cdk.Stack) -> None:
    image = f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton@sha256:{'0' * 64}"
    platform = ServingPlatform(release="27.01", instance_type="ml.g5.2xlarge", image=image)
    TritonModel(stack, "Model", repository=world.repository(), platform=platform)
    (warning,) = warnings(stack, "Model")
    messages.record("cdk-triton:NewerRelease", warning)
    assert "[ack: cdk-triton:NewerRelease]" in warning


def test_a_limit_that_keeps_sagemaker_from_making_room(messages: Messages, world: World, stack: cdk.Stack) -> None:
    settings = ContainerEnvironment(model_load_gpu_limit=0.9)
    ensembles = {"text": world.repository()}
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform, environment=settings)
    (warning,) = warnings(stack, "Fleet")
    messages.record("cdk-triton:ModelLoadGpuLimit", warning)
    assert "[ack: cdk-triton:ModelLoadGpuLimit]" in warning


def test_dali_keeps_its_memory_unless_it_is_told(messages: Messages, world: World, stack: cdk.Stack) -> None:
    ensembles = {"text": world.repository(), "image": dali(world)}
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)
    settings = ContainerEnvironment(additional_args=(RELEASE_AFTER_UNLOAD,))
    TritonMultiModel(stack, "Told", ensembles=ensembles, platform=world.platform, environment=settings)
    (warning,) = warnings(stack, "Fleet")
    messages.record("cdk-triton:DaliMemory", warning)
    assert f"'{RELEASE_AFTER_UNLOAD}'" in warning
    assert "[ack: cdk-triton:DaliMemory]" in warning
    assert warnings(stack, "Told") == []


def with_step(world: World, name: str, step: str) -> ModelRepository:
    """An ensemble with one step of a name."""
    root = world.directory / name
    for model in (name, step):
        (root / model / "1").mkdir(parents=True)
    tensors = ' input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 }'
    (root / step / "config.pbtxt").write_text(f'backend: "python"{tensors}')
    (root / step / "1" / "model.py").write_text("class TritonPythonModel:\n    def execute(self, requests): ...\n")
    maps = 'model_version: -1 input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }'
    (root / name / "config.pbtxt").write_text(
        f'platform: "ensemble"{tensors} ensemble_scheduling {{ step {{ model_name: "{step}" {maps} }} }}'
    )
    return ModelRepository.from_directory(root)


@pytest.mark.parametrize(
    ("release", "steps", "fields", "is_warned"),
    [
        pytest.param("26.05", ("step", "step"), {"ping_mode": "ready"}, True, id="equal names"),
        pytest.param("26.05", ("first", "second"), {"ping_mode": "ready"}, False, id="distinct names"),
        pytest.param("26.05", ("step", "step"), {}, False, id="the default"),
        pytest.param("25.09", ("step", "step"), {"ping_mode": "ready"}, False, id="an older release"),
        pytest.param(
            "26.05",
            ("step", "step"),
            {"ping_mode": "ready", "additional_args": ("--strict-readiness=false",)},
            False,
            id="no strict readiness",
        ),
    ],
)
def test_a_ping_that_cannot_tell_models_of_one_name(
    messages: Messages,
    world: World,
    stack: cdk.Stack,
    release: str,
    steps: tuple[str, str],
    fields: dict[str, Any],
    is_warned: bool,
) -> None:
    ensembles = {name: with_step(world, name, step) for name, step in zip(("text", "image"), steps, strict=True)}
    platform = ServingPlatform(release=release, instance_type="ml.g5.2xlarge")
    settings = ContainerEnvironment(**fields)
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=platform, environment=settings)
    found = [warning for warning in warnings(stack, "Fleet") if "PingOfMultiModel" in warning]
    assert len(found) == is_warned
    for warning in found:
        messages.record("cdk-triton:PingOfMultiModel", warning)


@pytest.mark.parametrize(
    ("release", "size", "count", "is_warned"),
    [
        pytest.param("26.05", None, 32, False, id="64 of 1 MiB"),
        pytest.param("26.05", None, 33, True, id="more than 64 of 1 MiB"),
        pytest.param("26.05", 16 << 20, 2, False, id="4 of 16 MiB"),
        pytest.param("26.05", 16 << 20, 3, True, id="6 of 16 MiB"),
        pytest.param("23.07", None, 8, False, id="16 of 4 MiB"),
        pytest.param("23.07", None, 9, True, id="more than 16 of 4 MiB"),
    ],
)
def test_python_models_that_do_not_fit_beside_each_other(
    messages: Messages, world: World, stack: cdk.Stack, release: str, size: int | None, count: int, is_warned: bool
) -> None:
    ensembles = {name: with_step(world, name, "step") for name in ("text", "image")}
    for each in ensembles.values():
        config = each.root / "step" / "config.pbtxt"
        config.write_text(f"{config.read_text()} instance_group {{ kind: KIND_CPU count: {count} }}")
    ensembles = {name: ModelRepository.from_directory(each.root) for name, each in ensembles.items()}
    platform = ServingPlatform(release=release, instance_type="ml.g5.2xlarge")
    settings = ContainerEnvironment(shm_default_byte_size=size)
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=platform, environment=settings)
    found = [warning for warning in warnings(stack, "Fleet") if "cdk-triton:SharedMemory]" in warning]
    assert len(found) == is_warned
    for warning in found:
        messages.record("cdk-triton:SharedMemory", warning)


@pytest.mark.parametrize(("release", "is_rejected"), [("26.03", True), ("26.04", False)])
def test_dots_in_the_name_of_a_target_model(
    messages: Messages, world: World, stack: cdk.Stack, release: str, is_rejected: bool
) -> None:
    image = f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton@sha256:{'0' * 64}"
    platform = ServingPlatform(release=release, instance_type="ml.g5.2xlarge", image=image)
    ensembles = {"a..b": world.repository()}
    with messages.raises(ConfigurationError) if is_rejected else nullcontext():
        TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=platform)


def test_a_model_that_an_argument_loads_is_looked_for(world: World, stack: cdk.Stack) -> None:
    settings = ContainerEnvironment(additional_args=("--load-model", "missing"))
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, environment=settings)
    (error,) = Annotations.from_stack(stack).find_error("/Stack/Model", Match.any_value())
    assert "missing" in str(error.entry.data)


@pytest.mark.parametrize(
    ("release", "inference_type", "effective"),
    [
        ("25.09", "generate", "generate"),
        ("25.09", "generate_stream", "generate_stream"),
        ("25.09", None, "infer"),
        ("24.09", "generate_stream", "infer"),
    ],
)
def test_a_container_that_generates_says_what_callers_do(
    messages: Messages,
    world: World,
    stack: cdk.Stack,
    release: str,
    inference_type: Literal["generate", "generate_stream"] | None,
    effective: str,
) -> None:
    settings = ContainerEnvironment(inference_type=inference_type)
    platform = ServingPlatform(release=release, instance_type="ml.g5.2xlarge")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=platform, environment=settings)
    assert model.inference_type == effective
    found = Annotations.from_stack(stack).find_info("/Stack/Model", Match.string_like_regexp("GenerateProtocol"))
    assert len(found) == (effective != "infer")
    for each in found:
        messages.record("cdk-triton:GenerateProtocol", str(each.entry.data))


def test_the_checks_know_the_environment(world: World, stack: cdk.Stack) -> None:
    """By itself the command could only warn: here it is known that the container does not stream."""
    root = world.directory / "stream"
    (root / "model" / "1").mkdir(parents=True)
    (root / "model" / "config.pbtxt").write_text('backend: "python" model_transaction_policy { decoupled: true }')
    (root / "model" / "1" / "model.py").write_text("class TritonPythonModel:\n    def execute(self, requests): ...\n")
    repository = ModelRepository.from_directory(root)
    settings = ContainerEnvironment(inference_type="generate_stream")
    TritonModel(stack, "Streams", repository=repository, platform=world.platform, environment=settings)
    assert Annotations.from_stack(stack).find_error("/Stack/Streams", Match.any_value()) == []
    assert warnings(stack, "Streams") == []
    TritonModel(stack, "Model", repository=repository, platform=world.platform)
    (error,) = Annotations.from_stack(stack).find_error("/Stack/Model", Match.any_value())
    assert "HTTP end point doesn't support models with decoupled transaction policy" in str(error.entry.data)
