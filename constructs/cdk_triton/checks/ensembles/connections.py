"""CT317 to CT321: whether every tensor of an ensemble comes from somewhere and goes somewhere."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.composition import fix_of_lost_output
from cdk_triton.checks.derived.unconnected_tensors import LooseEnds, Source, key_of, loose_ends_rule
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity

_UTILS = "src/model_config_utils.cc"
_SAME_NAME = "write the same name in both places if the two names mean the same tensor"


@loose_ends_rule("CT317", Severity.ERROR, "no step reads an input of the ensemble", source=core(_UTILS, 199, 212))
def unread_input(loose: LooseEnds) -> Iterator[Problem]:
    """An ensemble declares an input, but no `input_map` has the name of this input as a `value`.

    The server does not load an ensemble with an unused input. In most cases, a step spells the name differently.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMGAE" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }
    """
    ensemble = loose.ensemble
    index = {tensor.name: i for i, tensor in enumerate(ensemble.config.input)}
    for source, meant in loose.of("input"):
        if not source.tensor:
            continue  # reported by CT201
        if ensemble.model.graph.tensors[source.tensor].writers:
            words = f"ensemble tensor '{source.tensor}' is unused in ensemble '{ensemble.said_name}'"
        else:
            words = f"ensemble input '{source.tensor}' for ensemble {ensemble.said_name}' is not used"
        other, fix = "", f"map {source.tensor!r} to an input of a step, or remove this input of the ensemble"
        if meant is not None:
            other, fix = f", but step {meant.readers[0].index} reads {meant.name!r}, which nothing writes", _SAME_NAME
        yield ensemble.unloadable(
            f"input[{index[source.tensor]}].name",
            f"no step reads the input {source.tensor!r} of the ensemble {ensemble.name!r}{other}",
            words,
            fix,
        )


@loose_ends_rule("CT318", Severity.ERROR, "no step writes an output of the ensemble", source=core(_UTILS, 231, 274))
def unwritten_output(loose: LooseEnds) -> Iterator[Problem]:
    """An ensemble declares an output, but no `output_map` has the name of this output as a `value`.

    The server does not load the ensemble. Map an output of a step to the ensemble's output, or remove the ensemble's
    output.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "SCORES" value: "scores" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }
    """
    ensemble = loose.ensemble
    index = {tensor.name: i for i, tensor in enumerate(ensemble.config.output)}
    for tensor in loose.unwritten:
        partner = loose.partner.get(tensor.name)
        if not tensor.is_output or not tensor.name or (partner is not None and partner.kind == "again"):
            continue  # without a name it is reported by CT201
        words = f"ensemble output '{tensor.name}' for ensemble {ensemble.said_name}' is not used"
        if tensor.readers:
            words = f"output '{tensor.name}' for ensemble '{ensemble.said_name}' is not written"
        yield ensemble.unloadable(
            f"output[{index[tensor.name]}].name",
            f"no step writes the output {tensor.name!r} of the ensemble {ensemble.name!r}{_but_writes(partner)}",
            words,
            _SAME_NAME
            if partner is not None
            else f"map an output of a step to {tensor.name!r}, or remove this output of the ensemble",
        )


@loose_ends_rule("CT319", Severity.ERROR, "a step reads a tensor that nothing writes", source=core(_UTILS, 213, 288))
def unwritten_tensor(loose: LooseEnds) -> Iterator[Problem]:
    """An `input_map` reads a tensor that is not an input of the ensemble and that no `output_map` has as a `value`.

    The server does not load the ensemble, because this step, and each step that needs its outputs, would wait forever.
    In most cases, the server's message names an output of the ensemble that would be missing.

    Example:
        # tokenizer/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "TOKENS" data_type: TYPE_INT32 dims: -1 }

        # encoder/config.pbtxt
        backend: "python"
        input { name: "TOKENS" data_type: TYPE_INT32 dims: -1 }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 384 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 384 }
        ensemble_scheduling {
          step {
            model_name: "tokenizer"
            model_version: -1
            input_map { key: "TEXT" value: "TEXT" }
            output_map { key: "TOKENS" value: "token_ids" }
          }
          step {
            model_name: "encoder"
            model_version: -1
            input_map { key: "TOKENS" value: "tokens_ids" }
            output_map { key: "VECTOR" value: "VECTOR" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 384 }
        ensemble_scheduling {
          step {
            model_name: "tokenizer"
            model_version: -1
            input_map { key: "TEXT" value: "TEXT" }
            output_map { key: "TOKENS" value: "token_ids" }
          }
          step {
            model_name: "encoder"
            model_version: -1
            input_map { key: "TOKENS" value: "token_ids" }
            output_map { key: "VECTOR" value: "VECTOR" }
          }
        }
    """
    for tensor in loose.unwritten:
        partner = loose.partner.get(tensor.name)
        if tensor.is_output or (partner is not None and partner.kind != "unread"):
            continue  # reported by CT318, CT317 or CT315
        is_cause = len(loose.unwritten) == 1 and not loose.cycles
        yield loose.ensemble.unloadable(
            key_of(tensor.readers[0], tensor.name),
            f"step {tensor.readers[0].index} reads {tensor.name!r}, which nothing writes{_but_writes(partner)}",
            _not_written(loose, tensor.name, is_cause=is_cause),
            _SAME_NAME
            if partner is not None
            else "; or ".join(
                filter(
                    None,
                    [
                        fix_of_lost_output(loose.ensemble),
                        f"map an output of an earlier step to {tensor.name!r}, or declare it as an input of the "
                        "ensemble",
                    ],
                )
            ),
        )


@loose_ends_rule("CT320", Severity.ERROR, "steps of an ensemble wait for each other", source=core(_UTILS, 213, 288))
def waiting_steps(loose: LooseEnds) -> Iterator[Problem]:
    """A step needs its own output as an input, directly or through other steps.

    The server does not load the ensemble. An ensemble cannot contain a loop, because each step runs once, as soon as
    the server has all its inputs. The order of the steps in the file does not matter. For a loop, write a model that
    calls the other models (BLS).

    Example:
        # refiner/config.pbtxt
        backend: "python"
        input { name: "DRAFT" data_type: TYPE_FP32 dims: 4 }
        input { name: "CRITIQUE" data_type: TYPE_FP32 dims: 4 }
        output { name: "RESULT" data_type: TYPE_FP32 dims: 4 }

        # critic/config.pbtxt
        backend: "python"
        input { name: "RESULT" data_type: TYPE_FP32 dims: 4 }
        output { name: "CRITIQUE" data_type: TYPE_FP32 dims: 4 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "DRAFT" data_type: TYPE_FP32 dims: 4 }
        output { name: "RESULT" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step {
            model_name: "refiner"
            model_version: -1
            input_map { key: "DRAFT" value: "DRAFT" }
            input_map { key: "CRITIQUE" value: "critique" }
            output_map { key: "RESULT" value: "RESULT" }
          }
          step {
            model_name: "critic"
            model_version: -1
            input_map { key: "RESULT" value: "RESULT" }
            output_map { key: "CRITIQUE" value: "critique" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "DRAFT" data_type: TYPE_FP32 dims: 4 }
        output { name: "RESULT" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step {
            model_name: "critic"
            model_version: -1
            input_map { key: "RESULT" value: "DRAFT" }
            output_map { key: "CRITIQUE" value: "critique" }
          }
          step {
            model_name: "refiner"
            model_version: -1
            input_map { key: "DRAFT" value: "DRAFT" }
            input_map { key: "CRITIQUE" value: "critique" }
            output_map { key: "RESULT" value: "RESULT" }
          }
        }
    """
    steps = loose.ensemble.model.graph.steps
    for circle in loose.cycles:
        before = steps[circle[-1]].output_map.values()
        tensor = next(name for name in steps[circle[0]].input_map.values() if name in before)
        way = " → ".join(f"step {index} ({steps[index].model_name})" for index in (*circle, circle[0]))
        yield loose.ensemble.unloadable(
            key_of(steps[circle[0]], tensor),
            f"each of these steps waits for the step before it: {way}",
            _not_written(loose, tensor),
            "remove one of these connections; for a loop, write a model that calls the other models (BLS)",
        )


@loose_ends_rule("CT321", Severity.ERROR, "nothing reads a tensor that a step writes", source=core(_UTILS, 275, 288))
def unread_tensor(loose: LooseEnds) -> Iterator[Problem]:
    """An `output_map` names a tensor that no step reads and that is not an output of the ensemble.

    The server does not load an ensemble with an unused tensor. A step may map only some of its model's outputs, so
    remove the entry from the `output_map` if nothing needs this output.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        output { name: "FEATURES" data_type: TYPE_FP32 dims: 512 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "SCORES" value: "SCORES" }
            output_map { key: "FEATURES" value: "features" }
          }
        }

    Instead:
        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }
    """
    for source, meant in loose.of("unread"):
        if meant is None:
            yield loose.ensemble.unloadable(
                f'ensemble_scheduling.step[{source.step}].output_map["{source.output}"]',
                f"step {source.step} writes {source.tensor!r}, which nothing reads",
                f"ensemble tensor '{source.tensor}' is unused in ensemble '{loose.ensemble.said_name}'",
                f"remove {source.output!r} from the output_map, or declare {source.tensor!r} as an output of the "
                "ensemble",
            )


def _but_writes(partner: Source | None) -> str:
    return "" if partner is None else f", but step {partner.step} writes {partner.tensor!r}, which nothing reads"


def _not_written(loose: LooseEnds, tensor: str, *, is_cause: bool = False) -> str:
    """The server's message if a tensor is never written.

    The message contains the cause only if there is one. If no output of the ensemble depends on the tensors, the
    message is about the first tensor of the server's table.
    """
    ensemble = loose.ensemble.said_name
    if not loose.unready_outputs:
        return f"ensemble tensor '{tensor}' is unused in ensemble '{ensemble}'"
    said = f"output '{loose.unready_outputs[0]}' for ensemble '{ensemble}' is not written"
    return f"{said}: at least one of its depending tensors, '{tensor}', is not connected" if is_cause else said
