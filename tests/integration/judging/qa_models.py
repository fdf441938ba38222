"""Triton's QA configurations of single models: tensors, sequences, batching, instances, shapes."""

from __future__ import annotations

from collections.abc import Iterator

from judging.qa_case import Case, tensor

__all__ = ["of_models"]


def _plain(text: str, words: str) -> Case:
    """A model of a backend that completes nothing."""
    return Case({"subject/config.pbtxt": f'platform: "pytorch_libtorch" {text}', "subject/1/model.pt": ""}, words)


def _model(text: str, words: str, *, batch: int = 8) -> Case:
    tensors = tensor("input", "INPUT", "1") + tensor("output", "OUTPUT", "1")
    return _plain(f"max_batch_size: {batch} {tensors} {text}", words)


def _batch(text: str, words: str) -> Case:
    return _plain(tensor("input", "INPUT", "-1") + tensor("output", "OUTPUT", "-1") + text, words + " for subject")


def _batch_tensors() -> Iterator[tuple[str, Case]]:
    kinds = "ELEMENT_COUNT ACCUMULATED_ELEMENT_COUNT ACCUMULATED_ELEMENT_COUNT_WITH_ZERO MAX_ELEMENT_COUNT_AS_SHAPE"
    given = 'target_name: "MADE" data_type: TYPE_FP32'
    source = 'source_input: "INPUT"'
    for index, kind in enumerate(kinds.split()):
        for name, sources, count in (("less", "", 0), ("many", f"{source} {source}", 2)):
            yield (
                f"batch_input_{name}_source{index}",
                _batch(
                    f"batch_input {{ kind: BATCH_{kind} {given} {sources} }}",
                    f"batch input kind 'BATCH_{kind}' expects 1 source input, got {count}",
                ),
            )
    unknown = 'source_input: "NONE"'
    for name, text, words in (
        ("batch_input_unknown_source", f"batch_input {{ {given} {unknown} }}", "unknown source input name 'NONE'"),
        (
            "batch_output_duplicated_target",
            f'batch_output {{ target_name: [ "OUTPUT", "OUTPUT" ] {source} }}',
            "target output name 'OUTPUT' can only be specified once",
        ),
        (
            "batch_output_less_source",
            'batch_output { target_name: "OUTPUT" }',
            "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0",
        ),
        (
            "batch_output_many_source",
            f'batch_output {{ target_name: "OUTPUT" {source} {source} }}',
            "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 2",
        ),
        (
            "batch_output_unknown_source",
            f'batch_output {{ target_name: "OUTPUT" {unknown} }}',
            "unknown source input name 'NONE'",
        ),
        (
            "batch_output_unknown_target",
            f'batch_output {{ target_name: "NONE" {source} }}',
            "unknown target output name 'NONE'",
        ),
    ):
        yield name, _batch(text, words)


def _control(name: str, kind: str, values: str = "int32_false_true: [ 0, 1 ]") -> str:
    return f'control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_{kind} {values} }} }} '


def _sequences() -> Iterator[tuple[str, Case]]:
    several = "sequence batching specifies multiple CONTROL_SEQUENCE_{} tensors for subject"
    for name, text, words in (
        ("control_kind_end_multiple", _control("A", "END") + _control("B", "END"), several.format("END")),
        ("control_kind_ready_multiple", _control("A", "READY") + _control("B", "READY"), several.format("READY")),
        ("control_kind_start_multiple", _control("A", "START") + _control("B", "START"), several.format("START")),
        (
            "control_tensor_multiple",
            _control("A", "START") + _control("A", "READY"),
            "sequence batching control tensor 'A' is specified for multiple control kinds for subject",
        ),
        (
            "control_tensor_no_value",
            _control("A", "START") + _control("B", "READY", ""),
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for "
            "CONTROL_SEQUENCE_READY for subject",
        ),
    ):
        yield name, _model(f"sequence_batching {{ {text} }}", words)


def _dynamic_batching() -> Iterator[tuple[str, Case]]:
    levels = "priority_levels: 3 default_priority_level: 2"
    delay = "timeout_action: DELAY default_timeout_microseconds: 1000"
    default = "default priority level must be in range [1, 3] for subject"
    policy = "priority queue policy must have priority level in range [1, 3] for subject"
    delayed = "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for subject"
    for name, text, words in (
        ("default_priority_level0", "priority_levels: 3", default),
        ("default_priority_level1", "priority_levels: 3 default_priority_level: 5", default),
        (
            "preserve_ordering0",
            f"preserve_ordering: true {levels}",
            "Only one priority level is allowed when 'preserve_ordering' is true for subject",
        ),
        ("preserve_ordering1", f"preserve_ordering: true default_queue_policy {{ {delay} }}", delayed),
        (
            "preserve_ordering2",
            "preserve_ordering: true priority_levels: 1 default_priority_level: 1 "
            f"priority_queue_policy {{ key: 1 value {{ {delay} }} }}",
            delayed,
        ),
        ("priority_level0", f"{levels} priority_queue_policy {{ value {{ }} }}", policy),
        ("priority_level1", f"{levels} priority_queue_policy {{ key: 4 value {{ }} }}", policy),
    ):
        yield name, _model(f"dynamic_batching {{ {text} }}", words)


