"""CT250 to CT260: whether the server accepts how a model receives sequences of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cdk_triton.checks.derived.configured import ConfiguredModel, Part
from cdk_triton.checks.derived.scheduling import SIGNALS, control_inputs, sequence_rule, signals
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelSequenceBatching

_UTILS = "src/model_config_utils.cc"
_SCHEDULER = "src/sequence_batch_scheduler/sequence_batch_scheduler.cc"

_CORRELATION = "CONTROL_SEQUENCE_CORRID"
_CORRELATION_TYPES = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")


@sequence_rule("CT250", Severity.ERROR, "a control tensor of a sequence has no name", source=core(_UTILS, 525, 531))
def control_without_name(each: ConfiguredModel) -> Iterator[Problem]:
    """A `control_input` does not name the input of the model that receives the signal.

    The server does not load the model.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }
    """
    for given in control_inputs(each):
        if not given.message.name:
            yield given.unloadable(
                "name",
                f"the control input {given.index} has no name",
                f"sequence batching control tensor must have a name for {each.said_name}",
                "write the name of the model's input that receives the signal",
            )


@sequence_rule(
    "CT251", Severity.ERROR, "a control tensor of a sequence is declared twice", source=core(_UTILS, 533, 540)
)
def control_declared_twice(each: ConfiguredModel) -> Iterator[Problem]:
    """Two `control_input` blocks have the same name, so the server does not load the model.

    Each signal needs its own input of the model.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "SIGNAL" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
          control_input { name: "SIGNAL" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
          control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }
        }
    """
    seen: set[str] = set()
    for given in control_inputs(each):
        name = given.message.name
        if name and name in seen:
            yield given.unloadable(
                "name",
                f"the control input {name!r} is declared more than once",
                f"sequence batching control tensor '{name}' is specified for multiple control kinds for "
                f"{each.said_name}",
                "give each signal an input of its own",
            )
        seen.add(name)


@sequence_rule(
    "CT252",
    Severity.WARNING,
    "one control tensor of a sequence carries several signals",
    source=core("src/infer_request.cc", 817, 840),
)
def several_signals(each: ConfiguredModel) -> Iterator[Problem]:
    """The server accepts several kinds of signals in one `control_input`, but the model receives only one signal.

    The server writes the signals one after another into the same tensor, and each signal overwrites the previous one.
    The order is `CONTROL_SEQUENCE_START`, `CONTROL_SEQUENCE_END`, `CONTROL_SEQUENCE_READY`, `CONTROL_SEQUENCE_CORRID`.
    So the model receives the last of the configured signals in this order.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input {
            name: "SIGNAL"
            control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }
            control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 2 ] }
          }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
          control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }
        }
    """
    for given in control_inputs(each):
        kinds = {enum_name(control, "kind") for control in given.message.control}.intersection(SIGNALS)
        if len(kinds) > 1:
            last = next(kind for kind in SIGNALS if kind in kinds)
            yield given.problem(
                "control",
                f"the control input {given.message.name!r} carries {' and '.join(sorted(kinds))}, but {each.name!r} "
                f"would only ever receive {last}, which the server writes last",
                "give each signal an input of its own",
            )


@sequence_rule(
    "CT253", Severity.ERROR, "a signal of a sequence has several control tensors", source=core(_UTILS, 543, 551)
)
def signal_declared_twice(each: ConfiguredModel) -> Iterator[Problem]:
    """Two controls have the same kind, so the server does not load the model.

    Only one input of the model can receive a signal.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
          control_input { name: "BEGIN" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }
    """
    seen: Counter[str] = Counter()
    for kind, control in signals(each):
        seen[kind] += 1
        if seen[kind] == 2:
            words = f"sequence batching specifies multiple {kind} tensors for {each.said_name}"
            yield control.unloadable("", f"{kind} is declared more than once", words, "keep one declaration")


@sequence_rule(
    "CT254", Severity.ERROR, "a signal of a sequence has no values, or several pairs", source=core(_UTILS, 556, 582)
)
def signal_without_values(each: ConfiguredModel) -> Iterator[Problem]:
    """A control for start, end or ready has no pair of values or several pairs, so the server does not load the model.

    Write `int32_false_true`, `fp32_false_true` or `bool_false_true`. The field gives the data type of the tensor.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START bool_false_true: [ false, true ] } }
        }
    """
    for kind, control in signals(each):
        given = len(_values(control))
        if kind == _CORRELATION or given == 1:
            continue
        words = "specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true'"
        if not given:
            words = "must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true'"
        yield control.unloadable(
            "",
            f"{kind} has {f'{given} pairs' if given else 'no pair'} of values",
            f"sequence batching {words} for {kind} for {each.said_name}",
            "write one pair, for example int32_false_true: [ 0, 1 ]",
        )


@sequence_rule(
    "CT255", Severity.ERROR, "a signal of a sequence does not have exactly two values", source=core(_UTILS, 584, 633)
)
def signal_values_not_two(each: ConfiguredModel) -> Iterator[Problem]:
    """A list such as `int32_false_true` does not have exactly two values, so the server does not load the model.

    The first value stands for false, and the second value for true.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: 1 } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }
    """
    for kind, control in signals(each):
        values = _values(control)
        if kind == _CORRELATION or len(values) != 1:
            continue
        name, count = next(iter(values.items()))
        if count != 2:
            yield control.unloadable(
                name,
                f"{name} has {count} value{'s' * (count > 1)}",
                f"sequence batching control '{name}' must have exactly 2 entries for {kind} for {each.said_name}",
                "write the value for false and the value for true",
            )


@sequence_rule("CT256", Severity.ERROR, "the correlation id of a sequence has values", source=core(_UTILS, 710, 723))
def correlation_with_values(each: ConfiguredModel) -> Iterator[Problem]:
    """A control `CONTROL_SEQUENCE_CORRID` has values for false and true, so the server does not load the model.

    This control gives the model the id of the sequence. Write only the `data_type` of the id.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input {
            name: "ID"
            control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 int32_false_true: [ 0, 1 ] }
          }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
        }
    """
    for kind, control in signals(each):
        if kind == _CORRELATION and (values := _values(control)):
            yield control.unloadable(
                next(iter(values)),
                f"{kind} has {' and '.join(values)}",
                "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' "
                f"for {kind} for {each.said_name}",
                f"remove {' and '.join(values)}",
            )


@sequence_rule(
    "CT257", Severity.ERROR, "the correlation id of a sequence has the wrong type", source=core(_UTILS, 1600, 1624)
)
def correlation_of_wrong_type(each: ConfiguredModel) -> Iterator[Problem]:
    """The `data_type` of a correlation id is missing or not supported, so the server does not load the model.

    The id of a sequence is an integer of 32 or 64 bits, signed or unsigned, or a string.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
        }
    """
    for kind, control in signals(each):
        given = enum_name(control.message, "data_type")
        if kind != _CORRELATION or given in _CORRELATION_TYPES or _values(control):
            continue  # the last is reported by CT256, and the server sees it first
        yield control.unloadable(
            "data_type",
            f"{kind} has {f'the type {given}' if control.message.data_type else 'no data_type'}",
            f"unexpected data type for control {kind} for {each.said_name}. Allowed data types are TYPE_UINT64, "
            "TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
            "write data_type: TYPE_UINT64, or TYPE_STRING if clients send strings as sequence ids",
        )


@sequence_rule(
    "CT258", Severity.ERROR, "a preferred batch size of sequences is out of range", source=core(_UTILS, 1626, 1644)
)
def preferred_size_of_oldest(each: ConfiguredModel) -> Iterator[Problem]:
    """A preferred batch size of the strategy `oldest` is not from 1 to `max_batch_size`.

    The server does not load the model.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 4
        sequence_batching { oldest { max_candidate_sequences: 8 preferred_batch_size: 8 } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        sequence_batching { oldest { max_candidate_sequences: 8 preferred_batch_size: 8 } }
    """
    most = each.config.max_batch_size
    for index, size in enumerate(each.config.sequence_batching.oldest.preferred_batch_size):
        if most >= 0 and not 1 <= size <= most:
            words = "be positive" if size <= 0 else "be <= max batch size"
            yield each.unloadable(
                f"sequence_batching.oldest.preferred_batch_size[{index}]",
                f"the preferred batch size is {size} and max_batch_size is {most}",
                f"sequence batching preferred batch size must {words} for {each.said_name}",
                "remove the size, or write one from 1 to max_batch_size",
            )


@sequence_rule(
    "CT259", Severity.ERROR, "the slot utilization of sequences is not a fraction", source=core(_UTILS, 1646, 1660)
)
def slot_utilization_out_of_range(each: ConfiguredModel) -> Iterator[Problem]:
    """`minimum_slot_utilization` is not a fraction from 0 to 1, so the server does not load the model.

    The fraction is the part of the batch's slots that must have a request before the batch runs.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        sequence_batching {
          direct { max_queue_delay_microseconds: 500 minimum_slot_utilization: 50 }
          control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        sequence_batching {
          direct { max_queue_delay_microseconds: 500 minimum_slot_utilization: 0.5 }
          control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
        }
    """
    utilization = each.config.sequence_batching.direct.minimum_slot_utilization
    if utilization < 0 or utilization > 1:
        yield each.unloadable(
            "sequence_batching.direct.minimum_slot_utilization",
            f"minimum_slot_utilization is {utilization:g}",
            f"sequence batching minimum slot utilization must be in range (0.0, 1.0] for {each.said_name}",
            "write a fraction, for example 0.5",
        )


@sequence_rule(
    "CT260", Severity.WARNING, "a setting of the sequence batcher has no effect", source=core(_SCHEDULER, 1692, 1696)
)
def idle_sequence_setting(each: ConfiguredModel) -> Iterator[Problem]:
    """The server ignores a setting of the strategy `direct` or `oldest` without a message.

    The strategy `direct` waits for a fuller batch only if both `max_queue_delay_microseconds` and
    `minimum_slot_utilization` are set. The strategy `oldest` treats a negative `max_candidate_sequences` as a missing
    one, and handles as many sequences at a time as fit into one batch.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        sequence_batching {
          direct { max_queue_delay_microseconds: 500 }
          control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        sequence_batching {
          direct { max_queue_delay_microseconds: 500 minimum_slot_utilization: 0.5 }
          control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
        }
    """
    direct, oldest = each.config.sequence_batching.direct, each.config.sequence_batching.oldest
    pair = ("max_queue_delay_microseconds", "minimum_slot_utilization")
    for name, other in (pair, pair[::-1]):
        if getattr(direct, name) and not getattr(direct, other):
            yield each.problem(
                f"sequence_batching.direct.{name}",
                f"{name} is set and {other} is not, so no batch of {each.name!r} would wait for more requests",
                f"set {other} as well, or remove {name}",
            )
    if oldest.max_candidate_sequences < 0:
        yield each.problem(
            "sequence_batching.oldest.max_candidate_sequences",
            f"max_candidate_sequences is {oldest.max_candidate_sequences}, so the server would handle as many "
            f"sequences of {each.name!r} at a time as fit into one batch",
            "write the number of sequences that an instance keeps open, or remove max_candidate_sequences",
        )


def _values(control: Part[ModelSequenceBatching.Control]) -> dict[str, int]:
    """How many values each of the three lists has, if it has some."""
    lists = ("int32_false_true", "fp32_false_true", "bool_false_true")
    return {name: count for name in lists if (count := len(getattr(control.message, name)))}
