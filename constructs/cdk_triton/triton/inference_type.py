"""`SAGEMAKER_TRITON_INFERENCE_TYPE`: the protocol of `/invocations` in the container of a single model.

`SagemakerAPIServer::Handle` in src/sagemaker_server.cc reads the variable. A multi-model container always infers.
"""

from __future__ import annotations

from typing import Final

from cdk_triton.triton.server_options import reads_variable

__all__ = ["GENERATING", "VARIABLE", "inference_type", "reads_inference_type"]

VARIABLE: Final = "SAGEMAKER_TRITON_INFERENCE_TYPE"

GENERATING: Final = ("generate", "generate_stream")
"""The inference types with the protocol of Triton's generate extension."""


def reads_inference_type(release: str | None) -> bool:
    """Whether a release reads the variable; an image of an unknown release is assumed to read it."""
    return release is None or reads_variable(release, VARIABLE)


def inference_type(value: str | None, release: str | None) -> str:
    """The inference type of a container with this value of the variable, such as `infer`."""
    return (value or "infer") if reads_inference_type(release) else "infer"