def _instances() -> Iterator[tuple[str, Case]]:
    group = "instance group subject_{} of model subject"
    gpu = (
        "specifies invalid or unsupported gpu id {}. GPUs with at least the minimum required CUDA compute compatibility"
    )
    for name, text, words in (
        (
            "invalid_cpu",
            "instance_group { kind: KIND_CPU gpus: 0 }",
            f"{group.format(0)} has kind KIND_CPU but specifies one or more GPUs",
        ),
        ("invalid_gpu", "instance_group { kind: KIND_GPU gpus: 42 }", f"{group.format(0)} {gpu.format(42)}"),
        (
            "negative_gpu",
            "instance_group { gpus: 0 } instance_group { kind: KIND_GPU gpus: -1 }",
            f"{group.format(1)} {gpu.format(-1)}",
        ),
        (
            "ensemble_scheduling_set",
            'ensemble_scheduling { step { model_name: "one" } }',
            "ensemble scheduling cannot be set for model 'subject' whose platform is not ensemble",
        ),
    ):
        yield name, _model(text, words)
    yield "negative_max_batch_size", _model("", "'max_batch_size' must be non-negative value for subject", batch=-2)


def _shape(sides: str, dims: str, reshape: str | None, words: str, batch: int) -> Iterator[Case]:
    """A tensor of each side with dims and a reshape; the other side is sound."""
    for side in sides.split():
        more = "" if reshape is None else f"reshape {{ shape: [ {reshape} ] }}"
        other = "output" if side == "input" else "input"
        text = tensor(side, "SEEN", dims, more) + tensor(other, "OTHER", "1")
        yield _plain(f"max_batch_size: {batch} {text}", f"model {side} 'SEEN' {words} for subject")


def _shapes() -> Iterator[tuple[str, Case]]:
    both = "input output"
    size = "has different size for dims and reshape"
    number = "has different number of variable-size dimensions for dims and reshape"
    below = "must be integer >= 1, or -1 to indicate a variable-size dimension"
    scalar = "cannot have empty reshape for non-batching model as scalar tensors are not supported"
    elements = (("input", "1, 3, 2", "5"), ("input", "15", "2, 1, 5"), ("output", "1, 3, 2", "3"))
    for index, (side, dims, reshape) in enumerate((*elements, ("output", "15", "3, 2, 5"))):
        yield f"reshape_elementcount{index}", next(_shape(side, dims, reshape, size, 4))
    for index, case in enumerate(_shape(both, "1", "", scalar, 0)):
        yield f"reshape_nobatch_empty{index}", case
    for kind, batch in (("nobatch_", 0), ("", 4)):
        variable = [
            *_shape(both, "2, -1", "2, 2", size, batch),
            *_shape("input", "2, -1", "2, -1, 2", size, batch),
            *_shape("output", "2, -1", "1, -1, 2", size, batch),
            *_shape(both, "2, -1", "2, -1, -1", number, batch),
        ]
        yield from ((f"reshape_{kind}variable{index}", case) for index, case in enumerate(variable))
        zeros = _shape(both, "2, 2", "0", f"reshape dimensions {below}", batch)
        yield from ((f"reshape_{kind}zerodims{index}", case) for index, case in enumerate(zeros))
    for side, several in (("input", "1, 0, 28"), ("output", "1, 1, 0")):
        for index, dims in enumerate((several, "0")):
            yield f"zerodims_{side}{index}", next(_shape(side, dims, None, f"dimension {below}", 8))
    text = 'max_batch_size: 4 input { name: "INPUT" dims: [ 2, -1 ] } ' + tensor("output", "OUTPUT", "1")
    yield "missing_datatype", _plain(text, "model input 'INPUT' must specify 'data_type' for subject")


def of_models() -> Iterator[tuple[str, Case]]:
    """Name and case of each."""
    for group in (_batch_tensors, _sequences, _dynamic_batching, _instances, _shapes):
        yield from group()
