"""Completes a configuration without `platform` or `backend`, as the server does.

Server core, model_config_utils.cc, AutoCompleteBackendFields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cdk_triton.triton.schema import ModelConfig

__all__ = ["completed_pair", "is_named_by_model"]

_TENSORFLOW = {"tensorflow_savedmodel": "model.savedmodel", "tensorflow_graphdef": "model.graphdef"}

# Backend, platform, file. The order is the server's: the first that fits decides.
_BACKENDS: tuple[tuple[str, str, str], ...] = (
    ("tensorrt", "tensorrt_plan", "model.plan"),
    ("onnxruntime", "onnxruntime_onnx", "model.onnx"),
    ("openvino", "", "model.xml"),
    ("pytorch", "pytorch_libtorch", "model.pt"),
    ("pytorch", "torch_aoti", "model.pt2"),
    ("python", "", "model.py"),
)
_FILES_ONLY = ("model.plan", "model.pt", "model.pt2")  # as a directory they tell nothing
_PLATFORM_OF = {"tensorrt": "tensorrt_plan", "onnxruntime": "onnxruntime_onnx", "pytorch": "pytorch_libtorch"}


def completed_pair(
    config: ModelConfig | None,
    name: str,
    entries_of: Callable[[], Mapping[str, bool]],
    *,
    knows_aoti: bool = True,
    knows_libtorch: bool = False,
) -> tuple[str, str]:
    """`platform` and `backend` as the server completes them; "" for one that it cannot complete.

    Args:
        config: the configuration, or None if the model does not have one.
        name: the model's name, which may end in a dot and the backend.
        entries_of: returns the entries of the first version directory: names, and whether each is a directory. It is
            called only if the configuration does not determine both.
        knows_aoti: whether the release has the platform `torch_aoti`.
        knows_libtorch: whether the release takes the platform `libtorch` for PyTorch (and then rejects the pair).
    """
    config = config or ModelConfig()
    platform, backend, file = config.platform, config.backend, config.default_model_filename
    looks_into_directory = not (platform or file)
    is_open = looks_into_directory and backend in ("", "tensorflow")
    entries = entries_of() if is_open else {}
    if not platform and backend in ("", "tensorflow"):
        for candidate, its_file in _TENSORFLOW.items():
            is_directory = entries.get(its_file) if looks_into_directory else None
            if file == its_file or is_directory is (candidate == "tensorflow_savedmodel"):
                platform = candidate
    if platform in _TENSORFLOW:
        return platform, backend or "tensorflow"
    for candidate, its_platform, its_file in () if backend else _BACKENDS:
        if its_platform == "torch_aoti" and not knows_aoti:
            continue
        is_libtorch = knows_libtorch and (platform, its_platform) == ("libtorch", "pytorch_libtorch")
        named = platform == its_platform != "" or is_libtorch or file == its_file
        found = looks_into_directory and its_file in entries and not (entries[its_file] and its_file in _FILES_ONLY)
        if named or found:
            backend = candidate
            platform = platform or (its_platform if found else "")
            break
    if not backend and looks_into_directory:
        return platform, name.partition(".")[2]  # the server has completed the platform before
    return platform or _PLATFORM_OF.get(backend, ""), backend


def is_named_by_model(config: ModelConfig, name: str, entries: Mapping[str, bool], backend: str) -> bool:
    """Whether the model's name alone gives the backend: the server then needs the file `model.<backend>`.

    Args:
        config: the configuration.
        name: the model's name.
        entries: what is in the first version directory: names, and whether each is a directory.
        backend: the backend as the server completes it.
    """
    if config.platform or config.backend or config.default_model_filename or name.partition(".")[2] != backend:
        return False
    files = [file for each, _, file in _BACKENDS if each == backend]
    return not any(file in entries and not (entries[file] and file in _FILES_ONLY) for file in files)
