"""CT212 to CT215: `batch_input` and `batch_output`, the tensors that the server computes from a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cdk_triton.checks.derived.completion import SIDES, completes_tensors
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

if TYPE_CHECKING:  # the schema's module has the types of more messages than it offers
    from cdk_triton.triton.schema import BatchInput, BatchOutput

_UTILS = "src/model_config_utils.cc"


@model_rule(
    "CT212",
    Severity.ERROR,
    "a batch input or output does not have one source",
    source=core(_UTILS, 1351, 1374),
)
def not_one_source(each: ConfiguredModel) -> Iterator[Problem]:
    """Every `batch_input` and `batch_output` must have exactly one `source_input`.

    The server computes the tensor from this input. If `source_input` is missing or lists several inputs, the server
    does not load the model.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_FP32 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_FP32 source_input: "IN" }
    """
    for side in SIDES:
        items: Sequence[BatchInput | BatchOutput] = getattr(each.config, f"batch_{side}")
        for item in each.parts(f"batch_{side}", items):
            count, kind = len(item.message.source_input), enum_name(item.message, "kind")
            if count != 1 and kind.startswith("BATCH_"):  # of other kinds is CT242
                yield item.unloadable(
                    "source_input",
                    f"batch {side} {item.index} has {count} source inputs",
                    f"batch {side} kind '{kind}' expects 1 source input, got {count} for {each.said_name}",
                    f"name the one input from which the server computes the batch {side}",
                )


@model_rule("CT213", Severity.ERROR, "a batch input is neither INT32 nor FP32", source=core(_UTILS, 1375, 1380))
def type_of_batch_input(each: ConfiguredModel) -> Iterator[Problem]:
    """The server computes a `batch_input` only as `TYPE_INT32` or `TYPE_FP32`, and rejects any other `data_type`.

    The server does not load the model. Of the two types, write the type that the model's tensor has.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_INT64 source_input: "IN" }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_INT32 source_input: "IN" }
    """
    for item in each.parts("batch_input", each.config.batch_input):
        data_type = enum_name(item.message, "data_type")
        if data_type not in ("TYPE_INT32", "TYPE_FP32"):
            yield item.unloadable(
                "data_type",
                f"batch input {item.index} is {data_type}",
                f"batch input data type must be TYPE_INT32 or TYPE_FP32 for {each.said_name}",
                "write data_type: TYPE_INT32 or TYPE_FP32, whichever the model's tensor has",
            )


@model_rule(
    "CT214",
    Severity.ERROR,
    "a batch input or output names an unknown tensor",
    source=core(_UTILS, 1381, 1422),
)
def unknown_tensor(each: ConfiguredModel) -> Iterator[Problem]:
    """A `source_input`, or the target of a `batch_output`, names a tensor that the configuration does not list.

    The server does not load the model. Each `source_input` must be an `input` of the configuration, and each target of
    a `batch_output` must be an `output`. The target of a `batch_input` is also an input of the model, but the
    configuration does not list this input, because callers do not send it.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_INT32 source_input: "COUNT" }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_INT32 source_input: "IN" }
    """
    config = each.config
    if not config.batch_input and not config.batch_output:
        return
    inputs, outputs = {tensor.name for tensor in config.input}, {tensor.name for tensor in config.output}
    sources = [("input", i, name) for i, b in enumerate(config.batch_input) for name in b.source_input]
    sources += [("output", i, name) for i, b in enumerate(config.batch_output) for name in b.source_input]
    targets = [("output", i, name) for i, b in enumerate(config.batch_output) for name in b.target_name]
    unknown: list[tuple[str, int, str, str]] = []
    if config.input or not completes_tensors(each, "input"):
        unknown += [(side, i, name, "source input") for side, i, name in sources if name not in inputs]
    if config.output or not completes_tensors(each, "output"):
        unknown += [(side, i, name, "target output") for side, i, name in targets if name not in outputs]
    for side, index, name, role in unknown:
        yield each.unloadable(
            f"batch_{side}[{index}].{'source_input' if role == 'source input' else 'target_name'}",
            f"batch {side} {index} names the {role} {name!r}",
            f"unknown {role} name '{name}' for {each.said_name}",
            f"name an {role.split()[1]} of this configuration",
        )


@model_rule(
    "CT215",
    Severity.ERROR,
    "a batch output names its targets twice or not at all",
    source=backend("backend", "src/backend_common.cc", 1261, 1266),
)
def targets_of_batch_output(each: ConfiguredModel) -> Iterator[Problem]:
    """A `batch_output` must have at least one `target_name`, and must not name a target twice.

    If a target is named twice, the server does not load the model. Without a target, the backend reads invalid memory
    when the server loads the model, and the whole server crashes with a segmentation fault.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
        batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "IN" }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
        batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "IN" target_name: "OUT" }
    """
    fix = "write target_name once for each output that the batch output is for"
    for item in each.parts("batch_output", each.config.batch_output):
        found, targets = f"batch output {item.index} names", item.message.target_name
        twice = next((name for name, count in Counter(targets).items() if count > 1), None)
        if twice is not None:
            words = f"target output name '{twice}' can only be specified once for {each.said_name}"
            yield item.unloadable("target_name", f"{found} {twice!r} twice", words, fix)
        elif not targets and each.config.output and not each.model.is_ensemble:
            yield item.problem("target_name", f"{found} no target, so the server would crash (SIGSEGV)", fix)
