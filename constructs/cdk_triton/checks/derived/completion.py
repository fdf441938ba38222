"""What a backend fills in where a configuration leaves something out.

SageMaker starts the server without `--disable-auto-complete-config`, so a backend that knows the model's tensors
completes the configuration before the server judges it.
"""

from __future__ import annotations

from typing import Literal

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import completed_pair
from cdk_triton.checks.derived.python_modules import python_version
from cdk_triton.triton.contents.python_source import PythonSource, python_source
from cdk_triton.triton.repository import Model
from cdk_triton.triton.schema import ModelConfig

__all__ = ["Side", "completes_batch_size", "completes_named_tensors", "completes_tensors", "known_backend"]

Side = Literal["input", "output"]

_NEVER = ("ensemble", "pytorch")
_SIDES: tuple[Side, ...] = ("input", "output")
_WHOLE_SIDES = ("onnxruntime", "openvino")  # all inputs, or all outputs, where the configuration names none


def known_backend(context: CheckContext, model: Model, config: ModelConfig) -> str:
    """The backend by name, `ensemble`, or "" where what runs the model is code that nobody here knows.

    That is where `runtime` names the code, where the model brings its own, and PyTorch's ahead-of-time compiled models.
    """
    if model.is_ensemble:
        return "ensemble"
    platform, backend = completed_pair(model, config, context.platform)
    own = any(file.path.name == f"libtriton_{backend}.so" for file in model.files)
    return "" if config.runtime or own or platform == "torch_aoti" else backend


def completes_named_tensors(context: CheckContext, model: Model, config: ModelConfig) -> bool:
    """Whether the backend may fill in the type and shape of a tensor that the configuration names."""
    backend = known_backend(context, model, config)
    if backend == "python":
        return _may_complete_itself(context, model, config)
    return backend not in (*_NEVER, *_WHOLE_SIDES)


def completes_tensors(context: CheckContext, model: Model, config: ModelConfig, side: Side) -> bool:
    """Whether the backend may add inputs, or outputs, that the configuration does not name."""
    backend = known_backend(context, model, config)
    if backend == "tensorrt":  # of a tensor that is named it completes type and shape: model_state.cc, FixIO
        return not (config.input if side == "input" else config.output)
    if backend in _WHOLE_SIDES:
        named = len(config.input) + len(config.batch_input) if side == "input" else len(config.output)
        return named == 0
    if backend == "python":
        return _may_complete_itself(context, model, config)
    return backend not in _NEVER


def completes_batch_size(context: CheckContext, model: Model, config: ModelConfig) -> bool:
    """Whether the backend may put another number in the place of `max_batch_size: 0`."""
    backend = known_backend(context, model, config)
    if backend == "onnxruntime":  # together with inputs or outputs
        return any(completes_tensors(context, model, config, side) for side in _SIDES)
    if backend == "python":
        return _may_complete_itself(context, model, config)
    return backend not in _NEVER


def _may_complete_itself(context: CheckContext, model: Model, config: ModelConfig) -> bool:
    """Whether a Python model may define `auto_complete_config`; what is missing or cannot be read may."""
    read = python_source(python_version(context))
    files = {file.path: file for file in model.files}
    for version in model.served_versions or (None,):
        file = files.get(model.directory / str(version) / (config.default_model_filename or "model.py"))
        source = None if file is None else context.contents(read, file)
        if not isinstance(source, PythonSource) or source.model is None or not source.model.is_complete:
            return True
        if "auto_complete_config" in source.model.methods:
            return True
    return False
