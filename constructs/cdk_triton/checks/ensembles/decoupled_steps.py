"""CT338 to CT341: ensembles with a step that answers one request any number of times."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.configured import ConfiguredModel, ensembles
from cdk_triton.checks.derived.decoupling import (
    DECOUPLED_REJECTED,
    STREAM,
    decoupled_models,
    known_inference_type,
    mixed_tensors,
    way_to_stream,
)
from cdk_triton.checks.derived.unconnected_tensors import key_of
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import core, server
from cdk_triton.triton.ensemble import EnsembleStep
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model

_ENSEMBLE_UTILS = "src/ensemble_scheduler/ensemble_utils.cc"


@rule(
    "CT338",
    Severity.ERROR,
    "an ensemble combines tensors of different decoupled models",
    source=core(_ENSEMBLE_UTILS, 305, 363),
)
def mixed_responses(context: CheckContext) -> Iterator[Problem]:
    """A step or the response combines a tensor of a decoupled model with a tensor that does not come from this model.

    A decoupled model returns any number of responses to one request, and the later steps run once for each response.
    The server cannot combine these responses with a tensor that exists only once, such as an input of the ensemble. Nor
    can it combine them with the responses of another decoupled model. So the server does not load the ensemble. Return
    the other tensors from the decoupled model too, or make this model return one response for each request.

    Example:
        # splitter/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SENTENCE" data_type: TYPE_STRING dims: 1 }

        # translator/config.pbtxt
        backend: "python"
        input { name: "SENTENCE" data_type: TYPE_STRING dims: -1 }
        input { name: "LANGUAGE" data_type: TYPE_STRING dims: 1 }
        output { name: "RESULT" data_type: TYPE_STRING dims: -1 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        input { name: "LANGUAGE" data_type: TYPE_STRING dims: 1 }
        output { name: "RESULT" data_type: TYPE_STRING dims: -1 }
        ensemble_scheduling {
          step {
            model_name: "splitter"
            model_version: -1
            input_map { key: "TEXT" value: "TEXT" }
            output_map { key: "SENTENCE" value: "sentence" }
          }
          step {
            model_name: "translator"
            model_version: -1
            input_map { key: "SENTENCE" value: "sentence" }
            input_map { key: "LANGUAGE" value: "LANGUAGE" }
            output_map { key: "RESULT" value: "RESULT" }
          }
        }

    Instead:
        # splitter/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SENTENCE" data_type: TYPE_STRING dims: -1 }
    """
    for ensemble, step, tensor, other in mixed_tensors(context):
        if step is None:
            who = "the response contains"
            outputs = ensemble.config.output
            field = next(f"output[{i}]" for i, output in enumerate(outputs) if output.name == tensor)
        else:
            who = f"step {step.index} ({step.model_name}) reads"
            field = key_of(step, tensor)
        yield ensemble.unloadable(
            field,
            f"{who} {other!r} and {tensor!r}, which do not come from the same decoupled model",
            f"in ensemble {ensemble.name}, step of model '{_owner(ensemble.model, step)}' receives inputs originated "
            "from different decoupled models",
            "let the decoupled model return the other tensors as well, or make it return one response for each request",
        )


@rule(
    "CT340",
    Severity.ERROR,
    "the endpoint rejects every invocation of an ensemble with a decoupled step",
    source=server("src/sagemaker_server.cc", 444, 461),
)
def decoupled_step(context: CheckContext) -> Iterator[Problem]:
    """A step of the entry ensemble, at any depth, is decoupled, so the ensemble is decoupled too.

    The server loads the ensemble, but the endpoint returns an error for every invocation, because SageMaker's protocol
    allows exactly one response. Only a single-model container with `inference_type="generate_stream"` in its
    environment returns several responses, which callers read with `TritonClient.stream`. With
    `inference_type="generate"`, the container accepts a decoupled model that returns one response. Releases before
    25.03 do not read `inference_type`.

    Example:
        $ cdk-triton validate . --mode multi
        # splitter/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SENTENCE" data_type: TYPE_STRING dims: 1 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SENTENCE" data_type: TYPE_STRING dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "splitter"
            model_version: -1
            input_map { key: "TEXT" value: "TEXT" }
            output_map { key: "SENTENCE" value: "SENTENCE" }
          }
        }

    Instead:
        # splitter/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SENTENCE" data_type: TYPE_STRING dims: 1 }

    Limits:
        If the environment of a single-model container is not known, CT341 reports the ensemble instead.
    """
    if known_inference_type(context) == "infer":
        for entry, ran, cause, field in _decoupled_entry(context):
            yield entry.problem(
                field,
                f"the ensemble {entry.name!r} runs {ran}, so the endpoint would answer every invocation with: "
                f"{DECOUPLED_REJECTED}",
                f"make {cause!r} return one response for each request, or {way_to_stream(context)}",
            )


@rule(
    "CT341",
    Severity.WARNING,
    "an ensemble with a decoupled step needs an endpoint that streams",
    source=server("src/http_server.cc", 3275, 3293),
    modes=("single",),
)
def decoupled_step_of_unknown_container(context: CheckContext) -> Iterator[Problem]:
    """A step of the entry ensemble is decoupled, and the container's environment is not given.

    By default, the endpoint rejects every invocation of such an ensemble. With `inference_type="generate_stream"` (from
    25.03 on), the endpoint streams the responses, and callers read them with `TritonClient.stream`. Set this value, or
    make the decoupled model return one response for each request.

    Example:
        # splitter/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SENTENCE" data_type: TYPE_STRING dims: 1 }

        # pipeline/config.pbtxt
        platform: "ensemble"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SENTENCE" data_type: TYPE_STRING dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "splitter"
            model_version: -1
            input_map { key: "TEXT" value: "TEXT" }
            output_map { key: "SENTENCE" value: "SENTENCE" }
          }
        }

    Instead:
        # splitter/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SENTENCE" data_type: TYPE_STRING dims: 1 }
    """
    if known_inference_type(context) is None:
        for entry, ran, cause, field in _decoupled_entry(context):
            yield entry.problem(
                field,
                f"the ensemble {entry.name!r} runs {ran}; unless the container's inference_type is 'generate_stream', "
                f"the endpoint would answer every invocation with: {DECOUPLED_REJECTED}",
                f"set inference_type='generate_stream' and call {STREAM}, or make {cause!r} return one response for "
                "each request",
            )


def _decoupled_entry(context: CheckContext) -> Iterator[tuple[ConfiguredModel, str, str, str]]:
    """The entry model if it is a decoupled ensemble that loads, what it runs in words, the cause and the step."""
    decoupled = decoupled_models(context)
    entry = next((each for each in ensembles(context) if each.model is context.entry), None)
    if entry is None or entry.name not in decoupled:
        return
    if any(ensemble is entry for ensemble, *_ in mixed_tensors(context)):
        return  # reported by CT338
    step = next(step for step in entry.model.graph.steps if step.model_name in decoupled)
    cause = decoupled[step.model_name]
    ran = f"the decoupled model {cause!r}"
    if cause != step.model_name:
        ran = f"the ensemble {step.model_name!r}, which contains {ran}"
    yield entry, ran, cause, f"ensemble_scheduling.step[{step.index}].model_name"


def _owner(ensemble: Model, step: EnsembleStep | None) -> str:
    """The model that the server names for a step: the first that mentions what the step writes, or the ensemble."""
    name = None if step is None else next(iter(step.output_map.values()), None)  # CT314 reports a step without
    written = ensemble.graph.tensors.get(name or "")
    if written is None or written.is_input or written.is_output:
        return ensemble.name
    return min((*written.readers, *written.writers), key=lambda user: user.index).model_name
