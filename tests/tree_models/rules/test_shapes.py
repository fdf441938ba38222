"""The rules CT825 to CT827, and CT829: dims and parameters against the features and classes of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories import platform_with
from sample_repositories.tree_models import CONFIG, fil, xgboost_json

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

PATH = "model/config.pbtxt"
FEATURES: list[Place] = [("CT825", PATH, "input[0].dims")]
OUTPUTS: list[Place] = [("CT826", PATH, "output[0].dims")]


def shapes(write: Write, messages: Messages, config: str, model: bytes, release: str | None = None) -> list[Place]:
    repository = write({PATH: config, "model/1/xgboost.json": model}, base={})
    return messages.of(repository.check(platform=None if release is None else platform_with(release)))


@pytest.mark.parametrize(
    ("dims", "batch", "features", "expected"),
    [
        pytest.param("4", 8, 4, [], id="equal"),
        pytest.param("[ 2, 2 ]", 8, 4, [], id="two dims"),
        pytest.param("-1", 8, 4, [], id="variable"),
        pytest.param("5", 8, 4, FEATURES, id="too many"),
        pytest.param("3", 8, 4, FEATURES, id="too few"),
        pytest.param("[ 1, 4 ]", 8, 4, [], id="a row of one"),
        pytest.param("[ 1, 4 ] reshape { shape: [ 4 ] }", 8, 4, [], id="reshaped"),
        pytest.param("[ 4 ] reshape { shape: [ 2 ] }", 8, 4, FEATURES, id="reshaped wrongly"),
        pytest.param("[ -1, 4 ]", 8, 4, FEATURES, id="rows beside the batch"),
        pytest.param("[ -1, 2 ]", 8, 4, [], id="a variable part of a row"),
        pytest.param("[ -1, 4 ] reshape { shape: [ 4 ] }", 8, 4, [], id="rows that a reshape removes"),
        pytest.param("[ -1, 4 ]", 0, 4, [], id="without batches"),
        pytest.param("[ 4 ]", 0, 4, FEATURES, id="without batches and without rows"),
        pytest.param("5", 8, 0, [], id="a file without the number"),
    ],
)
def test_features(
    messages: Messages, write: Write, dims: str, batch: int, features: int, expected: list[Place]
) -> None:
    config = fil(CONFIG.replace("dims: 4", f"dims: {dims}").replace("size: 8", f"size: {batch}"))
    found = shapes(write, messages, config, xgboost_json(features=features))
    assert [place for place in found if place[0] == "CT825"] == expected


@pytest.mark.parametrize(
    ("classes", "is_classifier", "proba", "release", "dims", "expected"),
    [
        pytest.param(0, "false", "false", None, "1", [], id="a value"),
        pytest.param(0, "false", "false", None, "2", OUTPUTS, id="two values"),
        pytest.param(0, "true", "false", None, "1", [], id="a class"),
        pytest.param(0, "true", "true", None, "2", [], id="two probabilities"),
        pytest.param(0, "true", "true", None, "1", [], id="one probability, unknown release"),
        pytest.param(0, "true", "true", "25.09", "1", [], id="one probability"),
        pytest.param(0, "true", "true", "24.09", "1", OUTPUTS, id="one probability before 25.09"),
        pytest.param(0, "true", "true", "24.09", "2", [], id="two probabilities before 25.09"),
        pytest.param(0, "true", "true", None, "3", OUTPUTS, id="three probabilities of two classes"),
        pytest.param(3, "true", "true", None, "3", [], id="three probabilities"),
        pytest.param(3, "true", "true", None, "1", OUTPUTS, id="one of three probabilities"),
        pytest.param(3, "true", "true", None, "[ -1, 3 ]", [], id="with the batch"),
        pytest.param(3, "true", "true", None, "-1", OUTPUTS, id="the batch alone"),
        pytest.param(3, "true", "true", None, "[ -1, -1 ]", [], id="variable"),
        pytest.param(3, "true", "false", None, "1", [], id="the number of the class"),
        pytest.param(3, "true", "false", None, "3", OUTPUTS, id="more than the number of the class"),
        pytest.param(3, "false", "false", "25.09", "3", [], id="values of three classes"),
        pytest.param(3, "false", "false", "25.09", "1", OUTPUTS, id="one of three values"),
        pytest.param(3, "false", "false", "24.09", "1", [], id="one of three values before 25.09"),
        pytest.param(3, "true", "maybe", None, "7", [], id="a value that nobody reads"),
    ],
)
def test_outputs(
    messages: Messages,
    write: Write,
    classes: int,
    is_classifier: str,
    proba: str,
    release: str | None,
    dims: str,
    expected: list[Place],
) -> None:
    config = fil(
        CONFIG.replace("dims: 1", f"dims: {dims}"),
        is_classifier=is_classifier,
        output_class=is_classifier if release else "",
        threshold="0.5",
        predict_proba=proba,
    )
    objective = "multi:softprob" if classes else "binary:logistic"
    found = shapes(write, messages, config, xgboost_json(classes=classes, objective=objective), release)
    assert [place for place in found if place[0] == "CT826"] == expected


@pytest.mark.parametrize(
    ("classes", "size", "is_found"), [(0, 5, False), (0, 4, True), (3, 15, False), (3, 5, True), (3, -1, True)]
)
def test_shapley_values(messages: Messages, write: Write, classes: int, size: int, *, is_found: bool) -> None:
    more = f'output {{ name: "treeshap_output" data_type: TYPE_FP32 dims: {size} }}'
    config = fil(CONFIG + more, is_classifier="true", threshold="0.5")
    found = shapes(write, messages, config, xgboost_json(classes=classes, objective="multi:softprob"))
    assert found == [("CT826", PATH, "output[1].dims")] * is_found


def test_the_old_optimizations_write_something_else(messages: Messages, write: Write) -> None:
    config = fil(CONFIG.replace("dims: 1", "dims: 7"), use_experimental_optimizations="true")
    assert shapes(write, messages, config, xgboost_json()) == []


@pytest.mark.parametrize(
    ("objective", "is_classifier", "proba", "is_found"),
    [
        pytest.param("reg:squarederror", "true", "", True, id="a regression"),
        pytest.param("reg:squarederror", "true", "false", True, id="a regression without probabilities"),
        pytest.param("reg:squarederror", "false", "", False, id="a regression that is called one"),
        pytest.param("reg:squarederror", "true", "true", False, id="a regression with its own values"),
        pytest.param("reg:logistic", "true", "", False, id="a logistic regression"),
        pytest.param("binary:logistic", "true", "", False, id="a classifier"),
        pytest.param("rank:ndcg", "true", "", False, id="a ranking"),
    ],
)
def test_a_regression_is_no_classifier(
    messages: Messages, write: Write, objective: str, is_classifier: str, proba: str, *, is_found: bool
) -> None:
    config = fil(CONFIG, is_classifier=is_classifier, threshold="0.5", predict_proba=proba)
    found = shapes(write, messages, config, xgboost_json(objective=objective))
    assert found == [("CT827", PATH, 'parameters["is_classifier"]')] * is_found


@pytest.mark.parametrize(
    ("objective", "parameters", "expected"),
    [
        ("multiclassova num_class:3 sigmoid:1", {"is_classifier": "true", "predict_proba": "true"}, True),
        ("multiclassova num_class:3 sigmoid:1", {"is_classifier": "false"}, False),
        ("multiclass num_class:3", {"is_classifier": "true", "predict_proba": "true"}, False),
    ],
)
def test_probabilities_of_one_class_against_all(
    messages: Messages, write: Write, objective: str, parameters: dict[str, str], expected: bool
) -> None:
    model = f"tree\nnum_class=3\nmax_feature_idx=3\nobjective={objective}\nend of trees\n"
    given = {"model_type": "lightgbm", "threshold": "0.5", **parameters}
    config = fil(CONFIG.replace("dims: 1", "dims: 3"), **given)
    found = messages.of(write({PATH: config, "model/1/model.txt": model.encode()}, base={}).check())
    assert found == [("CT829", PATH, 'parameters["predict_proba"]')] * expected
