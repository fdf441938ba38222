"""Triton's own QA configurations, made again: what each is about, in this project's words, and what the server says.

The cases are those of `qa/L0_model_config` in triton-inference-server/server at e1db8a6: `noautofill_platform` (58),
and the ensembles of `autofill_noplatform` (32) and of its successes (4). Nothing is copied: names and texts are this
project's. The model that is asked for is called `subject`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["CASES", "WITHOUT_GPU", "Case"]


class Case(NamedTuple):
    """A repository, and what the server says of it; "" where it loads."""

    files: Mapping[str, str]
    words: str


def _tensor(side: str, name: str, dims: str, more: str = "", kind: str = "FP32") -> str:
    return f'{side} {{ name: "{name}" data_type: TYPE_{kind} dims: [ {dims} ] {more} }} '


def _plain(text: str, words: str) -> Case:
    """A model of a backend that completes nothing."""
    return Case({"subject/config.pbtxt": f'platform: "pytorch_libtorch" {text}', "subject/1/model.pt": ""}, words)


def _model(text: str, words: str, *, batch: int = 8) -> Case:
    tensors = _tensor("input", "INPUT", "1") + _tensor("output", "OUTPUT", "1")
    return _plain(f"max_batch_size: {batch} {tensors} {text}", words)


def _batch(text: str, words: str) -> Case:
    return _plain(_tensor("input", "INPUT", "-1") + _tensor("output", "OUTPUT", "-1") + text, words + " for subject")


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
        text = _tensor(side, "SEEN", dims, more) + _tensor(other, "OTHER", "1")
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
    text = 'max_batch_size: 4 input { name: "INPUT" dims: [ 2, -1 ] } ' + _tensor("output", "OUTPUT", "1")
    yield "missing_datatype", _plain(text, "model input 'INPUT' must specify 'data_type' for subject")


def _own(inputs: int, outputs: int, *, batch: int = 4, dims: str = "16", kind: str = "FP32", more: str = "") -> str:
    """A model of the identity backend with that many inputs and outputs."""
    tensors = [_tensor("input", f"IN{index}", dims, kind=kind) for index in range(inputs)]
    tensors += [_tensor("output", f"OUT{index}", dims, kind=kind) for index in range(outputs)]
    return f'backend: "identity" max_batch_size: {batch} instance_group {{ kind: KIND_CPU }} {"".join(tensors)} {more}'


REPEAT = (
    'backend: "repeat" model_transaction_policy { decoupled: true } '
    + _tensor("input", "IN", "-1", kind="INT32")
    + _tensor("input", "DELAY", "-1", kind="UINT32")
    + _tensor("input", "WAIT", "1", kind="UINT32")
    + _tensor("output", "OUT", "1", kind="INT32")
    + _tensor("output", "IDX", "1", kind="UINT32")
)

MODELS: Mapping[str, str] = {
    "one": _own(1, 1),
    "three": _own(3, 3),
    "four": _own(4, 4),
    "pair": _own(2, 2, batch=0, dims="1", kind="INT32"),
    "small": _own(1, 1, batch=2),
    "cube": _own(1, 1, dims="16, 16, 16"),
    "whole": _own(1, 1, kind="INT32"),
    "rows": _own(1, 1, batch=0, dims="-1, 16"),
    "all": _own(2, 2, batch=8, kind="INT32", more="version_policy { all { } }"),
    "repeat": REPEAT,
}


def _step(text: str) -> str:
    """A step, written as `model 2: IN0=data IN1=data > OUT0=prob`; the version may be left out."""
    model, _, maps = text.partition(":")
    name, _, version = model.partition(" ")
    given, _, made = maps.partition(">")
    step = f'model_name: "{name}" model_version: {version or -1} '
    for field, pairs in (("input_map", given), ("output_map", made)):
        for pair in pairs.split():
            key, _, value = pair.partition("=")
            step += f'{field} {{ key: "{key}" value: "{value}" }} '
    return f"step {{ {step} }} "


DATA, PROB = _tensor("input", "data", "16"), _tensor("output", "prob", "16")


def _ensemble(text: str, steps: str | None, *, batch: int = 2, **models: str) -> dict[str, str]:
    """An ensemble with steps, one a line, and the models that they name if this project has them."""
    lines = [line.strip() for line in (steps or "").splitlines() if line.strip()]
    scheduling = "" if steps is None else f"ensemble_scheduling {{ {''.join(map(_step, lines))} }}"
    files = {"subject/config.pbtxt": f'platform: "ensemble" max_batch_size: {batch} {text} {scheduling}'}
    named = {line.partition(":")[0].partition(" ")[0] for line in lines}
    for name, config in {**MODELS, **models}.items():
        if name in named or name in models:
            files |= {f"{name}/config.pbtxt": config, f"{name}/1/data": ""}
    return files | {"subject/1/data": ""}


def _settings_of_ensembles() -> Iterator[tuple[str, Case]]:
    sound = "one: IN0=data > OUT0=prob"
    named = 'name: "other" '
    for name, files, words in (
        (
            "ensemble_scheduling_no_set",
            _ensemble(named + DATA + PROB, None),
            "ensemble scheduling must be set for ensemble other whose platform is ensemble",
        ),
        (
            "has_backend",
            _ensemble('backend: "onnxruntime" ' + DATA + PROB, None),
            "Ensemble model 'subject' must have platform type 'ensemble' and empty backend type",
        ),
        (
            "instance_group_set",
            _ensemble("instance_group { kind: KIND_GPU gpus: 42 } " + DATA + PROB, sound),
            "instance group should not be specified for ensemble 'subject'",
        ),
        (
            "model_warm_up_set",
            _ensemble(named + "model_warmup { } " + DATA + PROB, sound),
            "model_warmup can not be specified for ensemble 'other'",
        ),
        (
            "optimization_set",
            _ensemble("optimization { priority: PRIORITY_MAX } " + DATA + PROB, sound),
            "optimization should not be specified for ensemble 'subject'",
        ),
        ("no_step", _ensemble(DATA + PROB, ""), "must specify 'step' for ensemble 'subject'"),
        ("no_step_2", _ensemble(DATA + PROB, "", batch=8), "must specify 'step' for ensemble 'subject'"),
    ):
        yield name, Case(files, words)


CHAIN = "one: IN0=data > OUT0=a\n{}\none: IN0=b > OUT0=prob"
SPREAD = """
    one: IN0=data > OUT0=t4
    {}
    three: IN0=data IN1=data IN2=data > OUT0=t1 OUT1=t2 OUT2=t3
    four: IN0=t1 IN1=t2 IN2=t3 IN3=t4 {} > OUT0=prob
