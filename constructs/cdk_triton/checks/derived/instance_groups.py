"""The server's words about an instance group: its name, and a GPU that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton.checks.derived.configured import said_name
from cdk_triton.triton.model import Model

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelInstanceGroup

__all__ = ["group_name", "no_such_gpu"]


def group_name(model: Model, index: int, group: ModelInstanceGroup) -> str:
    """The name that the server gives a group."""
    return group.name or f"{said_name(model)}_{index}"


def no_such_gpu(model: Model, index: int, group: ModelInstanceGroup, gpu: int) -> str:
    """The server's sentence about a GPU that it does not have.

    It ends with numbers that depend on the machine. If the server chooses the kind, such a GPU makes it KIND_CPU.
    """
    words = (
        f"specifies invalid or unsupported gpu id {gpu}. GPUs with at least the minimum required CUDA compute "
        "compatibility of … are: …"
        if group.kind == group.KIND_GPU
        else "has kind KIND_CPU but specifies one or more GPUs"
    )
    return f"instance group {group_name(model, index, group)} of model {said_name(model)} {words}"
