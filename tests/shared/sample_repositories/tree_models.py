"""Small tree models, written without their libraries; those that the libraries write are in `tests/tree_models`."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence

from cdk_triton.triton import ModelConfig

__all__ = ["CONFIG", "PARAMETER", "fil", "lightgbm", "pickle_of", "tree_model_files", "xgboost_binary", "xgboost_json"]

CONFIG = """
backend: "fil"
max_batch_size: 8
input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
"""
PARAMETER = 'parameters {{ key: "{}" value {{ string_value: "{}" }} }}\n'


def fil(config: str = CONFIG, /, **parameters: str) -> str:
    """The configuration of a regression in XGBoost's JSON format, with other parameters; "" leaves one out."""
    texts = {"model_type": "xgboost_json", "is_classifier": "false", **parameters}
    return config + "".join(PARAMETER.format(name, text) for name, text in texts.items() if text)


def xgboost_json(
    *,
    features: int = 4,
    classes: int = 0,
    targets: int = 1,
    objective: str = "binary:logistic",
    booster: str = "gbtree",
    version: Sequence[int] = (3, 0, 5),
    model: Mapping[str, object] = {},
    parameters: Mapping[str, str] = {},
) -> bytes:
    """A model without trees, with more fields of the model or of its parameters."""
    sizes = {"num_feature": str(features), "num_class": str(classes), "num_target": str(targets)}
    learner = {
        "learner_model_param": {**sizes, **parameters},
        "gradient_booster": {"name": booster, "model": {"trees": [], **model}},
        "objective": {"name": objective},
    }
    return json.dumps({"learner": learner, "version": list(version)}).encode()


def xgboost_binary(*, features: int = 4, classes: int = 0, objective: str = "binary:logistic") -> bytes:
    """A model without trees in the old binary format of XGBoost 1.7."""
    head = struct.pack("<fIiiiIII", 0.5, features, classes, 0, 0, 1, 7, 1).ljust(136, b"\0")
    texts = b"".join(struct.pack("<Q", len(text)) + text for text in (objective.encode(), b"gbtree"))
    return head + texts + bytes(160)


def lightgbm(*, features: int = 4, classes: int = 1, objective: str = "binary sigmoid:1", tree: str = "") -> bytes:
    """A model with one leaf."""
    head = f"tree\nversion=v4\nnum_class={classes}\nmax_feature_idx={features - 1}\nobjective={objective}\n"
    return f"{head}\nTree=0\nnum_leaves=1\nnum_cat=0\nleaf_value=0.5\n{tree}\n\nend of trees\n".encode()


def pickle_of(module: str) -> bytes:
    """The beginning of a pickle of protocol 4 with an object of a module; nothing can load it."""
    return b"\x80\x04\x95" + struct.pack("<Q", 99) + b"\x8c" + bytes([len(module)]) + module.encode()


def tree_model_files(config: ModelConfig) -> dict[str, bytes]:
    """The file that a configuration of the backend `fil` names, by default or in `default_model_filename`."""
    kind = config.parameters["model_type"].string_value if "model_type" in config.parameters else "xgboost"
    name, content = {
        "xgboost_json": ("xgboost.json", xgboost_json()),
        "lightgbm": ("model.txt", lightgbm()),
    }.get(kind, ("xgboost.model", xgboost_binary()))
    if config.default_model_filename.endswith(".json"):
        content = xgboost_json()
    return {config.default_model_filename or name: content}
