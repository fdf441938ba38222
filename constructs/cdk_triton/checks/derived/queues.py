"""The queue and the instances of a model, as its dynamic batcher uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cdk_triton.triton.schema import ModelConfig

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelQueuePolicy

__all__ = ["effective_policies", "least_instances"]


def effective_policies(config: ModelConfig) -> Iterator[tuple[str, ModelQueuePolicy]]:
    """Every queue policy that a request may meet, with its field.

    The policies of priorities count only if there are levels, and the default one only if a level has none of its own
    (core, `src/scheduler_utils.cc`).
    """
    batching = config.dynamic_batching
    own = {level for level in batching.priority_queue_policy if 1 <= level <= batching.priority_levels}
    if len(own) < max(batching.priority_levels, 1):
        yield "dynamic_batching.default_queue_policy", batching.default_queue_policy
    for level in sorted(own):
        yield f'dynamic_batching.priority_queue_policy["{level}"]', batching.priority_queue_policy[level]


def least_instances(config: ModelConfig, gpus: int) -> int:
    """How many instances a model has at least, on a machine with so many GPUs.

    A group without `gpus` has its count on each GPU, but if the server chooses the kind, it may take the CPU.
    """
    count = 0
    for group in config.instance_group:
        everywhere = gpus if group.kind == group.KIND_GPU else 1
        places = len(group.gpus) if group.kind in (group.KIND_GPU, group.KIND_AUTO) and group.gpus else everywhere
        count += max(group.count, 1) * max(places, 1)
    return max(count, 1)
