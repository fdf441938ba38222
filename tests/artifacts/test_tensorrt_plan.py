"""`TensorRTPlan`: what it tells the build program, and what it rejects for a repository and a platform."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.artifacts.plans import A10G, CONFIG, FP32_WEIGHTS, NETWORK, OPEN_CONFIG, bert, onnx_bytes, written

from cdk_triton import Parity, S3File, ServingPlatform, TensorRTPlan, Tolerance
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages


SHA256 = "0123456789abcdef" * 4
ON_S3 = S3File("models", "bert/model.onnx", SHA256)
DIGEST = f"registry/triton@sha256:{SHA256}"
TENSORRT_11 = ServingPlatform(release="26.06", image=DIGEST, instance_type="ml.g5.xlarge")
TENSORRT_8 = ServingPlatform(release="24.03", instance_type="ml.g5.xlarge")
TURING = ServingPlatform(release="25.09", instance_type="ml.g4dn.xlarge")
TWO_PROFILES = [{"ids": ((1, 128), (1, 128), (1, 128))}, {"ids": ((2, 128), (8, 128), (16, 128))}]

NODE_TYPES = {
    "FP16": NETWORK.replace("<float[1] w = {2.0}", "<float16[1] w = {16384}")
    .replace("to = 1", "to = 10")
    .replace("(float[", "(float16["),
    "FP32": NETWORK,
    "quantised": f"network (float[b, 128] i) => (uint8[b, 128] o) {FP32_WEIGHTS} {{ o = QuantizeLinear (i, w) }}",
}


def step(recipe: TensorRTPlan, repository: ModelRepository, platform: ServingPlatform = A10G) -> Mapping[str, Any]:
    return recipe.step(repository, platform)


def rejected(
    messages: Messages, recipe: TensorRTPlan, repository: ModelRepository, platform: ServingPlatform = A10G
) -> None:
    with messages.raises(ConfigurationError):
        recipe.validate(repository, platform)


def test_a_plan_is_built_for_what_the_configuration_asks_for(tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert", onnx="bert.onnx", precision="fp16", parity=Parity(ranges={"ids": (0, 30521)}))
    assert step(recipe, bert(tmp_path, recipe, name="bert.onnx")) == {
        "recipe": "tensorrt_plan",
        "name": "the TensorRT plan of bert",
        "onnx": "bert/bert.onnx",
        "plan": "bert/1/model.plan",
        "flags": [
            "--skipInference",
            "--fp16",
            "--minShapes=ids:1x128",
            "--optShapes=ids:16x128",
            "--maxShapes=ids:16x128",
        ],
        "flags_if_static": None,
        "plugins": [],
        "tensorrt_major": 10,
        "profiles": [{"ids": {"min": [1, 128], "opt": [16, 128], "max": [16, 128]}}],
        "inputs": [{"name": "ids", "data_type": "TYPE_INT32", "dims": [-1, 128]}],
        "outputs": [{"name": "out", "data_type": "TYPE_FP32", "dims": [-1, 128]}],
        "parity": {"tolerance": {"absolute": 0.01, "relative": 0.02}, "ranges": {"ids": [0, 30521]}, "seed": 0},
    }


def test_everything_can_be_asked_for(tmp_path: Path) -> None:
    recipe = TensorRTPlan(
        "bert",
        version=3,
        profiles=TWO_PROFILES,
        precision="strongly_typed",
        workspace_mib=2000,
        optimization_level=0,
        hardware_compatibility="same_compute_capability",
        parity=None,
    )
    told = step(recipe, bert(tmp_path, recipe))
    assert told["plan"] == "bert/3/model.plan"
    assert told["flags"] == [
        "--skipInference",
        "--stronglyTyped",
        "--memPoolSize=workspace:2000",
        "--builderOptimizationLevel=0",
        "--hardwareCompatibilityLevel=sameComputeCapability",
        "--profile=0",
        "--minShapes=ids:1x128",
        "--optShapes=ids:1x128",
        "--maxShapes=ids:1x128",
        "--profile=1",
        "--minShapes=ids:2x128",
        "--optShapes=ids:8x128",
        "--maxShapes=ids:16x128",
    ]
    assert told["parity"] is None


@pytest.mark.parametrize(
    ("precision", "major_8", "major_10"),
    [
        ("fp32", [], []),
        ("fp16", ["--fp16"], ["--fp16"]),
        ("int8", ["--int8", "--fp16"], ["--int8", "--fp16"]),
        ("bf16", None, ["--bf16"]),
        ("strongly_typed", None, ["--stronglyTyped"]),
    ],
)
def test_precision_is_a_flag_up_to_tensorrt_10(
    messages: Messages, tmp_path: Path, precision: Any, major_8: list[str] | None, major_10: list[str]
) -> None:
    recipe = TensorRTPlan("bert", onnx=ON_S3, precision=precision)
    repository = bert(tmp_path, recipe, network=None)

    def flags(platform: ServingPlatform) -> list[str]:
        return [flag for flag in step(recipe, repository, platform)["flags"] if "Shapes" not in flag]

    assert flags(A10G) == ["--skipInference", *major_10]
    if major_8 is not None:
        assert flags(TENSORRT_8) == ["--buildOnly", *major_8]
    else:
        rejected(messages, recipe, repository, TENSORRT_8)


@pytest.mark.parametrize(
    ("precision", "network"),
    [("fp32", "FP32"), ("fp16", "FP16"), ("int8", "quantised"), *(("strongly_typed", name) for name in NODE_TYPES)],
)
def test_from_tensorrt_11_on_precision_is_what_the_network_has(tmp_path: Path, precision: Any, network: str) -> None:
    recipe = TensorRTPlan("bert", precision=precision)
    told = step(recipe, bert(tmp_path, recipe, network=NODE_TYPES[network]), TENSORRT_11)
    assert [flag for flag in told["flags"] if "Shapes" not in flag] == ["--skipInference"]
    assert told["tensorrt_major"] == 11


@pytest.mark.parametrize(
    ("precision", "network"),
    [
        pytest.param("fp16", "FP32", id="fp16 of FP32"),
        pytest.param("fp32", "FP16", id="fp32 of FP16"),
        pytest.param("bf16", "FP16", id="bf16 of FP16"),
        pytest.param("int8", "FP32", id="int8 of FP32"),
        pytest.param("fp16", None, id="fp16 of a network in S3"),
    ],
)
def test_from_tensorrt_11_on_another_precision_is_rejected(
    messages: Messages, tmp_path: Path, precision: Any, network: str | None
) -> None:
    recipe = TensorRTPlan("bert", onnx="model.onnx" if network else ON_S3, precision=precision)
    repository = bert(tmp_path, recipe, network=network and NODE_TYPES[network])
    rejected(messages, recipe, repository, TENSORRT_11)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_up_to_tensorrt_10_a_network_in_fp16_needs_the_flag(messages: Messages, tmp_path: Path, precision: Any) -> None:
    recipe = TensorRTPlan("bert", precision=precision)
    repository = bert(tmp_path, recipe, network=NODE_TYPES["FP16"])
    rejected(messages, recipe, repository)
    for allowed in ("fp16", "strongly_typed"):
        TensorRTPlan("bert", precision=allowed).validate(repository, A10G)


def test_int8_needs_a_quantised_network(messages: Messages, tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert", precision="int8")
    rejected(messages, recipe, bert(tmp_path / "a", recipe))
    recipe.validate(bert(tmp_path / "b", recipe, network=NODE_TYPES["quantised"]), A10G)


@pytest.mark.parametrize(
    ("recipe", "platform"),
    [
        pytest.param(TensorRTPlan("bert", precision="bf16"), TURING, id="bf16 on Turing"),
        pytest.param(TensorRTPlan("bert", hardware_compatibility="ampere+"), TURING, id="ampere+ on Turing"),
        pytest.param(TensorRTPlan("bert", workspace_mib=25_000), A10G, id="workspace_mib"),
        pytest.param(
            TensorRTPlan("bert", hardware_compatibility="same_compute_capability"),
            ServingPlatform(release="24.09", instance_type="ml.g5.xlarge"),
            id="same_compute_capability on TensorRT 10.4",
        ),
        pytest.param(TensorRTPlan("bert", profiles=TWO_PROFILES), TENSORRT_8, id="profiles on TensorRT 8"),
        pytest.param(
            TensorRTPlan("bert"), ServingPlatform(image=DIGEST, instance_type="ml.g5.xlarge"), id="no release"
        ),
        pytest.param(TensorRTPlan("bert", parity=Parity(ranges={"out": (0, 1)})), A10G, id="a range for an output"),
        pytest.param(TensorRTPlan("bart"), A10G, id="another model"),
    ],
)
def test_what_the_platform_or_the_model_does_not_have_is_rejected(
    messages: Messages, tmp_path: Path, recipe: TensorRTPlan, platform: ServingPlatform
) -> None:
    rejected(messages, recipe, bert(tmp_path, recipe), platform)


def test_nothing_is_rejected_because_of_a_version_that_nobody_read(tmp_path: Path) -> None:
    # 25.05: TensorRT 10.10, recalled; between releases with 10.9 and 10.11, which both know the option.
    recipe = TensorRTPlan("bert", hardware_compatibility="same_compute_capability", optimization_level=5)
    repository = bert(tmp_path, recipe)
    recipe.validate(repository, ServingPlatform(release="25.05", image=DIGEST, instance_type="ml.g5.xlarge"))
    # 23.03: TensorRT 8.5, recalled; it may as well be 8.6, which knows optimisation levels.
    recipe = TensorRTPlan("bert", optimization_level=5)
    recipe.validate(repository, ServingPlatform(release="23.03", instance_type="ml.g5.xlarge"))


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(OPEN_CONFIG, id="an open dimension"),
        pytest.param('platform: "tensorrt_plan"', id="no input"),
        pytest.param(
            CONFIG.replace("dims: [ 128 ] }", "dims: [ 128 ] allow_ragged_batch: true }", 1), id="ragged batches"
        ),
        pytest.param(
            CONFIG.replace("dims: [ 128 ] }", "dims: [ 128 ] is_shape_tensor: true }", 1), id="a shape tensor"
        ),
        pytest.param(
            CONFIG + "sequence_batching { control_input { name: 'START' control { int32_false_true: [ 0, 1 ] } } }",
            id="controls of sequences",
        ),
        pytest.param(CONFIG + "batch_input { target_name: 'n' data_type: TYPE_INT32 }", id="batch_input"),
        pytest.param(CONFIG.replace("tensorrt_plan", "onnxruntime_onnx"), id="another backend"),
        pytest.param(CONFIG + 'default_model_filename: "bert.plan"', id="default_model_filename"),
        pytest.param("nonsense: 1", id="an unknown field"),
    ],
)
def test_a_configuration_that_says_too_little_or_something_else_is_rejected(
    messages: Messages, tmp_path: Path, config: str
) -> None:
    recipe = TensorRTPlan("bert", onnx=ON_S3)
    rejected(messages, recipe, bert(tmp_path, recipe, config=config, network=None))


@pytest.mark.parametrize(
    ("config", "profiles"),
    [
        pytest.param(OPEN_CONFIG, [{"other": ((1, 1), (8, 8), (16, 16))}], id="another input"),
        pytest.param(OPEN_CONFIG, [{"ids": ((1,), (8,), (16,))}], id="too few dimensions"),
        pytest.param(CONFIG, [{"ids": ((1, 1), (8, 8), (16, 64))}], id="another size"),
        pytest.param(OPEN_CONFIG, [{"ids": ((1, 1), (4, 8), (8, 64))}], id="too small a batch"),
    ],
)
def test_profiles_fit_the_configuration(messages: Messages, tmp_path: Path, config: str, profiles: Any) -> None:
    recipe = TensorRTPlan("bert", onnx=ON_S3, profiles=profiles)
    rejected(messages, recipe, bert(tmp_path, recipe, config=config, network=None))


def test_declared_profiles_serve_a_configuration_with_open_dimensions(tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert", onnx=ON_S3, profiles=[{"ids": ((1, 1), (8, 128), (16, 512))}])
    told = step(recipe, bert(tmp_path, recipe, config=OPEN_CONFIG, network=None))
    assert told["flags"][1:] == ["--minShapes=ids:1x1", "--optShapes=ids:8x128", "--maxShapes=ids:16x512"]
    assert told["inputs"] == [{"name": "ids", "data_type": "TYPE_INT32", "dims": [-1, -1]}]


def test_a_reshaped_input_has_in_the_plan_what_the_reshape_says(tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert", onnx=ON_S3)
    config = CONFIG.replace("dims: [ 128 ] }", "dims: [ 128 ] reshape { shape: [ 2, 64 ] } }", 1)
    told = step(recipe, bert(tmp_path, recipe, config=config, network=None))
    assert "--maxShapes=ids:16x2x64" in told["flags"]
    assert told["inputs"][0]["dims"] == [-1, 2, 64]


STATIC = NETWORK.replace("batch", "1")
STATIC_CONFIG = CONFIG.replace("16", "1")


def test_a_network_without_open_dimensions_gets_no_shapes(tmp_path: Path) -> None:
    # trtexec ends with "Static model does not take explicit shapes" otherwise.
    recipe = TensorRTPlan("bert")
    told = step(recipe, bert(tmp_path, recipe, config=STATIC_CONFIG, network=STATIC))
    assert told["flags"] == ["--skipInference"]
    assert told["flags_if_static"] is None
    assert told["profiles"] == [{"ids": {"min": [1, 128], "opt": [1, 128], "max": [1, 128]}}]


@pytest.mark.parametrize("config", [STATIC_CONFIG, CONFIG.replace("max_batch_size: 16", "")])
def test_a_network_that_may_have_no_open_dimensions_gets_both_command_lines(tmp_path: Path, config: str) -> None:
    recipe = TensorRTPlan("bert", onnx=ON_S3)
    told = step(recipe, bert(tmp_path, recipe, config=config, network=None))
    assert any("Shapes" in flag for flag in told["flags"])
    assert told["flags_if_static"] == ["--skipInference"]


def test_a_network_in_s3_has_a_place_in_the_model(tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert", onnx=ON_S3)
    assert recipe.s3_files == {"bert/model.onnx": ON_S3}
    assert step(recipe, bert(tmp_path, recipe, network=None))["onnx"] == "bert/model.onnx"


def test_a_repository_that_is_one_model_is_called_by_a_point(tmp_path: Path) -> None:
    recipe = TensorRTPlan(".", onnx="net.onnx")
    files = {"config.pbtxt": CONFIG.encode(), "net.onnx": onnx_bytes()}
    told = step(recipe, written(tmp_path / "bert", files, [recipe]))
    assert (told["name"], told["onnx"], told["plan"]) == ("the TensorRT plan of bert", "net.onnx", "1/model.plan")


def test_a_file_that_is_no_network_is_rejected(messages: Messages, tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert")
    repository = written(tmp_path, {"bert/config.pbtxt": CONFIG.encode(), "bert/model.onnx": b"<html>"}, [recipe])
    rejected(messages, recipe, repository)


@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [("fp32", (1e-3, 5e-3)), ("fp16", (1e-2, 2e-2)), ("bf16", (5e-2, 1e-1)), ("int8", (1e-1, 2e-1))],
)
def test_each_precision_has_a_tolerance(tmp_path: Path, precision: Any, tolerance: tuple[float, float]) -> None:
    repository = bert(tmp_path, network=None)
    told = step(TensorRTPlan("bert", onnx=ON_S3, precision=precision), repository)
    assert told["parity"]["tolerance"] == {"absolute": tolerance[0], "relative": tolerance[1]}
    own = TensorRTPlan("bert", onnx=ON_S3, precision=precision, parity=Parity(Tolerance(1, 2), seed=7))
    assert step(own, repository)["parity"] == {
        "tolerance": {"absolute": 1.0, "relative": 2.0},
        "ranges": {},
        "seed": 7,
    }


def test_the_rules_know_the_profile_that_follows_from_the_configuration(messages: Messages, tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert")
    repository = bert(tmp_path, recipe, network=NETWORK.replace("batch", "8"))
    (finding,) = (finding for finding in repository.check(platform=A10G) if finding.code == "CT702")
    assert "1 to 16" in finding.message
    messages.of([finding])


def test_larger_networks_and_more_profiles_take_longer(tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert")
    small = bert(tmp_path / "small", recipe)
    weights = bytes(20_000_000)
    large = written(tmp_path / "large", {"bert/config.pbtxt": CONFIG.encode(), "bert/model.onnx": weights}, [recipe])
    two = TensorRTPlan("bert", profiles=TWO_PROFILES)
    assert 0 < recipe.estimated_minutes(small) < recipe.estimated_minutes(large) < two.estimated_minutes(large)


@pytest.mark.parametrize(
    ("profile", "meant"),
    [
        pytest.param({"ids": ((1, 128), (4, 128), (8, 128))}, "max_batch_size: 8", id="a maximum below max_batch_size"),
        pytest.param({"idz": ((1, 128), (8, 128), (16, 128))}, "did you mean 'ids'?", id="a misspelt input"),
    ],
)
def test_a_mistake_in_a_profile_is_reported_once(tmp_path: Path, profile: Any, meant: str) -> None:
    """The rules have the network, so `validate` leaves to them what they report."""
    recipe = TensorRTPlan("bert", profiles=[profile])
    repository = bert(tmp_path, recipe)
    recipe.validate(repository, A10G)
    (finding,) = repository.check(platform=A10G)
    assert finding.code == "CT702"
    assert meant in f"{finding.message} {finding.fix}"


def test_a_mistake_in_the_recipe_of_a_model_that_is_not_loaded_is_reported(messages: Messages, tmp_path: Path) -> None:
    """Its plan is built although the server loads another model."""
    recipe = TensorRTPlan("bert", profiles=[{"idz": ((1, 128), (8, 128), (16, 128))}])
    other = {"other/config.pbtxt": b'backend: "python"', "other/1/model.py": b"", "bert/config.pbtxt": CONFIG.encode()}
    repository = written(tmp_path, {**other, "bert/model.onnx": onnx_bytes(NETWORK)}, [recipe])
    recipe.validate(repository, A10G)
    found = [each for each in repository.check("single", platform=A10G, default_model="other") if each.code == "CT702"]
    messages.of(found)
    assert len(found) == 1


def test_a_mistake_that_the_rules_do_not_see_is_reported_by_the_recipe(messages: Messages, tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert", profiles=[{"ids": ((1, 1), (8, 8), (16, 64))}])
    rejected(messages, recipe, bert(tmp_path, recipe, network=NETWORK.replace("128", "tokens")))


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param("o = TRT.EfficientNMS_TRT (ids)", id="a plugin"),
        pytest.param("o = FancyAttention (ids)", id="a plugin of another name"),
        pytest.param("o = com.microsoft.QuickerGelu (ids)", id="an unknown operator of ONNX Runtime"),
    ],
)
def test_what_onnx_runtime_cannot_compute_is_not_compared(messages: Messages, tmp_path: Path, nodes: str) -> None:
    recipe = TensorRTPlan("bert", onnx="bert.onnx")
    graph = f"network (int32[b, 128] ids) => (int32[b, 128] o) {{ {nodes} }}"
    repository = bert(tmp_path, recipe, name="bert.onnx", network=graph)
    rejected(messages, recipe, repository)
    TensorRTPlan("bert", onnx="bert.onnx", parity=None).validate(repository, A10G)


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def with_data(root: Path, data: bytes, recipe: TensorRTPlan) -> ModelRepository:
    files = {"bert/config.pbtxt": CONFIG.encode(), "bert/bert.onnx": onnx_bytes(), "bert/inputs.npz": data}
    return written(root, files, [recipe])


def test_a_plan_is_compared_on_data_of_its_own(tmp_path: Path) -> None:
    recipe = TensorRTPlan("bert", onnx="bert.onnx", parity=Parity(data="inputs.npz"))
    repository = with_data(tmp_path, npz(ids=np.ones((8, 128), np.int32)), recipe)
    assert step(recipe, repository)["parity"]["data"] == "bert/inputs.npz"
    assert recipe.consumes == ("bert/bert.onnx", "bert/inputs.npz")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"ids", id="no npz"),
        pytest.param(npz(tokens=np.ones((8, 128), np.int32)), id="another name"),
        pytest.param(npz(ids=np.ones((8, 128), np.int64)), id="another type"),
        pytest.param(npz(ids=np.ones((32, 128), np.int32)), id="outside every profile"),
        pytest.param(npz(ids=np.ones((8, 64), np.int32)), id="another shape"),
        pytest.param(b"PK\x05\x06" + bytes(18), id="no array"),
    ],
)
def test_data_that_could_not_be_compared_is_rejected(messages: Messages, tmp_path: Path, data: bytes) -> None:
    recipe = TensorRTPlan("bert", onnx="bert.onnx", parity=Parity(data="inputs.npz"))
    rejected(messages, recipe, with_data(tmp_path, data, recipe))


def test_ranges_are_for_random_inputs(messages: Messages) -> None:
    with messages.raises(ConfigurationError):
        Parity(data="inputs.npz", ranges={"ids": (0, 9)})
