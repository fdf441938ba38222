"""What several rules about configurations ask: which models have one, and what the server completes in it."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.triton.checks.engine import Check
from cdk_triton.triton.releases import release_order
from cdk_triton.triton.repository import Model, Platform
from cdk_triton.triton.schema import ModelConfig

__all__ = ["completed_pair", "configured", "has_argument", "knows_aoti"]

_AOTI_SINCE = "26.03"  # branches of core: from r26.03 on it knows `torch_aoti` and `model.pt2`

# The order is the server's: the first that fits decides, and a default file name counts as much as a platform.
_BACKEND_OF: tuple[tuple[str, str, str], ...] = (
    ("tensorrt", "tensorrt_plan", "model.plan"),
    ("onnxruntime", "onnxruntime_onnx", "model.onnx"),
    ("openvino", "", "model.xml"),
    ("pytorch", "pytorch_libtorch", "model.pt"),
    ("pytorch", "torch_aoti", "model.pt2"),
    ("python", "", "model.py"),
)
_TENSORFLOW = {"tensorflow_graphdef": "model.graphdef", "tensorflow_savedmodel": "model.savedmodel"}
_PLATFORM_OF = {"tensorrt": "tensorrt_plan", "onnxruntime": "onnxruntime_onnx", "pytorch": "pytorch_libtorch"}


def configured(check: Check) -> Iterator[tuple[Model, ModelConfig]]:
    """The loaded models whose configuration can be read; the others are reported by CT101."""
    for model in check.loaded_models:
        if model.config is not None:
            yield model, model.config


def completed_pair(model: Model, config: ModelConfig, platform: Platform | None) -> tuple[str, str]:
    """`platform` and `backend` as the server completes them: AutoCompleteBackendFields of core's model_config_utils.cc.

    Files of the version directory are looked at for TensorFlow only: where a configuration names neither backend nor
    platform nor file, whatever the server finds in the directory makes a pair that it accepts.
    """
    name, backend, file = config.platform, config.backend, config.default_model_filename
    if not name and backend in ("", "tensorflow"):
        name = next((p for p, f in _TENSORFLOW.items() if file == f or (not file and _has_entry(model, f))), "")
    if name in _TENSORFLOW:
        return name, backend or "tensorflow"
    for candidate, its_platform, its_file in _BACKEND_OF:
        told = name == its_platform != "" or file == its_file
        if told and not backend and (its_file != "model.pt2" or knows_aoti(platform)):
            backend = candidate
    if not name and not file:
        backend = backend or model.backend_name or ""
    return name or _PLATFORM_OF.get(backend, ""), backend


def _has_entry(model: Model, name: str) -> bool:
    """Whether the first version directory has a file or directory of that name."""
    if not model.subdirectories:
        return False
    path = model.directory / model.subdirectories[0] / name
    return any(file.path.is_relative_to(path) for file in model.files)


def knows_aoti(platform: Platform | None) -> bool:
    """Whether the server knows PyTorch's second platform, `torch_aoti`; so it does where nobody said the release."""
    release = platform.release if platform is not None else None
    return release is None or release_order(release) >= release_order(_AOTI_SINCE)


def has_argument(check: Check, beginning: str) -> bool:
    """Whether the container's environment gives the server an argument that begins so; not, where nobody said."""
    return check.environment is not None and any(
        argument.startswith(beginning) for argument in check.environment.additional_args
    )
