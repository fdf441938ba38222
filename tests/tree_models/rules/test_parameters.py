"""The rules CT810 to CT814: the parameters of the backend `fil`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories import platform_with
from sample_repositories.tree_models import CONFIG, fil, xgboost_json

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

PATH = "model/config.pbtxt"
OLD, NEW = "24.09", "25.09"


def found(code: str, parameter: str = "") -> Place:
    return (code, PATH, f'parameters["{parameter}"]' if parameter else "parameters")


def parameters(write: Write, messages: Messages, config: str, release: str | None) -> list[Place]:
    repository = write({PATH: config, "model/1/xgboost.json": xgboost_json()}, base={})
    return messages.of(repository.check(platform=None if release is None else platform_with(release)))


@pytest.mark.parametrize(
    ("release", "given", "expected"),
    [
        pytest.param(None, {"is_classifier": "false"}, [], id="new name, unknown release"),
        pytest.param(None, {"output_class": "false"}, [], id="old name, unknown release"),
        pytest.param(None, {}, [found("CT810")], id="neither"),
        pytest.param(NEW, {}, [found("CT810")], id="neither, new release"),
        pytest.param(NEW, {"is_classifier": "false"}, [], id="new name, new release"),
        pytest.param(NEW, {"output_class": "false"}, [], id="old name, new release"),
        pytest.param(NEW, {"output_class": "no"}, [found("CT810", "output_class")], id="odd old value, new release"),
        pytest.param(NEW, {"output_class": "no", "is_classifier": "false"}, [], id="odd old value beside the new name"),
        pytest.param(NEW, {"output_class": "false", "is_classifier": "no"}, [], id="the new name is not read"),
        pytest.param(OLD, {"is_classifier": "false"}, [found("CT810", "is_classifier")], id="new name, old release"),
        pytest.param(OLD, {"output_class": "false"}, [], id="old name, old release"),
        pytest.param(OLD, {"output_class": "false", "is_classifier": "no"}, [], id="both, old release"),
        pytest.param(None, {"is_classifier": "true"}, [found("CT810", "is_classifier")], id="no threshold"),
        pytest.param(OLD, {"output_class": "true"}, [found("CT810", "output_class")], id="no threshold, old release"),
        pytest.param(NEW, {"is_classifier": "true", "threshold": "0.5"}, [], id="a classifier"),
        pytest.param(NEW, {"is_classifier": "true", "threshold": ".5"}, [], id="a short number"),
        pytest.param(NEW, {"is_classifier": "true", "threshold": "5e-1"}, [], id="an exponent"),
    ],
)
def test_required_parameters(
    messages: Messages, write: Write, release: str | None, given: dict[str, str], expected: list[Place]
) -> None:
    config = fil(CONFIG, **{"is_classifier": "", **given})
    assert parameters(write, messages, config, release) == expected


@pytest.mark.parametrize(
    ("release", "given", "expected"),
    [
        pytest.param(None, {"is_classifier": "True"}, [found("CT811", "is_classifier")], id="a capital letter"),
        pytest.param(NEW, {"is_classifier": " true"}, [found("CT811", "is_classifier")], id="a blank"),
        pytest.param(OLD, {"is_classifier": "", "output_class": "1"}, [found("CT811", "output_class")], id="a number"),
        pytest.param(None, {"predict_proba": "maybe"}, [found("CT811", "predict_proba")], id="a word"),
        pytest.param(None, {"predict_proba": "False"}, [found("CT811", "predict_proba")], id="an optional boolean"),
        pytest.param(
            "23.02",
            {"is_classifier": "", "output_class": "True"},
            [found("CT811", "output_class")],
            id="an old release and the required boolean",
        ),
        pytest.param(
            "23.02",
            {"is_classifier": "", "output_class": "false", "predict_proba": "False"},
            [],
            id="an old release takes the default",
        ),
        pytest.param(
            "23.02",
            {"is_classifier": "", "output_class": "false ", "predict_proba": "true"},
            [],
            id="an old release reads a word",
        ),
        pytest.param(
            "24.09",
            {"is_classifier": "", "output_class": "false", "xgboost_allow_unknown_field": "yes"},
            [found("CT811", "xgboost_allow_unknown_field")],
            id="unknown fields",
        ),
        pytest.param(
            "23.10",
            {"is_classifier": "", "output_class": "false", "xgboost_allow_unknown_field": "yes"},
            [],
            id="unknown fields, before FIL knew the parameter",
        ),
        pytest.param(
            NEW,
            {"is_classifier": "true", "threshold": "half"},
            [found("CT811", "threshold")],
            id="a threshold without a number",
        ),
        pytest.param(NEW, {"threshold": "half"}, [], id="the threshold of a regression is not read"),
        pytest.param(NEW, {"layout": "depth"}, [found("CT811", "layout")], id="a layout"),
        pytest.param("26.06", {"layout": "depth"}, [found("CT811", "layout")], id="a layout of nvForest"),
        pytest.param(NEW, {"layout": "layered"}, [], id="a known layout"),
        pytest.param(None, {"layout": "depth"}, [], id="a layout, unknown release"),
        pytest.param(
            OLD,
            {"is_classifier": "", "output_class": "false", "algo": "AUTO", "storage_type": "DENS"},
            [found("CT811", "algo"), found("CT811", "storage_type")],
            id="names of old releases",
        ),
        pytest.param(
            OLD,
            {"is_classifier": "", "output_class": "false", "algo": "NAIVE", "storage_type": "SPARSE8"},
            [],
            id="known names of old releases",
        ),
    ],
)
def test_rejected_values(
    messages: Messages, write: Write, release: str | None, given: dict[str, str], expected: list[Place]
) -> None:
    assert parameters(write, messages, fil(CONFIG, **given), release) == expected


@pytest.mark.parametrize(("kind", "is_found"), [("KIND_CPU", False), ("KIND_GPU", True), ("KIND_AUTO", True)])
def test_the_cpu_reads_no_layout(messages: Messages, write: Write, kind: str, *, is_found: bool) -> None:
    config = fil(CONFIG + f"instance_group {{ kind: {kind} }}", layout="depth")
    assert parameters(write, messages, config, NEW) == [found("CT811", "layout")] * is_found


@pytest.mark.parametrize(
    ("release", "model_type", "is_known"),
    [
        pytest.param(None, "xgboost_json", True, id="JSON"),
        pytest.param(None, "xgboost_json  ", True, id="a blank at the end"),
        pytest.param(None, "xgboost_jsn", False, id="misspelled"),
        pytest.param(None, "XGBoost_JSON", False, id="capital letters"),
        pytest.param(None, "sklearn", False, id="a library"),
        pytest.param("24.09", "xgboost_ubj", False, id="UBJSON before 24.10"),
    ],
)
def test_model_types(messages: Messages, write: Write, release: str | None, model_type: str, *, is_known: bool) -> None:
    config = fil(CONFIG + 'default_model_filename: "xgboost.json"', model_type=model_type, output_class="false")
    expected = [] if is_known else [found("CT812", "model_type")]
    places = parameters(write, messages, config, release)
    assert [place for place in places if place[0] == "CT812"] == expected
    assert [place for place in places if place[0] == "CT810"] == []


@pytest.mark.parametrize(
    ("release", "given", "expected"),
    [
        pytest.param(None, {"chunk_size": "four"}, [found("CT813", "chunk_size")], id="no number"),
        pytest.param(None, {"chunk_size": "4"}, [], id="a number"),
        pytest.param(None, {"chunk_size": "4.0"}, [], id="the same number"),
        pytest.param(None, {"chunk_size": "1_000"}, [found("CT813", "chunk_size")], id="a part of a number"),
        pytest.param(None, {"is_classifier": "true", "threshold": "0,5"}, [found("CT813", "threshold")], id="a comma"),
        pytest.param(None, {"is_classifier": "true", "threshold": "0.5f"}, [], id="a suffix"),
        pytest.param(None, {"threshold": "0,5"}, [], id="the threshold of a regression"),
        pytest.param(NEW, {"algo": "NAIVE"}, [found("CT813", "algo")], id="a removed parameter"),
        pytest.param(NEW, {"algo": "ALGO_AUTO", "storage_type": "AUTO"}, [], id="removed defaults"),
        pytest.param(NEW, {"blocks_per_sm": "2"}, [found("CT813", "blocks_per_sm")], id="a removed number"),
        pytest.param(
            OLD,
            {"is_classifier": "", "output_class": "false", "layout": "layered"},
            [found("CT813", "layout")],
            id="a parameter that is too new",
        ),
        pytest.param(None, {"algo": "NAIVE", "layout": "layered"}, [], id="unknown release"),
    ],
)
def test_values_that_are_not_read(
    messages: Messages, write: Write, release: str | None, given: dict[str, str], expected: list[Place]
) -> None:
    assert parameters(write, messages, fil(CONFIG, **given), release) == expected


@pytest.mark.parametrize(
    ("name", "is_found"),
    [("treshold", True), ("modeltype", True), ("Threshold", True), ("is_clasifier", True), ("owner", False)],
)
def test_misspelled_parameters(messages: Messages, write: Write, name: str, *, is_found: bool) -> None:
    expected = [found("CT814", name)] if is_found else []
    assert parameters(write, messages, fil(CONFIG, **{name: "1"}), None) == expected


def test_another_backend_has_other_parameters(messages: Messages, write: Write) -> None:
    config = fil(CONFIG.replace("fil", "identity"), predict_probe="1", is_classifier="no")
    assert parameters(write, messages, config, None) == []
