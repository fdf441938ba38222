"""CT212 to CT215: `batch_input` and `batch_output`, the tensors that the server computes from a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import completes_tensors
from cdk_triton.checks.derived.configured import configured, said_name
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

if TYPE_CHECKING:  # the schema's module has the types of more messages than it offers
    from cdk_triton.triton.schema import BatchInput, BatchOutput

_UTILS = "src/model_config_utils.cc"


@rule(
    "CT212",
    Severity.ERROR,
    "a batch input or output does not have one source",
    source=core(_UTILS, 1351, 1374),
)
def not_one_source(context: CheckContext) -> Iterator[Problem]:
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
    for model, config in configured(context):
        found: list[tuple[str, int, BatchInput | BatchOutput]] = []
        found += [("batch_input", index, item) for index, item in enumerate(config.batch_input)]
        found += [("batch_output", index, item) for index, item in enumerate(config.batch_output)]
        for field, index, item in found:
            count, kind = len(item.source_input), enum_name(item, "kind")
            if count != 1 and kind.startswith("BATCH_"):  # of other kinds is CT242
                yield Problem(
                    model.config_path,
                    f"{field.replace('_', ' ')} {index} has {count} source inputs, so the server would not load "
                    f"{model.name!r}: {field.replace('_', ' ')} kind '{kind}' expects 1 source input, got {count} "
                    f"for {said_name(model)}",
                    f"name the one input from which the server computes the {field.replace('_', ' ')}",
                    f"{field}[{index}].source_input",
                )


@rule("CT213", Severity.ERROR, "a batch input is neither INT32 nor FP32", source=core(_UTILS, 1375, 1380))
def type_of_batch_input(context: CheckContext) -> Iterator[Problem]:
    """The server computes a `batch_input` only as `TYPE_INT32` or `TYPE_FP32`, and rejects any other `data_type`.

    The server does not load the model. Write the one of the two types that the model's tensor has.

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
    for model, config in configured(context):
        for index, item in enumerate(config.batch_input):
            if enum_name(item, "data_type") not in ("TYPE_INT32", "TYPE_FP32"):
                yield Problem(
                    model.config_path,
                    f"batch input {index} is {enum_name(item, 'data_type')}, so the server would not load "
                    f"{model.name!r}: batch input data type must be TYPE_INT32 or TYPE_FP32 for {said_name(model)}",
                    "write data_type: TYPE_INT32 or TYPE_FP32, whichever the model's tensor has",
                    f"batch_input[{index}].data_type",
                )


@rule(
    "CT214",
    Severity.ERROR,
    "a batch input or output names an unknown tensor",
    source=core(_UTILS, 1381, 1422),
)
def unknown_tensor(context: CheckContext) -> Iterator[Problem]:
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
    for model, config in configured(context):
        if not config.batch_input and not config.batch_output:
            continue
        inputs, outputs = {tensor.name for tensor in config.input}, {tensor.name for tensor in config.output}
        sources = [("batch_input", i, name) for i, b in enumerate(config.batch_input) for name in b.source_input]
        sources += [("batch_output", i, name) for i, b in enumerate(config.batch_output) for name in b.source_input]
        targets = [("batch_output", i, name) for i, b in enumerate(config.batch_output) for name in b.target_name]
        unknown: list[tuple[str, int, str, str]] = []
        if not completes_tensors(context, model, config, "input") or config.input:
            unknown += [(f, i, n, "source input") for f, i, n in sources if n not in inputs]
        if not completes_tensors(context, model, config, "output") or config.output:
            unknown += [(f, i, n, "target output") for f, i, n in targets if n not in outputs]
        for field, index, name, role in unknown:
            yield Problem(
                model.config_path,
                f"{field.replace('_', ' ')} {index} names the {role} {name!r}, so the server would not load "
                f"{model.name!r}: unknown {role} name '{name}' for {said_name(model)}",
                f"name an {role.split()[1]} of this configuration",
                f"{field}[{index}].{'source_input' if role == 'source input' else 'target_name'}",
            )


@rule(
    "CT215",
    Severity.ERROR,
    "a batch output names its targets twice or not at all",
    source=backend("backend", "src/backend_common.cc", 1261, 1266),
)
def targets_of_batch_output(context: CheckContext) -> Iterator[Problem]:
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
    for model, config in configured(context):
        for index, item in enumerate(config.batch_output):
            twice = [name for name, count in Counter(item.target_name).items() if count > 1]
            if twice:
                reason = (
                    f"names {twice[0]!r} twice, so the server would not load {model.name!r}: target output name "
                    f"'{twice[0]}' can only be specified once for {said_name(model)}"
                )
            elif not item.target_name and config.output and not model.is_ensemble:
                reason = "names no target, so the server would crash (SIGSEGV)"
            else:
                continue
            yield Problem(
                model.config_path,
                f"batch output {index} {reason}",
                "write target_name once for each output that the batch output is for",
                f"batch_output[{index}].target_name",
            )
