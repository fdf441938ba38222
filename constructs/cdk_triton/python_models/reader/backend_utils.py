"""The names of the module `triton_python_backend_utils`, and of its requests, by release.

The file `src/resources/triton_python_backend_utils.py` of python_backend has some of them. The process of a model sets
the others once it has imported the model (`Stub::StubSetup` and `Stub::Initialize` in `src/pb_stub.cc`). The branches
r22.05 to r26.07 were read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Final

from cdk_triton.triton.releases import is_at_least

__all__ = [
    "MODULE",
    "MODULES",
    "READ_THROUGH",
    "SET_LATER",
    "SET_LATE_SINCE",
    "imported_as",
    "request_methods",
    "utility_names",
]

MODULE: Final = "triton_python_backend_utils"
MODULES: Final = frozenset({MODULE, "c_python_backend_utils"})
"""The modules that have the server's classes. The process makes the second one, and sets its classes in the first."""

READ_THROUGH: Final = "26.07"
"""The newest release whose names were read."""

SET_LATE_SINCE: Final = "22.06"
"""From this release on, the model is imported before the process sets its names."""

SET_LATER: Final = frozenset(
    {
        *("Tensor", "InferenceRequest", "InferenceResponse", "TritonError", "TritonModelException", "Logger"),
        *("PreferredMemory", "TRITONSERVER_MEMORY_GPU", "TRITONSERVER_MEMORY_CPU", "MetricFamily"),
        *("load_model", "unload_model", "is_model_ready", "get_model_dir"),
    }
)
"""The names that the model's process sets itself."""

# Release → the names that came with it.
_SINCE: Final[dict[str, tuple[str, ...]]] = {
    "22.05": (
        *("Tensor", "InferenceRequest", "InferenceResponse", "TritonError", "TritonModelException"),
        *("serialize_byte_tensor", "deserialize_bytes_tensor", "get_input_tensor_by_name", "get_output_tensor_by_name"),
        *("get_input_config_by_name", "get_output_config_by_name", "using_decoupled_model_transaction_policy"),
        *("triton_to_numpy_type", "numpy_to_triton_type", "triton_string_to_numpy", "TRITON_STRING_TO_NUMPY"),
        *("TRITONSERVER_REQUEST_FLAG_SEQUENCE_START", "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END"),
        *("TRITONSERVER_RESPONSE_COMPLETE_FINAL", "np", "struct"),
    ),
    "22.06": ("ModelConfig", "json"),
    "22.09": ("Logger",),
    "23.04": ("PreferredMemory", "TRITONSERVER_MEMORY_GPU", "TRITONSERVER_MEMORY_CPU"),
    "23.05": ("MetricFamily",),
    "23.07": ("load_model", "unload_model", "is_model_ready", "get_model_dir"),
    "23.11": ("TRITONSERVER_REQUEST_RELEASE_ALL", "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE"),
}

# Release → the methods of `InferenceRequest` that came with it (`PYBIND11_EMBEDDED_MODULE` in `src/pb_stub.cc`).
_OF_REQUEST: Final[dict[str, tuple[str, ...]]] = {
    "22.05": (
        *("inputs", "request_id", "correlation_id", "flags", "set_flags", "requested_output_names"),
        *("exec", "async_exec", "get_response_sender"),
    ),
    "23.03": ("timeout", "parameters"),
    "23.08": ("trace",),
    "23.10": ("is_cancelled",),
    "23.11": ("set_release_flags",),
}

PARAMETERS_SINCE: Final = {
    ("exec", "decoupled"): "23.03",
    ("async_exec", "decoupled"): "23.03",
    ("InferenceRequest", "timeout"): "23.03",
    ("InferenceRequest", "preferred_memory"): "23.04",
    ("InferenceRequest", "trace"): "23.08",
    ("InferenceRequest", "parameters"): "23.11",
    ("InferenceResponse", "parameters"): "25.02",
}
"""Function and parameter → the release that the parameter came with (`py::arg` in `src/pb_stub.cc`)."""


def imported_as(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names under which a source imports the modules of the server."""
    imports = (node for node in nodes if isinstance(node, ast.Import))
    return frozenset(alias.asname or alias.name for each in imports for alias in each.names if alias.name in MODULES)


def request_methods() -> dict[str, str]:
    """Each method of a request, and the release that it came with; the first release of the table may not be that."""
    return {name: since for since, names in _OF_REQUEST.items() for name in names}


def utility_names(release: str | None) -> frozenset[str]:
    """The names of the module in a release.

    Args:
        release: a release, known or not; None for the names of any release.

    Raises:
        ConfigurationError: the name is not two digits, a dot and two digits.
    """
    return frozenset(
        name for since, names in _SINCE.items() if release is None or is_at_least(release, since) for name in names
    )
