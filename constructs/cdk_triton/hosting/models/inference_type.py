"""What the `inference_type` of a container changes for its callers, and where SageMaker does not offer it."""

from __future__ import annotations

from typing import Final

from aws_cdk import Annotations
from constructs import IConstruct

from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.triton.inference_type import GENERATING

__all__ = ["require_infer", "tell_protocol"]

PROTOCOL_INFO: Final = "cdk-triton:GenerateProtocol"

_CALLS: Final = {
    "generate": "TritonClient.generate()",
    "generate_stream": "TritonClient.stream(), or TritonClient.generate() for a model that sends one result",
}


def tell_protocol(construct: IConstruct, inference_type: str) -> None:
    """Attach a message about what callers of a container that generates do differently."""
    if inference_type in GENERATING:
        Annotations.of(construct).add_info_v2(
            PROTOCOL_INFO,
            f"inference_type is {inference_type!r}, so requests are flat JSON, without shapes and binary tensors. Call "
            f"the endpoint with {_CALLS[inference_type]}. TritonClient.infer(), infer_many() and submit() do not work",
        )


def require_infer(path: str, model: ITritonModel) -> None:
    """Reject a container that generates for an asynchronous endpoint.

    SageMaker stores one answer of the container, and `submit` writes requests of the infer protocol.

    Raises:
        ConfigurationError: the model has another inference type.
    """
    inference_type = getattr(model, "inference_type", "infer")
    if inference_type != "infer":
        raise ConfigurationError(
            f"{path} is asynchronous, but the container of {model.node.path} has the inference_type "
            f"{inference_type!r}, whose requests and answers TritonClient.submit() does not write and read: omit "
            "inference_type, or make the endpoint real-time and call TritonClient.stream()"
        )
