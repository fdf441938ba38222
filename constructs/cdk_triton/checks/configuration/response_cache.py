"""CT280 to CT282: whether a response cache can be on."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.checks.derived.scheduling import breaks_ordering, has_cache
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import core, server
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model

_UTILS = "src/model_config_utils.cc"

_CACHES_ENSEMBLES_SINCE = "24.05"  # branches of core: src/ensemble_scheduler/ensemble_scheduler.cc


@model_rule("CT280", Severity.ERROR, "the response cache is on for a decoupled model", source=core(_UTILS, 1681, 1689))
def cache_of_decoupled(each: ConfiguredModel) -> Iterator[Problem]:
    """The server does not load a decoupled model with a response cache.

    The cache stores one response for each request, but a decoupled model may send any number of responses. An ensemble
    is decoupled if one of its steps is decoupled, also through a nested ensemble.

    Example:
        $ cdk-triton validate . --default-model model --additional-model words
        # model/config.pbtxt
        backend: "python"
        # words/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }
        response_cache { enable: true }

    Instead:
        # words/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }
    """
    part = _decoupled_part(each) if each.config.response_cache.enable else None
    if part is not None:
        yield each.unloadable(
            "response_cache.enable",
            f"response_cache is on, but {_decoupled_words(each.model, part)}",
            f"Response Cache does not currently support model {each.said_name} with 'decoupled' transaction policy. "
            "Please disable the response cache",
            "remove response_cache",
        )


@model_rule(
    "CT281", Severity.ERROR, "the response cache is on for a model of sequences", source=core(_UTILS, 1570, 1579)
)
def cache_of_sequences(each: ConfiguredModel) -> Iterator[Problem]:
    """The server does not load a sequence model with a response cache.

    The response of a sequence model depends on earlier requests of the sequence, so the server cannot cache the
    response.

    Example:
        # model/config.pbtxt
        backend: "python"
        sequence_batching { }
        response_cache { enable: true }

    Instead:
        # model/config.pbtxt
        backend: "python"
        sequence_batching { }
    """
    if each.config.response_cache.enable and each.config.HasField("sequence_batching"):
        yield each.unloadable(
            "response_cache.enable",
            "response_cache is on together with sequence_batching",
            f"Response Cache does not currently support model {each.said_name} with sequence batching scheduler. "
            "Please disable the response cache",
            "remove response_cache",
        )


@model_rule(
    "CT282",
    Severity.WARNING,
    "a model uses the response cache, but the server has none for it",
    source=server("docker/sagemaker/serve", 183, 183),
)
def cache_without_cache(each: ConfiguredModel) -> Iterator[Problem]:
    """`response_cache` has no effect, because SageMaker starts the server without a cache.

    The server loads the model without a message and caches nothing. To have a cache, write
    `--cache-config=local,size=104857600` (bytes) into `additional_args` of the container's environment (from 23.07).

    Before 24.05, a server with a cache caches the responses of the steps of an ensemble, and not those of the ensemble.

    Example:
        # model/config.pbtxt
        backend: "python"
        response_cache { enable: true }

    Instead:
        # model/config.pbtxt
        backend: "python"
    """
    if not each.config.response_cache.enable:
        return
    if has_cache(each.context):
        yield from _cache_of_old_ensemble(each)
        return
    if each.config.HasField("sequence_batching") or breaks_ordering(each) or _decoupled_part(each) is not None:
        return  # reported by CT281, CT287 and CT280
    yield each.problem(
        "response_cache.enable",
        "the server that SageMaker starts has no response cache, so response_cache would have no effect on "
        f"{each.name!r}",
        "remove response_cache, or add --cache-config=local,size=104857600 to additional_args",
    )


def _cache_of_old_ensemble(each: ConfiguredModel) -> Iterator[Problem]:
    platform = each.context.platform
    is_old = platform is not None and is_older(platform, _CACHES_ENSEMBLES_SINCE)
    if is_old and each.model.is_ensemble and _decoupled_part(each) is None:
        yield each.problem(
            "response_cache.enable",
            f"the cache of {each.context.release} has no responses of ensembles, so response_cache would have no "
            f"effect on {each.name!r}",
            f"write response_cache into the steps, or serve with {_CACHES_ENSEMBLES_SINCE} or newer",
        )


def _decoupled_words(model: Model, part: Model) -> str:
    if part is model:
        return f"{model.name!r} is decoupled"
    nested = "" if part.name in model.graph.model_names else " through a nested ensemble"
    return f"the ensemble runs the decoupled model {part.name!r}{nested}"


def _decoupled_part(each: ConfiguredModel) -> Model | None:
    """The model itself if it is decoupled, or the first decoupled model that an ensemble runs; None if none is."""
    parts = {each.name: each.model}
    pending = [each.model]
    for part in pending:  # grows while we walk
        if part.config is not None and part.config.model_transaction_policy.decoupled:
            return part
        for name in part.graph.model_names:
            step = each.context.repository.model(name)
            if step is not None and name not in parts:
                parts[name] = step
                pending.append(step)
    return None
