"""The ONNX graph of Inception v3 against what is known of the architecture."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from builders import inception

# The table in section 4 of slim's inception_v3.py, and Table 1 of arXiv:1512.00567: height = width, channels.
SIZES = {
    "Conv2d_1a_3x3/Relu": (149, 32),
    "Conv2d_2a_3x3/Relu": (147, 32),
    "Conv2d_2b_3x3/Relu": (147, 64),
    "MaxPool_3a_3x3": (73, 64),
    "Conv2d_3b_1x1/Relu": (73, 80),
    "Conv2d_4a_3x3/Relu": (71, 192),
    "MaxPool_5a_3x3": (35, 192),
    "Mixed_5b/concat": (35, 256),
    "Mixed_5c/concat": (35, 288),
    "Mixed_5d/concat": (35, 288),
    "Mixed_6a/concat": (17, 768),
    "Mixed_6b/concat": (17, 768),
    "Mixed_6c/concat": (17, 768),
    "Mixed_6d/concat": (17, 768),
    "Mixed_6e/concat": (17, 768),
    "Mixed_7a/concat": (8, 1280),
    "Mixed_7b/concat": (8, 2048),
    "Mixed_7c/concat": (8, 2048),
}
# slim's own test, inception_v3_test.py testModelHasExpectedNumberOfParameters: everything below the logits, where each
# convolution has its weights and, for each channel, the beta, moving mean and moving variance of a batch normalisation.
SLIM_BASE_PARAMETERS = 21_802_784
LOGITS_PARAMETERS = 2048 * 1001 + 1001


@pytest.fixture(scope="module")
def path(model_assets: Path) -> Path:
    return model_assets / "image_classification/inception/1/model.onnx"


@pytest.fixture(scope="module")
def model(path: Path) -> onnx.ModelProto:
    return onnx.load(path)


@pytest.fixture(scope="module")
def images() -> npt.NDArray[np.float32]:
    """Four mosaics of random colours in [-1, 1], from coarse to fine: [4, 299, 299, 3]."""
    random = np.random.default_rng(7)
    rows = np.arange(299)
    mosaics = np.empty((4, 299, 299, 3), dtype=np.float32)
    for mosaic, tiles in zip(mosaics, (4, 16, 64, 299), strict=True):
        mosaic[:] = random.uniform(-1, 1, (tiles, tiles, 3))[rows * tiles // 299][:, rows * tiles // 299]
    return mosaics


def test_parameters_are_counted_as_slim_counts_them(model: onnx.ModelProto) -> None:
    weights = {t.name: int(np.prod(t.dims)) for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    logits = sum(count for name, count in weights.items() if "/Logits/" in name)
    convolutions = sum(count for name, count in weights.items() if "/Logits/" not in name and name.endswith("/weights"))
    channels = sum(count for name, count in weights.items() if "/Logits/" not in name and name.endswith("/biases"))
    assert convolutions + 3 * channels == SLIM_BASE_PARAMETERS
    assert logits == LOGITS_PARAMETERS
    assert sum(weights.values()) == 23_819_401
    assert sum(node.op_type == "Conv" for node in model.graph.node) == 95  # 94 with batch normalisation, and the logits


def test_every_block_has_the_published_size(model: onnx.ModelProto) -> None:
    shapes = {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in onnx.shape_inference.infer_shapes(model).graph.value_info
    }
    assert {name: shapes[f"InceptionV3/{name}"] for name in SIZES} == {
        name: ["batch", channels, size, size] for name, (size, channels) in SIZES.items()
    }


def test_names_types_and_shapes_are_those_of_the_published_graph(path: Path) -> None:
    session = onnxruntime.InferenceSession(path)
    described = [(i.name, i.type, i.shape) for i in [*session.get_inputs(), *session.get_outputs()]]
    assert described == [
        ("input", "tensor(float)", ["batch", 299, 299, 3]),
        ("InceptionV3/Predictions/Softmax", "tensor(float)", ["batch", 1001]),
    ]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(path: Path) -> None:
    assert inception.build() == path.read_bytes()
    assert inception.build(seed=1) != path.read_bytes()


def test_probabilities_are_probabilities_and_depend_on_the_image(path: Path, images: npt.NDArray[np.float32]) -> None:
    (probabilities,) = onnxruntime.InferenceSession(path).run(None, {"input": images})
    assert probabilities.shape == (4, 1001)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-5)
    assert len(set(probabilities.argmax(axis=1))) == 4  # not one class for everything
    assert (probabilities.max(axis=1) > 5 / 1001).all()  # not uniform
    assert (probabilities.max(axis=1) < 0.9).all()  # not saturated


def test_activations_neither_vanish_nor_explode(model: onnx.ModelProto, images: npt.NDArray[np.float32]) -> None:
    tapped = onnx.ModelProto()
    tapped.CopyFrom(model)
    names = [f"InceptionV3/{name}" for name in SIZES]
    tapped.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names)
    for activation in onnxruntime.InferenceSession(tapped.SerializeToString()).run(names, {"input": images}):
        assert 0.05 < np.sqrt(np.mean(activation**2)) < 5


def test_an_image_gets_the_same_answer_alone_and_in_a_batch(path: Path, images: npt.NDArray[np.float32]) -> None:
    session = onnxruntime.InferenceSession(path)
    (together,) = session.run(None, {"input": images})
    alone = np.concatenate([session.run(None, {"input": images[i : i + 1]})[0] for i in range(len(images))])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-6)


def test_everything_says_untrained(model: onnx.ModelProto, model_assets: Path) -> None:
    assert "UNTRAINED" in model.doc_string
    assert {p.key: p.value for p in model.metadata_props}["weights"] == "untrained"
    directory = model_assets / "image_classification/inception"
    labels = (directory / "inception_labels.txt").read_text().splitlines()
    assert labels == [f"untrained class {i}" for i in range(1001)]
    assert "UNTRAINED" in (directory / "config.pbtxt").read_text()
