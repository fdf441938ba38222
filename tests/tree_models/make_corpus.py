"""Writes the files of `corpus/` with the libraries that are installed, and what these libraries predict.

The libraries are no dependencies of the project. Run this in an environment of its own, first with an XGBoost that
still has the old binary format, then with today's; each run replaces only the files that it can write:

    pip install xgboost-cpu==3.0.5 && python make_corpus.py
    pip install xgboost-cpu==3.2.0 lightgbm scikit-learn treelite pandas && python make_corpus.py
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray

CORPUS = Path(__file__).parent / "corpus"
PREDICTIONS = CORPUS / "predictions.json"
ROWS = 6

rng = np.random.default_rng(20261130)
X = rng.normal(size=(80, 4)).astype(np.float32)
TWO = (X[:, 0] + X[:, 1] > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
NUMBER = X[:, 0] * 2 + X[:, 2]


def main() -> None:
    CORPUS.mkdir(exist_ok=True)
    known = json.loads(PREDICTIONS.read_text()) if PREDICTIONS.exists() else {"rows": X[:ROWS].tolist()}
    _xgboost(known)
    try:
        _others(known)  # only today's libraries are installed with today's XGBoost
    except ImportError as error:
        sys.stderr.write(f"only XGBoost: {error}\n")
    PREDICTIONS.write_text(json.dumps(known, indent=1) + "\n")


def _kept(known: dict[str, Any], name: str, predictions: Any) -> None:
    known[name] = np.asarray(predictions, dtype=np.float64).reshape(ROWS, -1).round(9).tolist()


def _xgboost(known: dict[str, Any]) -> None:
    version = ".".join(xgboost.__version__.split(".")[:2])

    def train(name: str, y: NDArray[Any], suffixes: Sequence[str], data: Any = X, **parameters: object) -> None:
        given = {"max_depth": 2, "nthread": 1, **parameters}
        matrix = xgboost.DMatrix(data, label=y, enable_categorical=data is not X)
        booster = xgboost.train(given, matrix, num_boost_round=2)
        for suffix in suffixes:
            path = CORPUS / f"xgboost-{version}-{name}.{suffix}"
            booster.save_model(path)
            if data is X:
                _kept(known, path.name, booster.predict(xgboost.DMatrix(X[:ROWS])))

    if version == "3.0":
        train("binary", TWO, ["deprecated", "json"], objective="binary:logistic")
        return
    train("binary", TWO, ["json", "ubj", "model"], objective="binary:logistic")
    train("multi", THREE, ["ubj"], objective="multi:softprob", num_class=3)
    train("regression", NUMBER, ["ubj"], objective="reg:squarederror")
    train("dart", TWO, ["ubj"], objective="binary:logistic", booster="dart")
    train("absolute", NUMBER, ["ubj"], objective="reg:absoluteerror")
    train("targets", np.stack([NUMBER, -NUMBER], 1), ["ubj"], objective="reg:squarederror")
    train("linear", TWO, ["json"], objective="binary:logistic", booster="gblinear")
    import pandas

    frame = pandas.DataFrame({"a": X[:, 0], "b": pandas.Categorical(THREE)})
    train("categories", TWO, ["ubj"], frame, objective="binary:logistic", tree_method="hist")


def _others(known: dict[str, Any]) -> None:
    import joblib
    import lightgbm
    import treelite
    from sklearn.ensemble import GradientBoostingRegressor, IsolationForest, RandomForestClassifier

    def train(name: str, y: NDArray[Any], **parameters: object) -> None:
        given = {"verbose": -1, "num_leaves": 3, "min_data_in_leaf": 5, "num_threads": 1, **parameters}
        booster = lightgbm.train(given, lightgbm.Dataset(X, label=y), 2)
        path = CORPUS / f"lightgbm-{lightgbm.__version__[:3]}-{name}.txt"
        booster.save_model(path)
        _kept(known, path.name, booster.predict(X[:ROWS]))

    train("binary", TWO, objective="binary")
    train("multi", THREE, objective="multiclass", num_class=3)
    train("regression", NUMBER, objective="regression")
    train("linear", NUMBER, objective="regression", linear_tree=True)

    def convert(name: str, model: Any, y: NDArray[Any], predict: Callable[[Any], Any]) -> Any:
        model.fit(X, y)
        path = CORPUS / f"treelite-{treelite.__version__[:3]}-{name}.tl"
        treelite.sklearn.import_model(model).serialize(path)
        _kept(known, path.name, predict(model))
        return model

    rows = X[:ROWS]
    forest = RandomForestClassifier(2, max_depth=2, random_state=0)
    convert(
        "random-forest-2", RandomForestClassifier(2, max_depth=2, random_state=0), TWO, lambda m: m.predict_proba(rows)
    )
    convert("random-forest-3", forest, THREE, lambda m: m.predict_proba(rows))
    boosting = GradientBoostingRegressor(n_estimators=2, max_depth=2, random_state=0)
    convert("boosting", boosting, NUMBER, lambda m: m.predict(rows))
    convert(
        "isolation",
        IsolationForest(n_estimators=2, max_samples=8, random_state=0),
        NUMBER,
        lambda m: -m.score_samples(rows),
    )
    two = np.stack([TWO, 1 - TWO], 1)
    convert("targets", RandomForestClassifier(2, max_depth=2, random_state=0), two, lambda m: m.predict(rows))
    (CORPUS / "sklearn-random-forest.pkl").write_bytes(pickle.dumps(forest))
    joblib.dump(forest, CORPUS / "sklearn-random-forest.joblib", compress=3)
    (CORPUS / "lightgbm-classifier.pkl").write_bytes(
        pickle.dumps(lightgbm.LGBMClassifier(n_estimators=1, num_leaves=2, verbose=-1).fit(X, TWO))
    )


if __name__ == "__main__":
    main()
