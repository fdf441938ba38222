"""Triton's QA configurations of ensembles: settings, graphs, circles, decoupled steps, and those that load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from judging.qa_case import Case, tensor

__all__ = ["of_ensembles"]


def _own(inputs: int, outputs: int, *, batch: int = 4, dims: str = "16", kind: str = "FP32", more: str = "") -> str:
    """A model of the identity backend with that many inputs and outputs."""
    tensors = [tensor("input", f"IN{index}", dims, kind=kind) for index in range(inputs)]
    tensors += [tensor("output", f"OUT{index}", dims, kind=kind) for index in range(outputs)]
    return f'backend: "identity" max_batch_size: {batch} instance_group {{ kind: KIND_CPU }} {"".join(tensors)} {more}'


REPEAT = (
    'backend: "repeat" model_transaction_policy { decoupled: true } '
    + tensor("input", "IN", "-1", kind="INT32")
    + tensor("input", "DELAY", "-1", kind="UINT32")
    + tensor("input", "WAIT", "1", kind="UINT32")
    + tensor("output", "OUT", "1", kind="INT32")
    + tensor("output", "IDX", "1", kind="UINT32")
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


DATA, PROB = tensor("input", "data", "16"), tensor("output", "prob", "16")


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
SECOND = tensor("output", "prob_2", "16")


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
            tensor("input", "data_2", "16") + PROB,
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
    ends = "".join(tensor(s, n, "16", kind="INT32") for s, n in (("input", "data"), ("output", "prob")))
    for name, first, second in (("", " 2", None), ("_2", "", " 2"), ("_3", " 2", "")):
        steps = f"all{first}: IN0=data IN1=data > OUT0={'a' if second is not None else 'prob'}"
        if second is not None:
            steps += f"\nall{second}: IN0=a IN1=a > OUT0=prob"
        words = "ensemble 'subject' depends on 'all' whose required version 2 is not loaded"
        yield f"no_required_version{name}", Case(_ensemble(ends, steps, batch=8), words)


def _decoupled() -> Iterator[tuple[str, Case]]:
    ends = (
        tensor("input", "IN", "-1", kind="INT32")
        + tensor("input", "DELAY", "-1", kind="UINT32")
        + tensor("input", "WAIT", "1", kind="UINT32")
        + tensor("output", "OUT", "1", kind="INT32")
    )
    repeat = "repeat: IN=IN DELAY=DELAY WAIT=WAIT > {}\n"
    words = "in ensemble subject, step of model '{}' receives inputs originated from different decoupled models"
    steps = repeat.format("OUT=a") + repeat.format("OUT=b") + "pair: IN0=a IN1=b > OUT0=c\npair: IN0=c IN1=c > OUT0=OUT"
    yield "invalid_decoupled_branching", Case(_ensemble(ends, steps, batch=0), words.format("pair"))
    steps = repeat.format("OUT=OUT") + repeat.format("IDX=IDX")
    ends += tensor("output", "IDX", "1", kind="UINT32")
    yield "invalid_decoupled_branching_2", Case(_ensemble(ends, steps, batch=0), words.format("subject"))


def _loaded() -> Iterator[tuple[str, Case]]:
    inner = _ensemble(DATA + PROB, "one: IN0=data > OUT0=prob")["subject/config.pbtxt"]
    embedded = _ensemble(DATA + PROB, "inner: data=data > prob=prob", inner=inner, one=MODELS["one"])
    yield "embedded_ensemble", Case(embedded, "")
    batches = "one: IN0=data > OUT0=a\nrows: IN0=a > OUT0=prob"
    yield "loaded inconsistent_shape", Case(_ensemble(DATA + PROB, batches), "")
    whole = tensor("input", "data", "4, 16") + tensor("output", "prob", "4, 16")
    steps = "rows: IN0=data > OUT0=a\none: IN0=a > OUT0=prob"
    yield "inconsistent_shape_2", Case(_ensemble(whole, steps, batch=0), "")
    yield "unmapped_output", Case(_ensemble(DATA + PROB, "three: IN0=data IN1=data IN2=data > OUT0=prob"), "")


def of_ensembles() -> Iterator[tuple[str, Case]]:
    """Name and case of each."""
    for group in (_settings_of_ensembles, _graphs, _circles_and_versions, _decoupled, _loaded):
        yield from group()
