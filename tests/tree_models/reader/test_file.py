"""What the readers find in the files that today's libraries write, and in damaged ones."""

from __future__ import annotations

import json
import pickle
import struct
import tracemalloc
from pathlib import Path

import pytest
import treelite

from cdk_triton.tree_models.reader.file import MAX_BYTES, Damaged, Pickle, TooLarge, forest_file
from cdk_triton.tree_models.reader.forest import Forest
from sample_repositories.tree_models import lightgbm, xgboost_binary, xgboost_json

CORPUS = Path(__file__).parents[1] / "corpus"

READ = {
    # file: format, writer, features, classes, targets, whether it is a regression, a word about what is not supported
    "lightgbm-4.7-binary.txt": ("lightgbm", "LightGBM (format v4)", 4, 1, 1, False, ""),
    "lightgbm-4.7-linear.txt": ("lightgbm", "LightGBM (format v4)", 4, 1, 1, True, "linear"),
    "lightgbm-4.7-multi.txt": ("lightgbm", "LightGBM (format v4)", 4, 3, 1, False, ""),
    "lightgbm-4.7-regression.txt": ("lightgbm", "LightGBM (format v4)", 4, 1, 1, True, ""),
    "treelite-3.9-multi.tl": ("treelite_checkpoint", "Treelite 3.9.1", 4, 3, 1, False, ""),
    "treelite-4.8-boosting.tl": ("treelite_checkpoint", "Treelite 4.8.1", 4, 1, 1, True, ""),
    "treelite-4.8-isolation.tl": ("treelite_checkpoint", "Treelite 4.8.1", 4, 1, 1, False, ""),
    "treelite-4.8-random-forest-2.tl": ("treelite_checkpoint", "Treelite 4.8.1", 4, 2, 1, False, ""),
    "treelite-4.8-random-forest-3.tl": ("treelite_checkpoint", "Treelite 4.8.1", 4, 3, 1, False, ""),
    "treelite-4.8-targets.tl": ("treelite_checkpoint", "Treelite 4.8.1", 4, 2, 2, False, ""),
    "xgboost-3.0-binary.deprecated": ("xgboost", "XGBoost 3.0", 4, 1, 1, False, ""),
    "xgboost-3.0-binary.json": ("xgboost_json", "XGBoost 3.0.5", 4, 1, 1, False, ""),
    "xgboost-3.2-absolute.ubj": ("xgboost_ubj", "XGBoost 3.2.0", 4, 1, 1, True, ""),
    "xgboost-3.2-binary.json": ("xgboost_json", "XGBoost 3.2.0", 4, 1, 1, False, ""),
    "xgboost-3.2-binary.model": ("xgboost_ubj", "XGBoost 3.2.0", 4, 1, 1, False, ""),
    "xgboost-3.2-binary.ubj": ("xgboost_ubj", "XGBoost 3.2.0", 4, 1, 1, False, ""),
    "xgboost-3.2-categories.ubj": ("xgboost_ubj", "XGBoost 3.2.0", 2, 1, 1, False, "categories"),
    "xgboost-3.2-dart.ubj": ("xgboost_ubj", "XGBoost 3.2.0", 4, 1, 1, False, ""),
    "xgboost-3.2-linear.json": ("xgboost_json", "XGBoost 3.2.0", 4, 1, 1, False, "gblinear"),
    "xgboost-3.2-multi.ubj": ("xgboost_ubj", "XGBoost 3.2.0", 4, 3, 1, False, ""),
    "xgboost-3.2-regression.ubj": ("xgboost_ubj", "XGBoost 3.2.0", 4, 1, 1, True, ""),
    "xgboost-3.2-targets.ubj": ("xgboost_ubj", "XGBoost 3.2.0", 4, 1, 2, True, ""),
}
PICKLES = {
    "lightgbm-classifier.pkl": "LightGBM",
    "sklearn-random-forest.joblib": "scikit-learn",
    "sklearn-random-forest.pkl": "scikit-learn",
}


def test_every_file_of_the_corpus_is_looked_at() -> None:
    assert {path.name for path in CORPUS.iterdir()} == {*READ, *PICKLES, "predictions.json"}


