"""How the server schedules a model: its queue, its instances and its response cache."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from cdk_triton._tokens import has_token
from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import ConfiguredModel, configured, has_argument
from cdk_triton.checks.derived.releases import is_within
from cdk_triton.checks.registry import rules_about
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.schema import ModelConfig, enum_name

if TYPE_CHECKING:
    from cdk_triton.checks.derived.configured import Part
    from cdk_triton.triton.schema import ModelInstanceGroup, ModelQueuePolicy, ModelSequenceBatching

__all__ = [
    "SIGNALS",
    "SOUND_SINCE",
    "VISIBLE_DEVICES",
    "breaks_ordering",
    "control_inputs",
    "effective_policies",
    "has_cache",
    "has_freed_memory",
    "instance_group_rule",
    "instance_groups",
    "least_instances",
    "no_such_gpu",
    "said_group",
    "sequence_models",
    "sequence_rule",
    "signals",
    "visible_gpus",
]

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
"""The variable with the GPUs that a CUDA program sees, and numbers from 0."""

SOUND_SINCE = "26.11"  # the notes of 2.75.0
"""The release whose dynamic batcher and response cache work together."""

_REWORKED_SINCE = "26.08"  # the notes of 2.72.0


@per_check
def sequence_models(context: CheckContext) -> Iterator[ConfiguredModel]:
    """The loaded models that receive sequences of requests."""
    return (each for each in configured(context) if each.config.HasField("sequence_batching"))


sequence_rule = rules_about(sequence_models)
"""Register a rule about each of these models; the parameters are those of `rule`."""

SIGNALS = ("CONTROL_SEQUENCE_CORRID", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_START")
"""What the sequence batcher tells a model, in the order in which the server writes it, the last first."""


def control_inputs(each: ConfiguredModel) -> Iterator[Part[ModelSequenceBatching.ControlInput]]:
    """The inputs of a model of sequences that the sequence batcher fills with signals."""
    return each.parts("sequence_batching.control_input", each.config.sequence_batching.control_input)


def signals(each: ConfiguredModel) -> Iterator[tuple[str, Part[ModelSequenceBatching.Control]]]:
    """Every signal with its kind; the server ignores one whose kind is a number that it does not have."""
    for given in control_inputs(each):
        for control in each.parts(given.field("control"), given.message.control):
            if (kind := enum_name(control.message, "kind")) in SIGNALS:
                yield kind, control


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
    """The least number of instances of a model on a machine with this number of GPUs.

    A group without `gpus` has its count on each GPU, but if the server chooses the kind, it may take the CPU.
    """
    count = 0
    for group in config.instance_group:
        everywhere = gpus if group.kind == group.KIND_GPU else 1
        places = len(group.gpus) if group.kind in (group.KIND_GPU, group.KIND_AUTO) and group.gpus else everywhere
        count += max(group.count, 1) * max(places, 1)
    return max(count, 1)


@per_check
def instance_groups(context: CheckContext) -> Iterator[Part[ModelInstanceGroup]]:
    """The instance groups of every loaded model, also of ensembles, which must not have any."""
    for each in configured(context):
        yield from each.parts("instance_group", each.config.instance_group)


instance_group_rule = rules_about(instance_groups)
"""Register a rule about each of these groups; the parameters are those of `rule`."""


def said_group(group: Part[ModelInstanceGroup]) -> str:
    """An instance group in the server's words; the server generates a name for a group without one."""
    model = group.owner.said_name
    return f"instance group {group.message.name or f'{model}_{group.index}'} of model {model}"


def visible_gpus(context: CheckContext) -> int:
    """How many GPUs the server has: those of the instance that `CUDA_VISIBLE_DEVICES` leaves; 1 without a platform.

    A device is a number or the beginning of a UUID, and those behind a number without a GPU do not count. Source:
    https://docs.nvidia.com/deploy/topics/topic_5_2_1.html, and "CUDA Environment Variables" in NVIDIA's CUDA
    programming guide.
    """
    count = context.platform.gpu_count if context.platform is not None else 1
    variables = context.environment.variables if context.environment is not None else {}
    devices = variables.get(VISIBLE_DEVICES)
    if context.platform is None or devices is None or has_token(devices):
        return count
    exist = (_exists(device.strip(), count) for device in devices.split(","))
    return min(count, len(list(takewhile(bool, exist))))


def _exists(device: str, count: int) -> bool:
    return int(device) < count if device.isdecimal() else device[:1] not in ("", "-")


def no_such_gpu(group: Part[ModelInstanceGroup], gpu: int) -> str:
    """The server's sentence about a GPU that it does not have.

    The end of the sentence depends on the machine. If the server chooses the kind, it takes KIND_CPU instead.
    """
    if group.message.kind != group.message.KIND_GPU:
        return f"{said_group(group)} has kind KIND_CPU but specifies one or more GPUs"
    return (
        f"{said_group(group)} specifies invalid or unsupported gpu id {gpu}. GPUs with at least the minimum required "
        "CUDA compute compatibility of … are: …"
    )


def has_cache(context: CheckContext) -> bool:
    """Whether the container's environment gives the server a response cache."""
    return has_argument(context, "--cache-config") or has_argument(context, "--response-cache-byte-size")


def has_freed_memory(platform: ServingPlatform | None) -> bool:
    """Whether the dynamic batcher of the release uses freed memory."""
    return platform is not None and is_within(platform, _REWORKED_SINCE, SOUND_SINCE)


def breaks_ordering(each: ConfiguredModel) -> bool:
    """Whether a model has both a response cache and `preserve_ordering`, which servers before 26.11 cannot combine.

    If no environment is given, only the servers that may crash count.
    """
    cached = has_cache(each.context) or (each.context.environment is None and has_freed_memory(each.context.platform))
    return cached and each.config.dynamic_batching.preserve_ordering and each.config.response_cache.enable
