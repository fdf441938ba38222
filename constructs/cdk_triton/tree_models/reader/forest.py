"""What the rules know of a tree model, whatever library wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cdk_triton._wording import quoted

__all__ = ["LIBRARIES", "ONE_AGAINST_ALL", "FileError", "Forest", "Format", "whole_number"]

Format = Literal["xgboost", "xgboost_json", "xgboost_ubj", "lightgbm", "treelite_checkpoint"]
"""A format, as the parameter `model_type` names it."""

LIBRARIES: Mapping[str, str] = {
    "xgboost": "a model in XGBoost's old binary format",
    "xgboost_json": "a model in XGBoost's JSON format",
    "xgboost_ubj": "a model in XGBoost's UBJSON format",
    "lightgbm": "a model in LightGBM's text format",
    "treelite_checkpoint": "a Treelite checkpoint",
}
"""Format → what a file of this format is."""

ONE_AGAINST_ALL = "multiclassova"
"""LightGBM's objective with a probability of its own for each class."""

_MOST_DIGITS = 10  # the libraries read these numbers into 32 bits


class FileError(Exception):
    """A file is damaged; the text is the rest of a sentence that begins with "the file"."""


def whole_number(text: str) -> int:
    """The number that a file holds as a text, such as the number of features.

    Raises:
        FileError: the text is no whole number from 0, or has more than 10 digits.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise FileError(f"has {quoted(text)} where a whole number belongs")
    return int(text)


@dataclass(frozen=True)
class Forest:
    """A tree model, as far as its file describes it.

    Attributes:
        format: the format of the file.
        writer: the library and version that wrote the file, as in `XGBoost 3.2.0`, or the library alone.
        version: the version that wrote the file; () if the file has none.
        features: the number of values in a row of the input; None if the file does not tell.
        classes: the number of classes of a multi-class classifier; 1 for every other model.
        targets: the number of values that the model predicts at the same time, such as the labels of a multi-label
            classifier.
        objective: the objective of the training as the library calls it; "" if the file has none.
        is_regression: whether the objective is certainly a regression.
        unsupported: the property for which Treelite cannot represent the model in any release, as the rest of a
            sentence that begins with "the model"; "" if there is none.
        fields: the fields of XGBoost's JSON and UBJSON formats that older releases of Treelite reject.
    """

    format: Format
    writer: str
    version: tuple[int, ...] = ()
    features: int | None = None
    classes: int = 1
    targets: int = 1
    objective: str = ""
    is_regression: bool = False
    unsupported: str = ""
    fields: frozenset[str] = frozenset()
