"""XGBoost's three formats: JSON, UBJSON and the old binary one.

JSON and UBJSON hold the same document (XGBoost: doc/model.schema, src/learner.cc). The binary format is the memory of
XGBoost's structs, as Treelite's src/model_loader/xgboost_legacy.cc reads it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

from cdk_triton._wording import quoted
from cdk_triton.tree_models.reader.forest import FileError, Forest, Format, whole_number
from cdk_triton.tree_models.reader.ubjson import Numbers, ubjson

__all__ = ["FIELDS", "xgboost_binary", "xgboost_document", "xgboost_json", "xgboost_ubj"]

FIELDS = ("boost_from_average", "iteration_indptr", "cats", "weight_drop")
"""Fields that a version of XGBoost added, and that older releases of Treelite reject: of 1.7, 2.0, 3.1 and 3.4."""

_BOOSTERS = ("gbtree", "dart")
_MOST = 10_000  # of a part of a version; findings print the version
_MULTI_CLASS = ("multi:softmax", "multi:softprob")
_HEADER = struct.Struct("<fIiiiIII")  # LearnerModelParam, without what fills it up to 136 bytes
_HEADER_SIZE = 136
_TREES_SIZE, _TREE_SIZE, _NODE_SIZE = 160, 148, 20 + 16  # GBTreeModelParam, TreeParam, Node with NodeStat


def xgboost_json(content: bytes) -> Forest:
    """Read a model in JSON.

    Raises:
        FileError: the file is no JSON, or not a model of XGBoost.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise FileError("is not complete JSON") from None
    return xgboost_document(document, "xgboost_json")


def xgboost_ubj(content: bytes) -> Forest:
    """Read a model in UBJSON.

    Raises:
        FileError: the file is no UBJSON, or not a model of XGBoost.
    """
    return xgboost_document(ubjson(content), "xgboost_ubj")


def xgboost_document(document: object, kind: Format) -> Forest:
    """The model that a document describes.

    Raises:
        FileError: the document is not a model of XGBoost.
    """
    top = _object(document)
    top = _object(top.get("Model")) or top  # a checkpoint, with the configuration of the training
    learner = _object(top.get("learner"))
    objective = _object(learner.get("objective")).get("name")
    if not learner or not isinstance(objective, str):
        raise FileError(f"is not a model of XGBoost: it has no {'objective' if learner else 'learner'}")
    parameters = _part(learner, "learner_model_param")
    booster = _part(learner, "gradient_booster")
    name = str(booster.get("name", "gbtree"))
    model = _object(_object(booster.get("gbtree")).get("model") if "gbtree" in booster else booster.get("model"))
    if name in _BOOSTERS:
        _check_trees(model)
    present = {*parameters, *model}
    version = top.get("version")
    numbers = (
        tuple(each for each in version if isinstance(each, int) and 0 <= each < _MOST)
        if isinstance(version, list)
        else ()
    )
    return _forest(
        kind,
        numbers,
        objective,
        name,
        _number(parameters.get("num_feature")),
        _number(parameters.get("num_class")),
        _number(parameters.get("num_target")),
        has_categories=bool(_items(_object(model.get("cats")).get("enc"))),
        fields=frozenset(field for field in FIELDS if field in present),
    )


def xgboost_binary(content: bytes) -> Forest:
    """Read a model in the old binary format.

    Raises:
        FileError: the file is not a model in this format.
    """
    content = content.removeprefix(b"binf")
    try:
        _, features, classes, _, _, major, minor, targets = _HEADER.unpack_from(content)
        objective, end = _text(content, _HEADER_SIZE)
        booster, end = _text(content, end)
        if classes < 0:
            raise FileError(f"has {classes} classes")
        if booster in _BOOSTERS:
            _walk_trees(content, end, major)
    except (struct.error, UnicodeDecodeError):
        raise FileError("is not complete") from None
    version = (major, minor) if major else ()
    return _forest("xgboost", version, objective, booster, features, classes, targets)


def _forest(
    kind: Format,
    version: tuple[int, ...],
    objective: str,
    booster: str,
    features: int | None,
    classes: int | None,
    targets: int | None,
    *,
    has_categories: bool = False,
    fields: frozenset[str] = frozenset(),
) -> Forest:
    unsupported = ""
    if booster not in _BOOSTERS:
        unsupported = f"has the booster {quoted(booster)}, which has no trees"
    elif has_categories:
        unsupported = "contains the categories of a DataFrame's columns (cats.enc)"
    return Forest(
        kind,
        f"XGBoost {'.'.join(map(str, version))}" if version else "XGBoost",
        version,
        features or None,
        max(classes or 1, 1),
        max(targets or 1, 1),
        objective,
        is_regression=objective.startswith("reg:") and objective != "reg:logistic",
        unsupported=unsupported,
        fields=fields,
    )


def _walk_trees(content: bytes, place: int, major: int) -> None:
    """Step over every tree, to see that the file is whole.

    Raises:
        FileError: the number of trees is negative.
        struct.error: the file ends before its last tree does.
    """
    (trees,) = struct.unpack_from("<i", content, place)
    place += _TREES_SIZE
    if trees < 0:
        raise FileError(f"has {trees} trees")
    for _ in range(trees):
        nodes, leaf_vector = struct.unpack_from("<4xi12xi", content, place)
        place += _TREE_SIZE + nodes * _NODE_SIZE
        if leaf_vector and major < 2:
            (length,) = struct.unpack_from("<Q", content, place)
            place += 8 + 4 * length
        if nodes <= 0 or place > len(content):
            raise struct.error("the file ends within a tree")
    if place + 4 * trees > len(content):
        raise struct.error("the file ends before the groups of the trees")


def _part(learner: Mapping[str, object], name: str) -> Mapping[str, object]:
    """A part of the learner, which every model has."""
    if not (found := _object(learner.get(name))):
        raise FileError(f"is not a model of XGBoost: it has no {name}")
    return found


def _check_trees(model: Mapping[str, object]) -> None:
    """Reject a model without the trees that its parameters count."""
    trees = model.get("trees")
    if not isinstance(trees, list):
        raise FileError("is incomplete: it has no trees")
    announced = _number(_object(model.get("gbtree_model_param")).get("num_trees"))
    if announced not in (None, len(trees)):
        raise FileError(f"is incomplete: it has {len(trees)} of {announced} trees")


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> int:
    return value.count if isinstance(value, Numbers) else len(value) if isinstance(value, list) else 0


def _number(value: object) -> int | None:
    """A number, which XGBoost writes as a text."""
    return whole_number(value) if isinstance(value, str) else None


def _text(content: bytes, place: int) -> tuple[str, int]:
    """A text after its length, and where it ends."""
    (length,) = struct.unpack_from("<Q", content, place)
    end = place + 8 + length
    if end > len(content):
        raise struct.error("the file ends within a text")
    return content[place + 8 : end].decode("ascii"), end
