"""CT289: whether callers and the sequence batcher fill the same input."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.configured import ConfiguredModel
from cdk_triton.checks.derived.scheduling import sequence_rule
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity


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
        max_batch_size: 8
        input [ { name: "START" data_type: TYPE_INT32 dims: [ 1 ] } ]
        output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
        output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
        }
    """
    inputs = {tensor.name for tensor in each.config.input} - {""}
    batching = each.config.sequence_batching
    signals = [
        (f"control_input[{at}].name", "a control input", one.name) for at, one in enumerate(batching.control_input)
    ]
    states = [(f"state[{at}].input_name", "a state", one.input_name) for at, one in enumerate(batching.state)]
    for field, what, name in (*signals, *states):
        if name in inputs:
            yield each.problem(
                f"sequence_batching.{field}",
                f"the input {name!r} of {each.name!r} is also the tensor of {what}, so the server overwrites the data "
                "that callers send",
                "rename one of the two, or remove the input",
            )
