"""The stand-in for FIL: the predictions of the frameworks, and configurations that the real backend does not serve."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cdk_triton_local.triton.backends.forest import ForestModel

if TYPE_CHECKING:
    from golden_messages import Messages

CORPUS = Path(__file__).parents[3] / "tree_models" / "corpus"
PREDICTIONS = json.loads((CORPUS / "predictions.json").read_text())
ROWS = np.array(PREDICTIONS["rows"], np.float32)
TYPES = {".deprecated": "xgboost", ".json": "xgboost_json", ".tl": "treelite_checkpoint", ".txt": "lightgbm"}
UNSUPPORTED = {
    "lightgbm-4.7-linear.txt": "linear trees",
    "treelite-4.8-targets.tl": "Multi-target model not supported",
    "xgboost-3.2-linear.json": "could not be parsed as XGBoost model",
    "xgboost-3.2-targets.ubj": "Multi-target model not supported",
}


def config(name: str, dims: int, **parameters: str) -> Mapping[str, Any]:
    given = {"model_type": TYPES.get(Path(name).suffix, "xgboost_ubj"), **parameters}
    return {
        "input": [{"name": "input__0", "data_type": "TYPE_FP32", "dims": [4]}],
        "output": [{"name": "output__0", "data_type": "TYPE_FP32", "dims": [dims]}],
        "parameters": {key: {"string_value": text} for key, text in given.items()},
    }


def classifier(**parameters: str) -> dict[str, str]:
    return {"is_classifier": "true", "threshold": "0.5", **parameters}


@pytest.mark.parametrize("name", [name for name in PREDICTIONS if name not in ("rows", *UNSUPPORTED)])
def test_the_predictions_are_those_of_the_framework(name: str) -> None:
    expected = np.array(PREDICTIONS[name])
    classes = expected.shape[1]
    given = classifier(predict_proba="true") if classes > 1 else {"is_classifier": "false"}
    found = ForestModel(CORPUS / name, config(name, classes, **given)).run(ROWS)
    assert found.dtype == np.float32
    assert found.shape == ((len(ROWS), classes) if classes > 1 else (len(ROWS),))
    assert np.allclose(found.reshape(expected.shape), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_a_model_that_treelite_or_fil_rejects_is_rejected_in_their_words(name: str) -> None:
    with pytest.raises(ValueError, match=UNSUPPORTED[name]):
        ForestModel(CORPUS / name, config(name, 1, is_classifier="false"))


def test_a_class_is_its_number() -> None:
    name = "xgboost-3.2-multi.ubj"
    found = ForestModel(CORPUS / name, config(name, 1, **classifier())).run(ROWS)
    assert found.tolist() == np.argmax(PREDICTIONS[name], axis=1).tolist()


def test_a_binary_classifier_compares_with_its_threshold() -> None:
    name = "lightgbm-4.7-binary.txt"
    values = np.array(PREDICTIONS[name])[:, 0]
    middle = float(values.mean())
    found = ForestModel(CORPUS / name, config(name, 1, **classifier(threshold=str(middle)))).run(ROWS)
    assert found.tolist() == (values > middle).astype(float).tolist()


def test_two_probabilities_of_a_binary_classifier() -> None:
    name = "xgboost-3.2-binary.ubj"
    found = ForestModel(CORPUS / name, config(name, 2, **classifier(predict_proba="true"))).run(ROWS)
    second = np.array(PREDICTIONS[name])
    assert np.allclose(found, np.concatenate([1 - second, second], axis=1), atol=1e-5)


@pytest.mark.parametrize(
    ("dims", "parameters", "said"),
    [
        pytest.param(1, {}, "Required parameter is_classifier not found in config", id="no classifier"),
        pytest.param(
            1, {"is_classifier": "true"}, "Required parameter threshold not found in config", id="no threshold"
        ),
        pytest.param(
            1, {"is_classifier": "no"}, "Expected 'true' or 'false' for parameter 'is_classifier', got: 'no'", id="word"
        ),
        pytest.param(1, classifier(threshold="half"), "Bad input for parameter threshold", id="threshold"),
        pytest.param(
            1,
            {"is_classifier": "false", "model_type": "sklearn"},
            "sklearn not recognized as a valid serialization format.",
            id="format",
        ),
        pytest.param(
            2, {"is_classifier": "false"}, "'output__0' has 2 values for a row, but the backend writes 1", id="size"
        ),
    ],
)
def test_what_the_backend_rejects(messages: Messages, dims: int, parameters: dict[str, str], said: str) -> None:
    name = "xgboost-3.2-binary.ubj"
    with pytest.raises(ValueError, match=r"\w") as caught:
        ForestModel(CORPUS / name, config(name, dims, **parameters))
    assert str(caught.value) == said
    messages.record("error", str(caught.value))


@pytest.mark.parametrize(
    ("release", "parameters", "said"),
    [
        ("25.08", classifier(), "Required parameter output_class not found in config"),
        ("25.08", {"output_class": "true", "threshold": "0.5"}, ""),
        ("25.09", classifier(), ""),
        ("25.09", {"output_class": "true", "threshold": "0.5"}, ""),
        ("24.09", {"output_class": "false"}, "xgboost_ubj not recognized as a valid serialization format."),
        ("24.10", {"output_class": "false"}, ""),
    ],
)
def test_the_release_determines_the_names_and_formats(
    messages: Messages, release: str, parameters: dict[str, str], said: str
) -> None:
    name = "xgboost-3.2-binary.ubj"
    given = config(name, 1, **parameters)
    if not said:
        assert len(ForestModel(CORPUS / name, given, release).run(ROWS)) == len(ROWS)
        return
    with pytest.raises(ValueError, match=r"\w") as caught:
        ForestModel(CORPUS / name, given, release)
    assert str(caught.value) == said
    messages.record("error", str(caught.value))


def test_a_machine_without_treelite_is_told_what_it_lacks(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", ModuleType("triton_python_backend_utils"))
    from cdk_triton_local.triton import backends
    from cdk_triton_local.triton.backends import fil

    (tmp_path / "xgboost.ubj").write_bytes((CORPUS / "xgboost-3.2-binary.ubj").read_bytes())
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    model = fil.TritonPythonModel()
    model.config = dict(config("xgboost.ubj", 1, is_classifier="false"))
    with pytest.raises(ValueError, match="this machine does not have Treelite") as caught:
        model.load(tmp_path)
    messages.record("error", str(caught.value))


@pytest.mark.parametrize("suffix", [".json", ".txt", ".tl", ".deprecated"])
def test_a_file_of_another_format_is_rejected(suffix: str) -> None:
    name = "xgboost-3.2-binary.ubj"
    given = {"is_classifier": "false", "model_type": TYPES[suffix]}
    with pytest.raises(ValueError, match=r"\S"):
        ForestModel(CORPUS / name, config(name, 1, **given))


def test_a_row_of_another_length_is_the_callers_error() -> None:
    name = "xgboost-3.2-binary.ubj"
    model = ForestModel(CORPUS / name, config(name, 1, is_classifier="false"))
    with pytest.raises(ValueError, match="a row has 3 values, but the model has 4 features"):
        model.run(ROWS[:, :3])
