"""The command that makes a file that FIL reads out of a pickle."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.tree_models.releases import requirements_of, treelite_of

__all__ = ["conversion", "pickles_among"]

_SUFFIXES = (".pkl", ".pickle", ".joblib")


def pickles_among(names: Iterable[str]) -> list[str]:
    """The names that pickles usually have."""
    return [name for name in names if PurePosixPath(name).suffix in _SUFFIXES]


def conversion(path: PurePosixPath, library: str, platform: ServingPlatform | None) -> str:
    """What to do with a pickle, for the library of its object.

    The command is to be run where that library is installed. Only the user knows whether the pickle can be trusted, so
    cdk-triton does not run the command. `joblib.load` reads what `pickle.dump` wrote, too; `pickle.load` does not read
    what `joblib.dump` wrote, and the file's name does not tell them apart.
    """
    load = f"joblib.load('{path.name}')"
    if library in ("XGBoost", "LightGBM"):
        kind, save = {
            "XGBoost": ("xgboost_ubj", "save_model('xgboost.ubj')"),
            "LightGBM": ("lightgbm", "booster_.save_model('model.txt')"),
        }[library]
        return _advice(path, f"import joblib; {load}.{save}", kind)
    if library == "cuML":
        return _advice(path, f"import joblib; {load}.as_treelite().serialize('checkpoint.tl')", "treelite_checkpoint")
    version = treelite_of(platform)
    treelite = f", with {requirements_of(version)} installed" if version is not None else ""
    command = f"import joblib, treelite; treelite.sklearn.import_model({load}).serialize('checkpoint.tl')"
    return _advice(path, command, "treelite_checkpoint") + treelite


def _advice(path: PurePosixPath, program: str, model_type: str) -> str:
    return f'run this in {path.parent}, and write model_type "{model_type}": python -c "{program}"'
