"""CT286 to CT288: what the dynamic batcher of a release does wrong."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.releases import is_older, is_within
from cdk_triton.checks.derived.scheduling import (
    SOUND_SINCE,
    breaks_ordering,
    effective_policies,
    has_freed_memory,
    least_instances,
)
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core, core_commit, release_notes
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig

_UNORDERED_SINCE, _ORDERED_SINCE = "25.09", "26.08"  # core b06d69b, and the notes of 2.72.0
_MISCOUNTS_SINCE, _COUNTS_SINCE = "23.08", "26.08"  # core 66c61d2, and the notes of 2.72.0


@model_rule(
    "CT286",
    Severity.WARNING,
    "the release does not keep the order of responses",
    source=core_commit("b06d69b0e9afe0f5e6552a3362573e8651f73038"),
    applies=lambda platform: is_within(platform, _UNORDERED_SINCE, _ORDERED_SINCE),
)
def unordered_responses(each: ConfiguredModel) -> Iterator[Problem]:
    """Servers from 25.09 to 26.07 do not keep the order of responses, although `preserve_ordering` is on.

    If a model has several instances, these servers send each response as soon as it is ready. The release notes of
    26.08 announce that servers keep the order again (triton-inference-server/core#520). Use one instance or a newer
    release.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { preserve_ordering: true }
        instance_group { count: 2 kind: KIND_CPU }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { preserve_ordering: true }
        instance_group { count: 1 kind: KIND_CPU }

    Limits:
        The rule may count too few instances. For a model without `instance_group`, or a group of `KIND_AUTO` without
        `gpus`, the server may create instances on each GPU. Without `count`, the server creates two instances of an
        ONNX model on the CPU, but the rule counts one.
    """
    instances = _instances(each)
    if each.config.dynamic_batching.preserve_ordering and instances > 1:
        yield each.problem(
            "dynamic_batching.preserve_ordering",
            f"preserve_ordering is true, but {each.name!r} has {instances} instances, so the server of "
            f"{each.context.release} would send responses as they become ready, not in the order of the requests",
            f"serve with {_ORDERED_SINCE} or newer, use one instance, or acknowledge CT286 if no client needs the "
            "order",
        )


@model_rule(
    "CT287",
    Severity.WARNING,
    "preserve_ordering and the response cache do not go together in the release",
    source=release_notes("2.75.0"),
    applies=lambda platform: is_older(platform, SOUND_SINCE),
)
def ordering_with_cache(each: ConfiguredModel) -> Iterator[Problem]:
    """Servers before 26.11 cannot use `preserve_ordering` and `response_cache` together.

    A response from the cache overtakes earlier requests that wait in the queue (triton-inference-server/core#520). The
    servers from 26.08 to 26.10 also use freed memory in the dynamic batcher, and may crash. Release 26.11 fixed both
    faults.

    Example:
        $ cdk-triton validate . --platform 26.09/ml.g5.xlarge --image $IMAGE
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { preserve_ordering: true }
        response_cache { enable: true }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { preserve_ordering: true }

    Limits:
        For servers before 26.08, the rule reports a model only if `additional_args` of the container's environment give
        the server a cache. For servers from 26.08 to 26.10, the rule also reports a model if no environment is given.
    """
    if breaks_ordering(each):
        may_crash = has_freed_memory(each.context.platform)
        effect = "may use freed memory and crash" if may_crash else "would send cached responses out of order"
        yield each.problem(
            "response_cache.enable",
            f"preserve_ordering and response_cache are enabled for {each.name!r}, so the server of "
            f"{each.context.release} {effect}",
            f"remove one of the two settings, serve with {SOUND_SINCE} or newer"
            + (" or with a release before 26.08" if may_crash else "")
            + ", or acknowledge CT287",
        )


@model_rule(
    "CT288",
    Severity.WARNING,
    "the release runs a model with a queue policy slower and slower",
    source=core("src/instance_queue.cc", 57, 106),
    applies=lambda platform: is_within(platform, _MISCOUNTS_SINCE, _COUNTS_SINCE),
)
def starved_instances(each: ConfiguredModel) -> Iterator[Problem]:
    """Servers from 23.08 to 26.07 miscount the free instances of a model with a queue policy and a queue delay.

    The fault needs several instances. With a queue policy or priority levels, the server counts the instances that wait
    for work. The count is wrong after each merge of two batches, so the model gets less and less work until the server
    loads the model again (triton-inference-server/server#8870, and the release notes of 26.08).

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching {
          max_queue_delay_microseconds: 500
          default_queue_policy { default_timeout_microseconds: 1000000 }
        }
        instance_group { count: 2 kind: KIND_CPU }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { default_queue_policy { default_timeout_microseconds: 1000000 } }
        instance_group { count: 2 kind: KIND_CPU }

    Limits:
        The rule may count too few instances. For a model without `instance_group`, or a group of `KIND_AUTO` without
        `gpus`, the server may create instances on each GPU. Without `count`, the server creates two instances of an
        ONNX or TensorFlow model on the CPU, but the rule counts one.
    """
    batching = each.config.dynamic_batching
    policy = _policy(each.config)
    merges = batching.max_queue_delay_microseconds > 0 and each.config.max_batch_size > 1
    if policy is not None and merges and _instances(each) > 1:
        yield each.problem(
            "dynamic_batching.max_queue_delay_microseconds",
            f"{each.name!r} has {policy} and max_queue_delay_microseconds, so the server of {each.context.release} "
            "would miscount the model's free instances and run the model slower and slower until it reloads the model",
            f"remove max_queue_delay_microseconds or {policy}, serve with {_COUNTS_SINCE} or newer, or acknowledge "
            "CT288",
        )


def _policy(config: ModelConfig) -> str | None:
    """The setting of a queue for which the server counts free instances; None if it does not count them."""
    if config.dynamic_batching.priority_levels:
        return "priority_levels"
    for _, policy in effective_policies(config):
        for name in ("default_timeout_microseconds", "allow_timeout_override", "max_queue_size"):
            if getattr(policy, name):
                return name
    return None


def _instances(each: ConfiguredModel) -> int:
    platform = each.context.platform
    return least_instances(each.config, platform.instance.gpu_count if platform is not None else 1)
