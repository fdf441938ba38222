"""CT330, CT331, CT336, CT337, CT344: whether all mean the same by an ensemble tensor: data type, shape and batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import completes_batch_size, known_backend
from cdk_triton.checks.derived.composition import (
    RunStep,
    fits,
    fix_of_lost_output,
    flow_ends,
    passed_on,
    run_steps,
    step_rule,
)
from cdk_triton.checks.derived.configured import ConfiguredModel, ensemble_rule
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig

_ENSEMBLE_UTILS = "src/ensemble_scheduler/ensemble_utils.cc"


@rule("CT330", Severity.ERROR, "an ensemble tensor has different data types", source=core(_ENSEMBLE_UTILS, 91, 100))
def different_types(context: CheckContext) -> Iterator[Problem]:
    """The ensemble and the models of its steps declare different data types for the same tensor.

    The server does not load the ensemble, because it does not convert data types. Write the same `data_type` in both
    places, or convert the tensor in a step between them.

    Example:
        # tokenizer/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "TOKENS" data_type: TYPE_INT32 dims: -1 }

        # encoder/config.pbtxt
        backend: "python"
        input { name: "input_ids" data_type: TYPE_INT64 dims: -1 }
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
            output_map { key: "TOKENS" value: "tokens" }
          }
          step {
            model_name: "encoder"
            model_version: -1
            input_map { key: "input_ids" value: "tokens" }
            output_map { key: "VECTOR" value: "VECTOR" }
          }
        }

    Instead:
        # tokenizer/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "TOKENS" data_type: TYPE_INT64 dims: -1 }
    """
    for ensemble, tensors in flow_ends(context):
        for name, ends in tensors.items():
            typed = [end for end in ends if end.data_type]
            first = {end.data_type: end for end in reversed(typed)}  # the first end of each type
            for end in typed[1:]:
                one = typed[0]
                if end.data_type != one.data_type and first[end.data_type] is end:
                    yield ensemble.unloadable(
                        end.field,
                        f"the tensor {name!r} is {one.data_type} {one.what} and {end.data_type} {end.what}",
                        f"in ensemble {ensemble.name}, ensemble tensor {name}: inconsistent data type: "
                        f"{one.data_type} is inferred from model {one.model.name} while {end.data_type} is inferred "
                        f"from model {end.model.name}",
                        fix_of_lost_output(ensemble, one, end)
                        or "write the same data_type in both places, or convert the tensor in a step between them",
                    )


@rule("CT331", Severity.ERROR, "an ensemble tensor has different shapes", source=core(_ENSEMBLE_UTILS, 101, 118))
def different_shapes(context: CheckContext) -> Iterator[Problem]:
    """The ensemble and the models of its steps declare different shapes for the same tensor.

    The server does not load the ensemble. A dimension of -1 fits any size, but both shapes must have the same number of
    dimensions. For a model of a step, the server compares `dims` and ignores `reshape`. For the ensemble's own inputs
    and outputs, the server compares the `reshape`, if it is set, instead of `dims`. If `max_batch_size` is above 0, the
    shape begins with a batch dimension. Two shapes agree if they fit either without the batch dimension or with it.

    Example:
        # cropper/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "PIXELS" data_type: TYPE_FP32 dims: [ 224, 224, 3 ] }

        # classifier/config.pbtxt
        backend: "python"
        input { name: "PIXELS" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling {
          step {
            model_name: "cropper"
            model_version: -1
            input_map { key: "IMAGE" value: "IMAGE" }
            output_map { key: "PIXELS" value: "pixels" }
          }
          step {
            model_name: "classifier"
            model_version: -1
            input_map { key: "PIXELS" value: "pixels" }
            output_map { key: "SCORES" value: "SCORES" }
          }
        }

    Instead:
        # cropper/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "PIXELS" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }

    Limits:
        If a backend may set another number instead of `max_batch_size: 0`, the rule does not report shapes that would
        agree with that number.
    """
    for ensemble, tensors in flow_ends(context):
        for name, ends in tensors.items():
            shaped = [end for end in ends if end.dims is not None]
            seen = set()
            for end in shaped[1:]:
                first = shaped[0]
                of_other_type = "" not in (first.data_type, end.data_type) and first.data_type != end.data_type
                if of_other_type or end.shapes in seen or first.agrees_in_shape(end):
                    continue  # the first is reported by CT330: probably another tensor is meant
                seen.add(end.shapes)
                here, there = _text(first.shapes[0]), _text(end.shapes[0])
                yield ensemble.unloadable(
                    end.field,
                    f"the tensor {name!r} has the shape {here} {first.what} and {there} {end.what}",
                    f"in ensemble {ensemble.name}, ensemble tensor {name}: inconsistent shape: {here} is inferred from "
                    f"model {first.model.name} while {there} is inferred from model {end.model.name}",
                    fix_of_lost_output(ensemble, first, end) or _fix(first.shapes[0], end.shapes[0]),
                )


def _fix(first: Sequence[int], second: Sequence[int]) -> str:
    if [size for size in first if size != 1] == [size for size in second if size != 1]:
        return (
            "write the same dims in both places, and `reshape { shape: [ … ] }` beside them where the model itself has "
            "the other shape"
        )
    return "write the same dims in both places (-1 if a size varies), or reshape the tensor in a step between them"


@step_rule(
    "CT336",
    Severity.ERROR,
    "an ensemble allows larger batches than one of its models",
    source=core(_ENSEMBLE_UTILS, 289, 302),
)
def batch_too_large(run: RunStep) -> Iterator[Problem]:
    """The `max_batch_size` of an ensemble is larger than the `max_batch_size` of a model that it runs.

    The server does not split a batch, so each step receives the whole batch of a request. Therefore, the server does
    not load an ensemble that allows larger batches than one of its models.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        max_batch_size: 4
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        max_batch_size: 8
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

    Instead:
        # classifier/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

    Limits:
        A backend may set another number instead of `max_batch_size: 0`. The rule derives this number only for ONNX
        Runtime, and only if an ONNX file shows that its first dimensions are variable.
    """
    ensemble, model = run.ensemble, run.runs.model
    most, allowed = ensemble.config.max_batch_size, run.runs.config.max_batch_size
    if not 0 < allowed < most:
        return
    if known_backend(ensemble.context, model) == "python" and completes_batch_size(run.runs):
        return  # the only backend that raises a number that is written
    if run.step is not next(each for each in ensemble.model.graph.steps if each.model_name == model.name):
        return  # reported for an earlier step
    is_written = model.config is not None and model.config.max_batch_size == allowed
    filled = "" if is_written else f" (the backend sets this number, because {model.config_path} does not)"
    yield ensemble.unloadable(
        "max_batch_size",
        f"max_batch_size is {most} in {ensemble.name!r}, but {allowed} in the model {model.name!r} of step "
        f"{run.step.index}{filled}",
        f"ensemble {ensemble.name} allows maximum batch size {most}, but it contains model {model.name} which only "
        f"allows maximum batch size to be {allowed}",
        f"write max_batch_size: {allowed} in {ensemble.name!r}, or at least {most} in {model.name!r}",
    )


@rule(
    "CT337",
    Severity.WARNING,
    "an ensemble that takes batches runs a model that does not",
    source=core("src/ensemble_scheduler/ensemble_scheduler.cc", 1150, 1190),
)
def batch_for_single_items(context: CheckContext) -> Iterator[Problem]:
    """An ensemble passes batches to a model whose `max_batch_size` is 0 and whose `dims` have no batch dimension.

    The server loads the ensemble, because the shapes agree for one item. The server passes a batch of one item to the
    model without the batch dimension, but a request with a larger batch fails at the step. If the model supports
    batches, write `max_batch_size` into its configuration too. If the model processes all items at once, declare -1 as
    its first dimension. Otherwise, remove `max_batch_size` from the ensemble.

    Example:
        # classifier/config.pbtxt
        backend: "python"
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        max_batch_size: 8
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

    Instead:
        # classifier/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_FP32 dims: 4 }
        output { name: "SCORES" data_type: TYPE_FP32 dims: 2 }

    Limits:
        The rule skips models whose backend may set another number instead of `max_batch_size: 0`.
    """
    for ensemble, tensors in flow_ends(context):
        most = ensemble.config.max_batch_size
        for source, end in passed_on(tensors) if most > 1 else ():
            if source.batches != (True,) or end.batches != (False,) or source.dims is None or end.dims is None:
                continue
            if fits(source.dims, end.dims) and not fits(source.shapes[0], end.dims):
                yield ensemble.problem(
                    end.field,
                    f"{ensemble.name!r} takes batches of up to {most}, but {end.model.name!r} takes single items (its "
                    "max_batch_size is 0), so a request with several items would fail with: unexpected shape for input "
                    f"'{end.tensor}' for model '{end.model.name}'",
                    f"write max_batch_size in {end.model.name!r} too if this model can take batches, or remove "
                    f"max_batch_size from {ensemble.name!r}",
                )


@ensemble_rule(
    "CT344",
    Severity.WARNING,
    "an ensemble allows ragged batches that its model does not allow",
    source=core("src/backend_model.cc", 829, 847),
)
def ragged_ensemble(each: ConfiguredModel) -> Iterator[Problem]:
    """An ensemble's input has `allow_ragged_batch`, and the input of the model that reads it does not.

    The scheduler and the backend of a model read `allow_ragged_batch` of this model, and an ensemble has neither. So
    the server joins only requests with equal shapes to a batch of the model. If the model accepts [ragged
    batches](https://github.com/triton-inference-server/server/blob/main/docs/user_guide/ragged_batching.md), write
    `allow_ragged_batch` into its configuration.

    Example:
        # encoder/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "AUDIO" data_type: TYPE_FP32 dims: -1 }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 4 }
        dynamic_batching { }

        # pipeline/config.pbtxt
        platform: "ensemble"
        max_batch_size: 8
        input { name: "AUDIO" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 4 }
        ensemble_scheduling {
          step {
            model_name: "encoder"
            model_version: -1
            input_map { key: "AUDIO" value: "AUDIO" }
            output_map { key: "VECTOR" value: "VECTOR" }
          }
        }

    Instead:
        # encoder/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "AUDIO" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "VECTOR" data_type: TYPE_FP32 dims: 4 }
        dynamic_batching { }

    Limits:
        The rule skips an input that another ensemble reads, one that any of its models accepts as ragged, and models
        whose configuration has no batcher, because they get single requests only.
    """
    runs = [run for run in run_steps(each.context) if run.ensemble.name == each.name]
    for index, tensor in enumerate(each.config.input):
        readers = [
            (run.runs, given)
            for run in runs
            for given in run.runs.config.input
            if tensor.allow_ragged_batch
            and -1 in given.dims
            and _joins_requests(run.runs.config)
            and run.step.input_map.get(given.name) == tensor.name
        ]
        if not readers or any(given.allow_ragged_batch or model.model.is_ensemble for model, given in readers):
            continue
        model, given = readers[0]
        yield each.problem(
            f"input[{index}].allow_ragged_batch",
            f"the ensemble {each.name!r} allows ragged batches of {tensor.name!r}, but an ensemble joins no requests, "
            f"and {model.name!r} does not allow them, so it gets batches of equal shapes only",
            f"write allow_ragged_batch: true for the input {given.name!r} of {model.name!r} if it takes ragged "
            "batches, and remove it here",
        )


def _joins_requests(config: ModelConfig) -> bool:
    return config.max_batch_size > 1 and (config.HasField("dynamic_batching") or config.HasField("sequence_batching"))


def _text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
