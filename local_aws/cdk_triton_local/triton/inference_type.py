"""`SAGEMAKER_TRITON_INFERENCE_TYPE`, for a server that is too old to read it.

From release 25.03 on, `/invocations` of a single model is one of three handlers of Triton's HTTP front end: infer,
generate or generate_stream (`SagemakerAPIServer::Handle` in src/sagemaker_server.cc). The server here, 24.10, has the
same handlers at that front end alone. So the front end is switched on, and the invocations go there.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from cdk_triton.sagemaker import image_release
from cdk_triton.triton.inference_type import GENERATING, VARIABLE, reads_inference_type

__all__ = ["front_end_arguments", "generate_path", "is_generating", "read_variables"]


def read_variables(environment: Mapping[str, str], image: str) -> dict[str, str]:
    """The environment of a container, without the variable if the release of its image does not read it."""
    if reads_inference_type(image_release(image)):
        return dict(environment)
    return {name: value for name, value in environment.items() if name != VARIABLE}


def is_generating(environment: Mapping[str, str]) -> bool:
    """Whether `/invocations` is a generate handler; it never is that of a multi-model endpoint."""
    is_multi_model = environment.get("SAGEMAKER_MULTI_MODEL") == "true"
    return environment.get(VARIABLE) in GENERATING and not is_multi_model


def front_end_arguments(port: int) -> list[str]:
    """The arguments that switch the front end on; they come last, so that they win."""
    return ["--allow-http=true", "--http-address=127.0.0.1", f"--http-port={port}"]


def generate_path(environment: Mapping[str, str], model: str) -> str:
    """The path of the handler at the front end, for the latest version of a model."""
    return f"/v2/models/{quote(model, safe='')}/{environment[VARIABLE]}"
