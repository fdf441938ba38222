"""Trains the models of the three tenants, and writes them beside their configurations.

The libraries are no dependencies of the project, and the files are small, so git keeps them. Run this in an environment
of its own, with the versions with which the files were made:

    pip install scikit-learn==1.9.1 xgboost-cpu==3.2.0 lightgbm==4.7.0 treelite==4.8.1
    python model_assets/tree_models/train.py

The data sets are those that scikit-learn contains. A fifth of each is kept apart, and the accuracy on it is printed.
"""

from __future__ import annotations

from pathlib import Path

import lightgbm
import numpy as np
import treelite
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

HERE = Path(__file__).parent


def parts(load: object) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A data set: rows of the training, other rows, answers of the training, other answers."""
    data = load(return_X_y=True)
    return train_test_split(data[0].astype(np.float32), data[1], test_size=0.2, random_state=0)


def wine() -> None:
    """A random forest of scikit-learn, which Treelite converts: three cultivars by 13 chemical properties."""
    train, test, answers, right = parts(load_wine)
    forest = RandomForestClassifier(16, max_depth=4, random_state=0).fit(train, answers)
    treelite.sklearn.import_model(forest).serialize(HERE / "wine/wine/1/checkpoint.tl")
    print("wine", forest.score(test, right), test[0].tolist(), right[0])


def cancer() -> None:
    """XGBoost: malignant (0) or benign (1) by 30 properties of cells."""
    train, test, answers, right = parts(load_breast_cancer)
    forest = xgboost.XGBClassifier(n_estimators=16, max_depth=3, n_jobs=1).fit(train, answers)
    forest.save_model(HERE / "cancer/cancer/1/xgboost.ubj")
    print("cancer", forest.score(test, right), test[0].tolist(), right[0])


def diabetes() -> None:
    """LightGBM: the progression of a disease after a year, by ten properties of a patient."""
    train, test, answers, right = parts(load_diabetes)
    forest = lightgbm.LGBMRegressor(n_estimators=24, num_leaves=6, n_jobs=1, verbose=-1).fit(train, answers)
    forest.booster_.save_model(HERE / "diabetes/diabetes/1/model.txt")
    print("diabetes", forest.score(test, right), test[0].tolist(), right[0], forest.predict(test[:1]))


if __name__ == "__main__":
    wine()
    cancer()
    diabetes()