@pytest.mark.parametrize("name", READ)
def test_a_file_of_todays_libraries_is_read(name: str) -> None:
    found = forest_file(CORPUS / name)
    assert isinstance(found, Forest)
    *expected, word = READ[name]
    assert [found.format, found.writer, found.features, found.classes, found.targets, found.is_regression] == expected
    assert word in found.unsupported
    assert bool(word) is bool(found.unsupported)


@pytest.mark.parametrize("name", READ)
def test_a_part_of_a_file_is_damaged(name: str, tmp_path: Path) -> None:
    content = (CORPUS / name).read_bytes().partition(b"\nend of trees")[0]  # then come the parameters of the training
    if "treelite-3" in name:
        content = content[:40]  # only the head is read
    part = tmp_path / "part"
    for size in (len(content) * 3 // 4, len(content) // 2, 39):
        part.write_bytes(content[:size])
        assert isinstance(forest_file(part), Damaged), size


@pytest.mark.parametrize("name", PICKLES)
def test_a_pickle_is_never_loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for way in ("load", "loads", "Unpickler"):
        monkeypatch.delattr(pickle, way)
    assert forest_file(CORPUS / name) == Pickle(PICKLES[name])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"{}", "is not a model of XGBoost: it has no learner", id="an empty object"),
        pytest.param(b"[1]", "is not a model of XGBoost: it has no learner", id="a list"),
        pytest.param(b'{"learner": {"a": 1}}', "is not a model of XGBoost: it has no objective", id="no objective"),
        pytest.param(
            b'{"learner": {"objective": {"name": "reg:squarederror"}}}',
            "is not a model of XGBoost: it has no learner_model_param",
            id="no parameters",
        ),
        pytest.param(
            xgboost_json().replace(b"gradient_booster", b"booster"),
            "is not a model of XGBoost: it has no gradient_booster",
            id="no booster",
        ),
        pytest.param(
            xgboost_json().replace(b"trees", b"forest"), "is incomplete: it has no trees", id="no list of trees"
        ),
        pytest.param(
            xgboost_json(model={"gbtree_model_param": {"num_trees": "100"}}),
            "is incomplete: it has 0 of 100 trees",
            id="XGBoost without its trees",
        ),
        pytest.param(
            xgboost_json(classes=-7), "has '-7' where a whole number belongs", id="a negative number of classes"
        ),
        pytest.param(
            xgboost_json().replace(b'"4"', b'"\\u0664"'), "has '\u0664' where a whole number belongs", id="other digits"
        ),
        pytest.param(
            xgboost_json().replace(b'"4"', b'"' + b"9" * 5_000 + b'"'),
            "(5,000 characters) where a whole number belongs",
            id="XGBoost with 5,000 digits",
        ),
        pytest.param(xgboost_json()[:-1], "is not complete JSON", id="JSON cut off"),
        pytest.param(xgboost_json() + b"x", "is not complete JSON", id="more than JSON"),
        pytest.param(b"[" * 100_000, "is not complete JSON", id="deep JSON"),
        pytest.param(b"{i\x01aT}x", "has more bytes after its UBJSON", id="more than UBJSON"),
        pytest.param(b"{i\x01aT}", "is not a model of XGBoost: it has no learner", id="other UBJSON"),
        pytest.param(b"{i\x01a?", "is not UBJSON: byte 5 is the unknown marker '?'", id="an unknown marker"),
        pytest.param(b"{i\x01a" + b"[" * 5_000, "nests UBJSON deeper than XGBoost does", id="deep UBJSON"),
        pytest.param(b"{i\x01a[$d#L" + b"\x7f" * 8, "is not complete UBJSON", id="a count beyond the end"),
        pytest.param(b"{i\x01a[$d", "is not complete UBJSON", id="a type without a count"),
        pytest.param(b"{i\x01aSi\xff", "is not UBJSON: byte 7 is no length", id="a negative length"),
        pytest.param(xgboost_binary()[:-1], "is not complete", id="binary cut off"),
        pytest.param(xgboost_binary(classes=-7), "has -7 classes", id="binary with a negative number of classes"),
        pytest.param(
            xgboost_binary()[:-160] + struct.pack("<i", -5) + bytes(156),
            "has -5 trees",
            id="binary with a negative number of trees",
        ),
        pytest.param(
            lightgbm().replace(b"num_class", b"classes"), "it has no num_class", id="LightGBM without classes"
        ),
        pytest.param(
            lightgbm().replace(b"leaf_value=", b"leaf="),
            "tree 0 has fewer values than leaves",
            id="a tree without leaves",
        ),
        pytest.param(
            lightgbm().replace(b"max_feature_idx=3", b"max_feature_idx=" + b"9" * 5_000),
            "(5,000 characters) where a whole number belongs",
            id="LightGBM with 5,000 digits",
        ),
        pytest.param(
            lightgbm().replace(b"num_leaves=1", b"num_leaves=" + b"9" * 5_000),
            "(5,000 characters) where a whole number belongs",
            id="a tree with 5,000 digits",
        ),
        pytest.param(
            lightgbm().partition(b"Tree=")[0],
            "is incomplete: it ends before its first tree",
            id="LightGBM without its trees",
        ),
        pytest.param(b"tree_sizes=9 9\n" + lightgbm(), "it has 1 of 2 trees", id="a tree is missing"),
        pytest.param(
            (CORPUS / "treelite-3.9-multi.tl").read_bytes()[:-1], "is not complete", id="Treelite 3.9 cut off"
        ),
        pytest.param(b"forest", "is not a tree model in a format that the backend 'fil' reads", id="a word"),
    ],
)
def test_a_damaged_file_has_a_reason(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    found = forest_file(path)
    assert isinstance(found, Damaged)
    assert found.reason.endswith(reason)


@pytest.mark.parametrize("constant", [b"T", b"F", b"Z"])
def test_an_array_of_constants_takes_no_memory(constant: bytes, tmp_path: Path) -> None:
    """Its elements have no bytes: 1,000 arrays of 6,000 would be lists of 48 MB."""
    path = tmp_path / "xgboost.ubj"
    path.write_bytes(b"{i\x01a[" + (b"[$" + constant + b"#I" + struct.pack(">h", 6_000)) * 1_000 + b"]}")
    tracemalloc.start()
    found = forest_file(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == Damaged("xgboost_ubj", "is not a model of XGBoost: it has no learner")
    assert most < 2_000_000


def test_values_that_need_too_much_memory_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(_: bytes) -> object:
        raise MemoryError

    path = tmp_path / "xgboost.json"
    path.write_bytes(xgboost_json())
    monkeypatch.setattr(json, "loads", too_much)
    assert forest_file(path) == Damaged("xgboost_json", "contains values that no library writes")


def test_a_model_of_lightgbm_may_have_no_trees(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_bytes(lightgbm().partition(b"Tree=")[0] + b"end of trees\n")
    assert isinstance(forest_file(path), Forest)


def test_a_file_that_cannot_be_read_has_a_reason(tmp_path: Path) -> None:
    assert forest_file(tmp_path / "none") == Damaged(None, "cannot be read: No such file or directory")


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "xgboost.json"
    path.write_bytes(xgboost_json())
    with path.open("ab") as file:
        file.truncate(MAX_BYTES + 1)
    assert forest_file(path) == TooLarge("xgboost_json")


def test_a_checkpoint_of_a_training_has_the_model_inside(tmp_path: Path) -> None:
    """XGBoost's memory snapshot, which Treelite reads too."""
    path = tmp_path / "model.json"
    path.write_bytes(b'{"Config": {}, "Model": ' + xgboost_json(features=7) + b"}")
    found = forest_file(path)
    assert isinstance(found, Forest)
    assert found.features == 7


def test_a_checkpoint_of_lightgbms_own_probabilities(tmp_path: Path) -> None:
    text = (CORPUS / "lightgbm-4.7-multi.txt").read_text().replace("objective=multiclass ", "objective=multiclassova ")
    (tmp_path / "model.txt").write_text(text.replace("num_class:3\n", "num_class:3 sigmoid:1\n", 1))
    treelite.frontend.load_lightgbm_model(tmp_path / "model.txt").serialize(tmp_path / "checkpoint.tl")
    found = [forest_file(tmp_path / name) for name in ("model.txt", "checkpoint.tl")]
    assert [each.objective for each in found if isinstance(each, Forest)] == ["multiclassova"] * 2
