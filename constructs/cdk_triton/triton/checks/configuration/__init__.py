"""CT2xx: what a configuration means."""

from __future__ import annotations

from cdk_triton.triton.checks.configuration import (
    backend_pairs,
    batch_tensors,
    batching,
    instance_groups,
    model_options,
    response_cache,
    sequence_states,
    sequences,
    tensor_support,
    tensors,
    warm_up,
)

__all__ = [
    "backend_pairs",
    "batch_tensors",
    "batching",
    "instance_groups",
    "model_options",
    "response_cache",
    "sequence_states",
    "sequences",
    "tensor_support",
    "tensors",
    "warm_up",
]
