"""CT289, CT294 and CT295: whether the inputs that the sequence batcher fills tell a model what it has to know."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.configured import ConfiguredModel, completed_pair
from cdk_triton.checks.derived.releases import is_within
from cdk_triton.checks.derived.scheduling import sequence_rule, signals
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core, core_commit
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name


@sequence_rule(
    "CT289",
    Severity.WARNING,
    "an input is filled by callers and by the sequence batcher",
    source=core("src/infer_request.cc", 817, 840),
)
def input_of_two(each: ConfiguredModel) -> Iterator[Problem]:
    """A control input or a state in `sequence_batching` has the same name as an `input` of the configuration.

    Callers must send this input, but the server overwrites the data with the signal or the state. List under `input`
    only the inputs that callers send. Name the inputs for signals and states only in `sequence_batching`.

    Example:
        # model/config.pbtxt
        backend: "python"
        input [ { name: "START" data_type: TYPE_INT32 dims: [ 1 ] } ]
        output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
        output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }
    """
    inputs = {tensor.name for tensor in each.config.input} - {""}
    batching = each.config.sequence_batching
    controls = [
        (f"control_input[{at}].name", "a control input", one.name) for at, one in enumerate(batching.control_input)
    ]
    states = [(f"state[{at}].input_name", "a state", one.input_name) for at, one in enumerate(batching.state)]
    for field, what, name in (*controls, *states):
        if name in inputs:
            yield each.problem(
                f"sequence_batching.{field}",
                f"the input {name!r} of {each.name!r} is also the tensor of {what}, so the server overwrites the data "
                "that callers send",
                "rename one of the two, or remove the input",
            )


@sequence_rule(
    "CT294",
    Severity.WARNING,
    "a Python model cannot tell requests of sequences from empty slots",
    source=core("src/sequence_batch_scheduler/sequence_batch_scheduler.cc", 1734, 1768),
)
def slots_without_requests(each: ConfiguredModel) -> Iterator[Problem]:
    """A model whose batches have a slot for each sequence has no `CONTROL_SEQUENCE_READY`.

    With the strategy `direct`, which is the default, a sequence keeps its slot of the batch. If a sequence has no
    request when a batch runs, the server fills its slot with a request whose inputs are random. Only
    `CONTROL_SEQUENCE_READY` shows that this request is not from a caller. Without it, a model adds the random values to
    the state of the slot. If a model looks the state up by correlation id, it finds none, because the id is 0. If the
    model then fails, the requests of the other sequences in the batch fail, too.

    Skip a request that is not ready, and return an empty response for it. Or use the strategy `oldest`, whose batches
    have no slots.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
          control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
        }

    Limits:
        The rule checks only Python models, and does not read `model.py`. A model that skips requests with the
        correlation id 0 works without the control input.
    """
    batching = each.config.sequence_batching
    if (
        each.config.max_batch_size > 1
        and not batching.HasField("oldest")
        and not batching.iterative_sequence
        and completed_pair(each.context, each.model)[1] == "python"
        and all(kind != "CONTROL_SEQUENCE_READY" for kind, _ in signals(each))
    ):
        yield each.problem(
            "sequence_batching",
            f"{each.name!r} has no CONTROL_SEQUENCE_READY, so it would take the random inputs for requests with which "
            "the server fills the slots of sequences that have none at the moment",
            "add a control_input of this kind and skip requests that are not ready, or use the strategy oldest",
        )


def _pads_texts(platform: ServingPlatform | None) -> bool:
    return platform is not None and is_within(platform, "24.08", "25.01")  # backend 30fa78a, core eeb283a


@sequence_rule(
    "CT295",
    Severity.ERROR,
    "releases before 25.01 reject every correlation id that is text",
    source=core_commit("eeb283a34c8da06c275dd003f2860aaac43f5b06"),
    applies=_pads_texts,
)
def padded_correlation_id(each: ConfiguredModel) -> Iterator[Problem]:
    """A `CONTROL_SEQUENCE_CORRID` of a Python model is `TYPE_STRING`, which fails for every request before 25.01.

    The server pads the text to 128 bytes, and the Python backend from 24.08 on reads the zero bytes as further texts.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching {
          control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
        }

    Limits:
        Backends before 24.08 get the zero bytes, too, and the rule does not report them.
    """
    for kind, control in signals(each):
        is_text = enum_name(control.message, "data_type") == "TYPE_STRING"
        if kind == "CONTROL_SEQUENCE_CORRID" and is_text and completed_pair(each.context, each.model)[1] == "python":
            yield control.problem(
                "data_type",
                f"the correlation id of {each.name!r} is TYPE_STRING, which the server pads with zero bytes, so the "
                "backend would answer every request with: unexpected number of string elements 2 for inference input …",
                "use release 25.01 or newer, or write TYPE_UINT64 and number the sequences",
            )
