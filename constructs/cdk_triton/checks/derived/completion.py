"""The values that a backend adds to an incomplete configuration.

SageMaker starts the server without `--disable-auto-complete-config`, so a backend that can read the model's tensors
completes the configuration before the server judges it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import PLATFORMS, ConfiguredModel, completed_pair
from cdk_triton.checks.sources import backend, core
from cdk_triton.python_models.modules import python_version
from cdk_triton.python_models.reader.source import PythonSource, python_source
from cdk_triton.triton.model import Model

__all__ = [
    "SIDES",
    "SOURCES",
    "Side",
    "completes_batch_size",
    "completes_named_tensors",
    "completes_nothing",
    "completes_tensors",
    "known_backend",
]

Side = Literal["input", "output"]

SIDES: tuple[Side, ...] = ("input", "output")
"""Both sides, as fields of a configuration."""


@dataclass(frozen=True)
class _Completion:
    """The parts of a configuration that a backend fills in.

    Attributes:
        named: type and shape of a tensor that the configuration names.
        side: inputs, or outputs, that the configuration does not name: never, where it names none at all, or always.
        batch_size: another number instead of `max_batch_size: 0`.
    """

    named: bool
    side: Literal["never", "if none is named", "always"]
    batch_size: bool


SOURCES: Mapping[str, str] = {
    "dali": backend("dali_backend", "src/dali_model.h", 109, 119),
    "ensemble": core("src/ensemble_scheduler/ensemble_model.cc", 38, 60),
    "fil": backend("fil_backend", "src/api.cc", 50, 54),
    "identity": backend("identity_backend", "src/identity.cc", 588, 665),
    "onnxruntime": backend("onnxruntime_backend", "src/onnxruntime.cc", 958, 1215),
    "openvino": backend("openvino_backend", "src/openvino.cc", 698, 880),
    "pytorch": backend("pytorch_backend", "src/pt/model_state.cc", 50, 84),  # sets what it was given
    "repeat": backend("repeat_backend", "src/repeat.cc", 629, 660),
    "square": backend("square_backend", "src/square.cc", 719, 750),
    "tensorflow": backend("tensorflow_backend", "src/tensorflow.cc", 1722, 1776),  # nothing for graph definitions
    "tensorrt": backend("tensorrt_backend", "src/model_state.cc", 450, 560),
}
"""The code of each backend that completes a configuration, or would have to: it calls TRITONBACKEND_ModelSetConfig."""

_ALL = _Completion(named=True, side="always", batch_size=True)
_NOTHING = _Completion(named=False, side="never", batch_size=False)
_EMPTY_SIDES = _Completion(named=False, side="if none is named", batch_size=True)
_COMPLETIONS: Mapping[str, _Completion] = {
    "dali": _ALL,
    "ensemble": _NOTHING,
    "fil": _NOTHING,
    "identity": _NOTHING,
    "onnxruntime": _EMPTY_SIDES,
    "openvino": _EMPTY_SIDES,
    "pytorch": _NOTHING,
    "repeat": _NOTHING,
    "square": _NOTHING,
    "tensorflow": _ALL,
    "tensorrt": _Completion(named=True, side="if none is named", batch_size=True),
}


def known_backend(context: CheckContext, model: Model) -> str:
    """The name of the backend, `ensemble` for an ensemble, or "" if unknown code runs the model.

    The code is unknown if `runtime` names it, if the model has its own, and for PyTorch's ahead-of-time compiled
    models. The result is also "" if the server rejects the model because its platform is missing (CT284).
    """
    return _known_backends(context)[model.name]


@per_check
def _known_backends(context: CheckContext) -> Mapping[str, str]:
    return {model.name: _known_backend(context, model) for model in context.repository.models}


def _known_backend(context: CheckContext, model: Model) -> str:
    if model.is_ensemble:
        return "ensemble"
    platform, backend_name = completed_pair(context, model)
    is_elsewhere = model.config is not None and model.config.runtime
    library = f"libtriton_{backend_name}.so"
    own = any(file.path.name == library for file in model.files)
    is_rejected = not platform and backend_name in PLATFORMS
    return "" if is_elsewhere or own or is_rejected or platform == "torch_aoti" else backend_name


def completes_nothing(each: ConfiguredModel) -> bool:
    """Whether the backend is known not to complete a missing configuration."""
    sets_it_unchanged = known_backend(each.context, each.model) in ("python", "pytorch")
    return not sets_it_unchanged and _completion(each).side == "never"


def completes_named_tensors(each: ConfiguredModel) -> bool:
    """Whether the backend may fill in the type and shape of a tensor that the configuration names."""
    return _completion(each).named


def completes_tensors(each: ConfiguredModel, side: Side) -> bool:
    """Whether the backend may add inputs, or outputs, that the configuration does not name."""
    completion, config = _completion(each), each.config
    if completion.side == "if none is named":
        backend_name = known_backend(each.context, each.model)
        batch_inputs = 0 if backend_name == "tensorrt" else len(config.batch_input)
        return (len(config.input) + batch_inputs if side == "input" else len(config.output)) == 0
    return completion.side == "always"


def completes_batch_size(each: ConfiguredModel) -> bool:
    """Whether the backend may replace `max_batch_size: 0` by another number."""
    if known_backend(each.context, each.model) == "onnxruntime":  # together with inputs or outputs
        return any(completes_tensors(each, side) for side in SIDES)
    return _completion(each).batch_size


def _completion(each: ConfiguredModel) -> _Completion:
    """The parts that the model's backend may fill in; every part if the backend is not known."""
    name = known_backend(each.context, each.model)
    if name == "python":  # python_be.cc sets what auto_complete_config returns
        return _ALL if _may_complete_itself(each) else _NOTHING
    if name == "tensorflow" and completed_pair(each.context, each.model)[0] == "tensorflow_graphdef":
        return _NOTHING
    return _COMPLETIONS.get(name, _ALL)


def _may_complete_itself(each: ConfiguredModel) -> bool:
    """Whether a Python model may define `auto_complete_config`; a file that is missing or cannot be read may."""
    read = python_source(python_version(each.context))
    files = {file.path: file for file in each.model.files}
    for version in each.model.served_versions or (None,):
        file = files.get(each.model.directory / str(version) / (each.config.default_model_filename or "model.py"))
        source = None if file is None else each.context.contents(read, file)
        if not isinstance(source, PythonSource) or source.model is None or not source.model.is_complete:
            return True
        if "auto_complete_config" in source.model.methods:
            return True
    return False