"""
SECOND = _tensor("output", "prob_2", "16")


def _graphs() -> Iterator[tuple[str, Case]]:
    missing = "must specify '{}' in step 1 of ensemble 'subject'"
    unused = "ensemble tensor '{}' is unused in ensemble 'subject'"
    for name, text, steps, words in (
        ("no_input_map", PROB, CHAIN.format("one: > OUT0=b"), missing.format("input_map")),
        ("no_model_name", PROB, CHAIN.format(": IN0=a > OUT0=b"), missing.format("model_name")),
        ("no_output_map", PROB, CHAIN.format("one: IN0=a >"), missing.format("output_map")),
        (
            "output_to_tensor_overmapped",
            PROB,
            "three: IN0=data IN1=data IN2=data > OUT0=a OUT1=a\none: IN0=a > OUT0=prob",
            "ensemble tensor 'a' can appear in an output map only once for ensemble 'subject'",
        ),
        ("redundant_tensor_as_input", PROB, SPREAD.format("one: IN0=t5 > OUT0=t6", ""), unused.format("t5")),
        (
            "redundant_tensor_as_output",
            PROB + SECOND,
            "one: IN0=data > OUT0=a\nthree: IN0=a IN1=a IN2=a > OUT0=prob OUT1=prob_2 OUT2=b",
            unused.format("b"),
        ),
        ("tensor_to_input_overmapped", PROB, SPREAD.format("one: IN0=t4 > OUT0=t5", ""), unused.format("t5")),
        (
            "unreachable_input",
            _tensor("input", "data_2", "16") + PROB,
            SPREAD.format("", ""),
            "ensemble input 'data_2' for ensemble subject' is not used",
        ),
        (
            "unreachable_output",
            PROB + SECOND,
            SPREAD.format("", ""),
            "ensemble output 'prob_2' for ensemble subject' is not used",
        ),
        (
            "unreachable_output_2",
            PROB + SECOND,
            SPREAD.format("one: IN0=prob_2 > OUT0=prob_2", ""),
            "output 'prob_2' for ensemble 'subject' is not written",
        ),
        (
            "unreachable_output_3",
            PROB + SECOND,
            SPREAD.format("one: IN0=never > OUT0=prob_2", ""),
            "output 'prob_2' for ensemble 'subject' is not written: at least one of its depending tensors, 'never', is "
            "not connected",
        ),
        (
            "invalid_input_map",
            PROB,
            SPREAD.format("one: IN0=t4 > OUT0=t5", "NONE=t5"),
            "in ensemble subject, ensemble tensor t5 is mapping to non-existing input NONE in model four",
        ),
        (
            "invalid_output_map",
            PROB,
            "three: IN0=data IN1=data IN2=data > OUT0=t1 NONE=t2\nfour: IN0=t1 IN1=t2 IN2=t1 IN3=t1 > OUT0=prob",
            "in ensemble subject, ensemble tensor t2 is mapped from non-existing output NONE in model three",
        ),
        (
            "unmapped_input",
            PROB,
            "three: IN0=data IN1=data IN2=data > OUT0=t2 OUT1=t3 OUT2=t4\nfour: IN1=t2 IN2=t3 IN3=t4 > OUT0=prob",
            "in ensemble subject, input IN0 in model four is not mapped to any ensemble tensors",
        ),
        (
            "non_existing_model",
            PROB,
            "one: IN0=data > OUT0=a\nabsent: IN0=a > OUT0=prob",
            "ensemble subject contains models that are not available or ambiguous: absent",
        ),
        (
            "inconsistent_data_type",
            PROB,
            "whole: IN0=data > OUT0=a\nsmall: IN0=a > OUT0=prob",
            "in ensemble subject, ensemble tensor data: inconsistent data type: TYPE_FP32 is inferred from model "
            "subject while TYPE_INT32 is inferred from model whole",
        ),
        (
            "inconsistent_shape",
            PROB,
            "one: IN0=data > OUT0=a\ncube: IN0=a > OUT0=prob",
            "in ensemble subject, ensemble tensor a: inconsistent shape: [-1,16] is inferred from model one while "
            "[-1,16,16,16] is inferred from model cube",
        ),
    ):
        yield name, Case(_ensemble(DATA + text, steps), words)
    yield (
        "invalid_batch_size",
        Case(
            _ensemble(DATA + PROB, "one: IN0=data > OUT0=a\nsmall: IN0=a > OUT0=prob", batch=3),
            "ensemble subject allows maximum batch size 3, but it contains model small which only allows maximum batch "
            "size to be 2",
        ),
    )


def _circles_and_versions() -> Iterator[tuple[str, Case]]:
    circular = "circular dependency between ensembles: subject -> ... -> subject -> subject"
    inner = _ensemble(DATA + PROB, "subject: data=data > prob=prob")["subject/config.pbtxt"]
    steps = "inner: data=data > prob=prob"
    yield (
        "circular_dependency",
        Case(
            _ensemble(DATA + PROB, steps, inner=inner),
            "circular dependency between ensembles: inner -> ... -> subject -> inner",
        ),
    )
    steps = "one: IN0=data > OUT0=a\nsubject: data=a > prob=prob"
    yield "self_circular_dependency", Case(_ensemble(DATA + PROB, steps), circular)
    ends = "".join(_tensor(s, n, "16", kind="INT32") for s, n in (("input", "data"), ("output", "prob")))
    for name, first, second in (("", " 2", None), ("_2", "", " 2"), ("_3", " 2", "")):
        steps = f"all{first}: IN0=data IN1=data > OUT0={'a' if second is not None else 'prob'}"
        if second is not None:
            steps += f"\nall{second}: IN0=a IN1=a > OUT0=prob"
        words = "ensemble 'subject' depends on 'all' whose required version 2 is not loaded"
        yield f"no_required_version{name}", Case(_ensemble(ends, steps, batch=8), words)


def _decoupled() -> Iterator[tuple[str, Case]]:
    ends = (
        _tensor("input", "IN", "-1", kind="INT32")
        + _tensor("input", "DELAY", "-1", kind="UINT32")
        + _tensor("input", "WAIT", "1", kind="UINT32")
        + _tensor("output", "OUT", "1", kind="INT32")
    )
    repeat = "repeat: IN=IN DELAY=DELAY WAIT=WAIT > {}\n"
    words = "in ensemble subject, step of model '{}' receives inputs originated from different decoupled models"
    steps = repeat.format("OUT=a") + repeat.format("OUT=b") + "pair: IN0=a IN1=b > OUT0=c\npair: IN0=c IN1=c > OUT0=OUT"
    yield "invalid_decoupled_branching", Case(_ensemble(ends, steps, batch=0), words.format("pair"))
    steps = repeat.format("OUT=OUT") + repeat.format("IDX=IDX")
    ends += _tensor("output", "IDX", "1", kind="UINT32")
    yield "invalid_decoupled_branching_2", Case(_ensemble(ends, steps, batch=0), words.format("subject"))


def _loaded() -> Iterator[tuple[str, Case]]:
    inner = _ensemble(DATA + PROB, "one: IN0=data > OUT0=prob")["subject/config.pbtxt"]
    embedded = _ensemble(DATA + PROB, "inner: data=data > prob=prob", inner=inner, one=MODELS["one"])
    yield "embedded_ensemble", Case(embedded, "")
    batches = "one: IN0=data > OUT0=a\nrows: IN0=a > OUT0=prob"
    yield "loaded inconsistent_shape", Case(_ensemble(DATA + PROB, batches), "")
    whole = _tensor("input", "data", "4, 16") + _tensor("output", "prob", "4, 16")
    steps = "rows: IN0=data > OUT0=a\none: IN0=a > OUT0=prob"
    yield "inconsistent_shape_2", Case(_ensemble(whole, steps, batch=0), "")
    yield "unmapped_output", Case(_ensemble(DATA + PROB, "three: IN0=data IN1=data IN2=data > OUT0=prob"), "")


CASES: Mapping[str, Case] = dict(
    case
    for group in (
        _batch_tensors,
        _sequences,
        _dynamic_batching,
        _instances,
        _shapes,
        _settings_of_ensembles,
        _graphs,
        _circles_and_versions,
        _decoupled,
        _loaded,
    )
    for case in group()
)

WITHOUT_GPU = ("negative_gpu",)
"""A server that sees no GPU says another thing of its first instance group, and loads none of it either."""
