"""A tree model behind a Triton model configuration, on the CPU.

Treelite is the library that the real backend reads models with. Its reference predictor, GTIL, is what the backend
computes with on a CPU. The rest follows `TreeliteModel::predict` of fil_backend (src/tl_model.h, 26.06).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import treelite
from numpy.typing import NDArray

from cdk_triton.tree_models.parameters import FilParameters, formats, is_renamed, number_in

__all__ = ["ForestModel"]

_INPUT, _OUTPUT = "input__0", "output__0"
_MULTI_CLASS: Final = 2  # treelite::TaskType::kMultiClf

_LOADERS: Final[Mapping[str, Callable[[str, bool], treelite.Model]]] = {
    "xgboost": lambda path, _: treelite.frontend.load_xgboost_model_legacy_binary(path),
    "xgboost_json": lambda path, any_field: treelite.frontend.load_xgboost_model(
        path, format_choice="json", allow_unknown_field=any_field
    ),
    "xgboost_ubj": lambda path, any_field: treelite.frontend.load_xgboost_model(
        path, format_choice="ubjson", allow_unknown_field=any_field
    ),
    "lightgbm": lambda path, _: treelite.frontend.load_lightgbm_model(path),
    "treelite_checkpoint": lambda path, _: treelite.Model.deserialize(path),
}


class ForestModel:
    """A tree model with the parameters of a configuration.

    Args:
        path: the file of the model.
        config: the model configuration as Triton hands it to a backend (its JSON form).
        release: the release whose names and formats count; None for those of all releases.

    Raises:
        ValueError: the real backend would not load the model, or would read or write beyond its tensors.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], release: str | None = None) -> None:
        given = {name: each["string_value"] for name, each in config.get("parameters", {}).items()}
        self._parameters = parameters = FilParameters(given, is_renamed(release))
        self._proba = _boolean(parameters, "predict_proba", default=False)
        self._is_classifier = _boolean(parameters, parameters.classifier)
        self._threshold = _threshold(parameters) if self._is_classifier else 0.5
        self._threads = int(number_in(given.get("cpu_nthread", ""), is_integer=True) or 1)
        self._model = _load(path, parameters, release)
        header = self._model.get_header_accessor()
        if header.get_field("num_target")[0] != 1:
            raise ValueError("Multi-target model not supported")
        self._classes = int(header.get_field("num_class")[0])
        if self._proba and header.get_field("task_type")[0] == _MULTI_CLASS:
            has_vectors = int(header.get_field("leaf_vector_shape")[1]) > 1
            header.set_field("postprocessor", "identity_multiclass" if has_vectors else "softmax")
        self._shape = _output_shape(config)
        self._check_sizes(config)

    def run(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """The predictions for rows of features."""
        data = np.ascontiguousarray(rows).reshape(len(rows), -1)
        if data.shape[1] != self._model.num_feature:
            raise ValueError(f"a row has {data.shape[1]} values, but the model has {self._model.num_feature} features")
        found = treelite.gtil.predict(self._model, data, nthread=self._threads).reshape(len(rows), -1)
        if self._is_classifier and not self._proba:
            found = found.argmax(axis=1) if self._classes > 1 else found > self._threshold
        elif self._values == 2 * found.shape[1]:
            found = np.concatenate([1 - found, found], axis=1)
        return np.asarray(found, np.float32).reshape(len(rows), *self._shape)

    @property
    def _values(self) -> int:
        return prod(self._shape)

    def _check_sizes(self, config: Mapping[str, Any]) -> None:
        """Reject an output of another size than the backend writes, which it does not check itself."""
        allowed = self._parameters.written_sizes(self._classes)
        if self._values not in allowed:
            sizes = " or ".join(map(str, allowed))
            raise ValueError(f"{_OUTPUT!r} has {self._values} values for a row, but the backend writes {sizes}")
        names = {tensor["name"] for tensor in config["output"]}
        if names - {_OUTPUT}:
            raise ValueError(f"the stand-in computes no output {', '.join(map(repr, sorted(names - {_OUTPUT})))}")


def _load(path: Path, parameters: FilParameters, release: str | None) -> treelite.Model:
    kind = parameters.model_type
    if kind not in formats(release):
        raise ValueError(f"{kind} not recognized as a valid serialization format.")
    any_field = _boolean(parameters, "xgboost_allow_unknown_field", default=False)
    try:
        return _LOADERS[kind](str(path), any_field)
    except treelite.TreeliteError as error:
        raise ValueError(str(error)) from error


def _boolean(parameters: FilParameters, name: str, *, default: bool | None = None) -> bool:
    text, value = parameters.texts.get(name), parameters.boolean(name)
    if text is None:
        if default is None:
            raise ValueError(f"Required parameter {name} not found in config")
        return default
    if value is None:
        raise ValueError(f"Expected 'true' or 'false' for parameter '{name}', got: '{text}'")
    return value


def _threshold(parameters: FilParameters) -> float:
    text = parameters.texts.get("threshold")
    if text is None:
        raise ValueError("Required parameter threshold not found in config")
    if not (number := number_in(text, is_integer=False)):
        raise ValueError("Bad input for parameter threshold")
    return float(number)


def _output_shape(config: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of a row of the output; the backend removes every dimension of 1 (rapids-triton: `squeeze_output`)."""
    output = next((tensor for tensor in config["output"] if tensor["name"] == _OUTPUT), None)
    if output is None:
        raise ValueError(f"No output with name {_OUTPUT} in configuration.")
    if not any(tensor["name"] == _INPUT for tensor in config["input"]):
        raise ValueError(f"the configuration has no input {_INPUT!r}")
    dims = [int(dim) for dim in output.get("reshape", output).get("shape", output["dims"])]
    dims = dims[1:] if dims[:1] == [-1] else dims
    if any(dim < 0 for dim in dims):
        raise ValueError("Backends with variable-shape outputs must request desired output shape")
    return tuple(dim for dim in dims if dim != 1)
