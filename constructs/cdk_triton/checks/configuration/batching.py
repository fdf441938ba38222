"""CT230 to CT239: whether the server accepts how a model batches and queues its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.completion import completes_batch_size
from cdk_triton.checks.derived.configured import ConfiguredModel, configured, model_rule
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelQueuePolicy

_UTILS = "src/model_config_utils.cc"


@model_rule("CT230", Severity.ERROR, "max_batch_size is negative", source=core(_UTILS, 1479, 1483))
def negative_batch_size(each: ConfiguredModel) -> Iterator[Problem]:
    """`max_batch_size` is negative, so the server does not load the model.

    Write 0 if the model does not batch. If the model batches, write the size of the largest batch. The server then adds
    a batch dimension before the `dims` of every input and output.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: -1

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 0
    """
    most = each.config.max_batch_size
    if most < 0:
        yield each.unloadable(
            "max_batch_size",
            f"max_batch_size is {most}",
            f"'max_batch_size' must be non-negative value for {each.said_name}",
            "write 0 if the model does not batch, or the largest batch size if it does",
        )


@model_rule("CT231", Severity.ERROR, "a preferred batch size is not positive", source=core(_UTILS, 1491, 1500))
def preferred_size_not_positive(each: ConfiguredModel) -> Iterator[Problem]:
    """A preferred batch size of the dynamic batcher is 0 or negative, so the server does not load the model.

    Without preferred sizes, the server prefers the largest batch.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { preferred_batch_size: [ 0, 8 ] }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { preferred_batch_size: [ 4, 8 ] }
    """
    for index, size in enumerate(each.config.dynamic_batching.preferred_batch_size):
        if size <= 0:
            yield each.unloadable(
                f"dynamic_batching.preferred_batch_size[{index}]",
                f"the preferred batch size is {size}",
                f"dynamic batching preferred size must be positive for {each.said_name}",
                "remove the size, or write one from 1 to max_batch_size",
            )


@model_rule(
    "CT232", Severity.ERROR, "a preferred batch size is larger than max_batch_size", source=core(_UTILS, 1501, 1507)
)
def preferred_size_too_large(each: ConfiguredModel) -> Iterator[Problem]:
    """A preferred batch size of the dynamic batcher is above `max_batch_size`, so the server does not load the model.

    The server compares the two numbers before the backend completes `max_batch_size` from the model, so write
    `max_batch_size` in the configuration.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { preferred_batch_size: 16 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 16
        dynamic_batching { preferred_batch_size: 16 }
    """
    most = each.config.max_batch_size
    for index, size in enumerate(each.config.dynamic_batching.preferred_batch_size):
        if size > most >= 0 and size > 0:
            yield each.unloadable(
                f"dynamic_batching.preferred_batch_size[{index}]",
                f"the preferred batch size is {size} and max_batch_size is {most}",
                f"dynamic batching preferred size must be <= max batch size for {each.said_name}",
                f"set max_batch_size to {size} or more, or remove the preferred size",
            )


@model_rule("CT233", Severity.ERROR, "the default priority level is out of range", source=core(_UTILS, 1510, 1519))
def default_priority_out_of_range(each: ConfiguredModel) -> Iterator[Problem]:
    """If `priority_levels` is set, `default_priority_level` must be a number from 1 to `priority_levels`.

    Otherwise, the server does not load the model. It serves requests of level 1 first.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { priority_levels: 2 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { priority_levels: 2 default_priority_level: 2 }
    """
    batching = each.config.dynamic_batching
    levels, default = batching.priority_levels, batching.default_priority_level
    if levels and not 1 <= default <= levels:
        yield each.unloadable(
            "dynamic_batching.default_priority_level",
            f"default_priority_level is {default or 'missing'} and priority_levels is {levels}",
            f"default priority level must be in range [1, {levels}] for {each.said_name}",
            f"write a default_priority_level from 1 (served first) to {levels}",
        )


@model_rule(
    "CT234",
    Severity.ERROR,
    "a queue policy is for a priority level that does not exist",
    source=core(_UTILS, 1520, 1528),
)
def queue_policy_out_of_range(each: ConfiguredModel) -> Iterator[Problem]:
    """If `priority_levels` is set, each key of `priority_queue_policy` must be a level from 1 to `priority_levels`.

    Otherwise, the server does not load the model.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching {
          priority_levels: 2
          default_priority_level: 2
          priority_queue_policy { key: 3 value { max_queue_size: 100 } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching {
          priority_levels: 2
          default_priority_level: 2
          priority_queue_policy { key: 2 value { max_queue_size: 100 } }
        }
    """
    levels = each.config.dynamic_batching.priority_levels
    for level in sorted(each.config.dynamic_batching.priority_queue_policy) if levels else ():
        if not 1 <= level <= levels:
            yield each.unloadable(
                f'dynamic_batching.priority_queue_policy["{level}"]',
                f"a queue policy is for priority level {level} and priority_levels is {levels}",
                f"priority queue policy must have priority level in range [1, {levels}] for {each.said_name}",
                "write the policy for an existing level, or raise priority_levels",
            )


@model_rule("CT235", Severity.WARNING, "settings of priorities have no effect", source=core("src/model.cc", 128, 141))
def priorities_without_levels(each: ConfiguredModel) -> Iterator[Problem]:
    """Without `priority_levels`, the server ignores `default_priority_level` and `priority_queue_policy`.

    All requests then have the same priority. The server prints no message.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { default_priority_level: 1 priority_queue_policy { key: 1 value { max_queue_size: 100 } } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { default_queue_policy { max_queue_size: 100 } }
    """
    batching = each.config.dynamic_batching
    if batching.priority_levels:
        return
    for field, fix in (
        ("default_priority_level", "set priority_levels, or remove default_priority_level"),
        ("priority_queue_policy", "set priority_levels, or move the policy to default_queue_policy"),
    ):
        if getattr(batching, field):
            yield each.problem(
                f"dynamic_batching.{field}",
                f"{field} is set and priority_levels is not, so {field} would have no effect: all requests to "
                f"{each.name!r} have the same priority",
                fix,
            )


@model_rule("CT236", Severity.ERROR, "priorities contradict preserve_ordering", source=core(_UTILS, 1531, 1540))
def ordering_with_priorities(each: ConfiguredModel) -> Iterator[Problem]:
    """The server does not load a model with both `preserve_ordering` and several priority levels.

    Requests with a higher priority overtake other requests, so the server cannot keep the order of the responses.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 2 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { priority_levels: 2 default_priority_level: 2 }
    """
    levels = each.config.dynamic_batching.priority_levels
    if each.config.dynamic_batching.preserve_ordering and levels > 1:
        yield each.unloadable(
            "dynamic_batching.preserve_ordering",
            f"priority_levels is {levels} and preserve_ordering is true",
            f"Only one priority level is allowed when 'preserve_ordering' is true for {each.said_name}",
            "remove preserve_ordering or priority_levels",
        )


@rule("CT237", Severity.ERROR, "delayed requests contradict preserve_ordering", source=core(_UTILS, 1541, 1566))
def ordering_with_delay(context: CheckContext) -> Iterator[Problem]:
    """The server does not load a model with both `preserve_ordering` and a queue policy that delays requests.

    With `timeout_action: DELAY`, a request that has waited longer than its timeout moves to the end of the queue. The
    server then cannot keep the order of the requests. With `REJECT`, the server rejects such a request.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching {
          preserve_ordering: true
          default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 100000 }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching {
          preserve_ordering: true
          default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 100000 }
        }
    """
    for each, field, policy in _queue_policies(context):
        delays = policy.timeout_action == policy.DELAY and policy.default_timeout_microseconds
        if each.config.dynamic_batching.preserve_ordering and delays:
            yield each.unloadable(
                f"{field}.timeout_action",
                "timeout_action is DELAY and preserve_ordering is true",
                "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for "
                f"{each.said_name}",
                "write timeout_action: REJECT, or remove preserve_ordering",
            )


@rule("CT238", Severity.WARNING, "a queue policy has no timeout", source=core("src/scheduler_utils.cc", 169, 198))
def policy_without_timeout(context: CheckContext) -> Iterator[Problem]:
    """`allow_timeout_override` or `timeout_action` has no effect, because `default_timeout_microseconds` is 0.

    With this value, no request times out in the queue. `allow_timeout_override` only lets a request shorten the default
    timeout, so the server ignores a request's own timeout if the default is 0. The server prints no message.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching { default_queue_policy { allow_timeout_override: true } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        dynamic_batching {
          default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 60000000 }
        }
    """
    for each, field, policy in _queue_policies(context):
        if policy.default_timeout_microseconds:
            continue
        for name, is_set in (
            ("allow_timeout_override", policy.allow_timeout_override),
            ("timeout_action", policy.timeout_action == policy.DELAY),
        ):
            if is_set:
                yield each.problem(
                    f"{field}.{name}",
                    f"{name} is set and default_timeout_microseconds is not, so no request to {each.name!r} would "
                    "ever time out, even if the request sets a timeout",
                    "set default_timeout_microseconds to the longest time that a request may wait",
                )


@model_rule(
    "CT239",
    Severity.WARNING,
    "dynamic batching is set for a model that does not batch",
    source=core("src/dynamic_batch_scheduler.cc", 81, 100),
)
def batching_without_batch(each: ConfiguredModel) -> Iterator[Problem]:
    """With `max_batch_size` 0, the dynamic batcher does not form batches and runs each request alone.

    The server prints no message.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ -1, 4 ] }
        dynamic_batching { max_queue_delay_microseconds: 500 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }
        dynamic_batching { max_queue_delay_microseconds: 500 }

    Limits:
        The rule reports nothing if the backend, or `auto_complete_config` of a Python model, may complete
        `max_batch_size`. It accepts a dynamic batcher with `priority_levels`, `default_queue_policy` or
        `preserve_ordering`, because these settings of the queue have an effect without batches.
    """
    batching = each.config.dynamic_batching
    queue = batching.HasField("default_queue_policy") or batching.priority_levels or batching.preserve_ordering
    if not each.config.HasField("dynamic_batching") or queue or batching.preferred_batch_size or each.model.is_ensemble:
        return
    if each.config.max_batch_size == 0 and not completes_batch_size(each):
        yield each.problem(
            "dynamic_batching",
            "dynamic_batching is set and max_batch_size is 0, so the server would run each request to "
            f"{each.name!r} alone",
            "set max_batch_size and remove the batch dimension from dims, or remove dynamic_batching",
        )


@per_check
def _queue_policies(context: CheckContext) -> Iterator[tuple[ConfiguredModel, str, ModelQueuePolicy]]:
    """Every queue policy of a dynamic batcher, with its model and field."""
    for each in configured(context):
        if each.config.HasField("dynamic_batching"):
            batching = each.config.dynamic_batching
            yield each, "dynamic_batching.default_queue_policy", batching.default_queue_policy
            for level, policy in sorted(batching.priority_queue_policy.items()):
                yield each, f'dynamic_batching.priority_queue_policy["{level}"]', policy
