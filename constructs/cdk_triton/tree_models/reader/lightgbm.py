"""LightGBM's text format: lines `key=value`, first of the model, then of each tree.

Treelite reads it in src/model_loader/lightgbm.cc.
"""

from __future__ import annotations

import re

from cdk_triton.tree_models.reader.forest import FileError, Forest, whole_number

__all__ = ["lightgbm"]

_REGRESSIONS = (
    *("regression", "regression_l2", "l2", "mean_squared_error", "mse", "l2_root", "root_mean_squared_error", "rmse"),
    *("regression_l1", "l1", "mean_absolute_error", "mae", "mape", "mean_absolute_percentage_error"),
    *("huber", "fair", "poisson", "quantile", "gamma", "tweedie"),
)


def lightgbm(content: bytes) -> Forest:
    """Read a model.

    Raises:
        FileError: the file is not a model of LightGBM, or incomplete.
    """
    head, *trees = re.split(r"^Tree=", content.decode("utf-8", "replace"), flags=re.MULTILINE)
    fields = dict(line.rstrip().partition("=")[::2] for line in head.splitlines())
    for name in ("max_feature_idx", "num_class"):
        if not fields.get(name):
            raise FileError(f"is not a model of LightGBM: it has no {name}")
    _check_trees(fields, head, trees)
    objective = (fields.get("objective") or "custom").split()[0]
    version = fields.get("version", "")
    return Forest(
        "lightgbm",
        f"LightGBM (format {version})" if version else "LightGBM",
        features=whole_number(fields["max_feature_idx"]) + 1,
        classes=max(whole_number(fields["num_class"]), 1),
        objective=objective,
        is_regression=objective in _REGRESSIONS,
        unsupported="has linear models in its leaves (linear_tree), which Treelite does not read"
        if any(re.search(r"^is_linear=[1-9]", tree, re.MULTILINE) for tree in trees)
        else "",
    )


def _check_trees(fields: dict[str, str], head: str, trees: list[str]) -> None:
    """Reject a file that ends too early: it has fewer trees than the model's fields say, or a tree fewer values."""
    announced = len(fields.get("tree_sizes", "").split())
    if len(trees) < announced:
        raise FileError(f"is incomplete: it has {len(trees)} of {announced} trees")
    if not trees and re.search("^end of trees", head, re.MULTILINE) is None:
        raise FileError("is incomplete: it ends before its first tree")
    for index, tree in enumerate(trees):
        leaves = re.search(r"^num_leaves=(\d+)", tree, re.MULTILINE)
        values = re.search(r"^leaf_value=(.*)$", tree, re.MULTILINE)
        if leaves is None or values is None or len(values[1].split()) < whole_number(leaves[1]):
            raise FileError(f"is incomplete: tree {index} has fewer values than leaves")
