"""The parameters of the backend `fil`, as it reads them from a configuration.

`SharedModelState::get_config_param` of rapids-triton reads a text like a C++ stream: a word ends at the first blank,
and a number ends where it cannot go on, so that `0,5` is 0. A boolean is exactly `true` or `false`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.releases import release_order
from cdk_triton.triton.schema import ModelConfig

__all__ = ["FILES", "FilParameters", "formats", "is_renamed", "number_in", "release_knows", "word"]

FILES: Mapping[str, str] = {
    "xgboost": "xgboost.model",
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
    "treelite_checkpoint": "checkpoint.tl",
}
"""`model_type` → the file that the backend loads where the configuration names none (fil_backend: src/model.h)."""

_RENAMED = "25.09"
_UBJ_SINCE = "24.10"  # r24.10 of fil_backend, src/serialization.h
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_INTEGER = re.compile(r"\s*([+-]?\d+)")


def is_renamed(release: str | None) -> bool | None:
    """Whether the release has the names of 25.09, such as `is_classifier`; None if the release is unknown."""
    return None if release is None else release_order(release) >= release_order(_RENAMED)


def formats(release: str | None) -> tuple[str, ...]:
    """The values of `model_type` that the release knows; all if it is unknown."""
    is_older = release is not None and release_order(release) < release_order(_UBJ_SINCE)
    return tuple(name for name in FILES if name != "xgboost_ubj" or not is_older)


def release_knows(platform: ServingPlatform | None, since: str) -> bool:
    """Whether the release has what the backend got in this release; True if the release is unknown."""
    return platform is None or platform.release is None or is_at_least(platform, since)


def word(text: str) -> str:
    """The text as the backend reads a word: up to the first blank."""
    return text.split()[0] if text.split() else ""


def number_in(text: str, *, is_integer: bool) -> str:
    """The part of a text that the backend reads as a number; "" if there is none."""
    found = (_INTEGER if is_integer else _NUMBER).match(text)
    return found[1] if found else ""


@dataclass(frozen=True)
class FilParameters:
    """The parameters of a model.

    Attributes:
        texts: the name of each parameter → its text.
        renamed: as `is_renamed` returns it for the release that serves.
    """

    texts: Mapping[str, str]
    renamed: bool | None

    @classmethod
    def of(cls, config: ModelConfig, platform: ServingPlatform | None) -> FilParameters:
        """The parameters of a configuration, for the release that serves."""
        texts = {name: each.string_value for name, each in config.parameters.items()}
        return cls(texts, is_renamed(None if platform is None else platform.release))

    @property
    def model_type(self) -> str:
        """The format of the model's file; `xgboost` by default."""
        return word(self.texts.get("model_type", "")) or "xgboost"

    @property
    def classifier(self) -> str:
        """The parameter that says whether the model is a classifier, of those that the release reads.

        The result is the name that a configuration should have if it has neither.
        """
        if self.renamed is False:
            return "output_class"
        # 25.09 and later still take the old name, and then do not read the new one. Any other text counts as missing.
        is_old = self.texts.get("output_class", "") in ("true", "false")
        if is_old or (self.renamed is None and "is_classifier" not in self.texts and "output_class" in self.texts):
            return "output_class"
        return "is_classifier"

    @property
    def is_classifier(self) -> bool | None:
        """Whether the backend treats the model as a classifier; None if the parameter is missing or no boolean."""
        return self.boolean(self.classifier)

    def boolean(self, name: str) -> bool | None:
        """The value of a boolean; None if the parameter is missing or no boolean."""
        return {"true": True, "false": False}.get(self.texts.get(name, ""))

    def written_sizes(self, classes: int) -> tuple[int, ...]:
        """How many values FIL may write into `output__0` for a row, the usual one first; () if that is not known.

        Args:
            classes: the classes of the model; 1 for a regression and for two classes.
        """
        is_classifier = self.is_classifier
        proba = self.boolean("predict_proba") if "predict_proba" in self.texts else False
        if is_classifier is None or proba is None:
            return ()
        if proba and classes > 1:
            return (classes,)
        if proba:
            return {True: (1, 2) if is_classifier else (1,), False: (2,), None: (1, 2)}[self.renamed]
        if is_classifier or classes == 1:
            return (1,)
        # Before 25.09, the GPU treats such a model as a regression.
        return () if self.renamed is False else (classes,)
