"""Models that keep state between requests, where these requests may be sent to different instances or copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from aws_cdk import Annotations

from cdk_triton._wording import in_words, listed_in_quotes
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.models.interface import ITritonModel
from cdk_triton.hosting.naming.literals import is_token

__all__ = ["stateful_models", "warn_about_shadow_state", "warn_about_state", "warn_about_state_of_copies"]

STATE_WARNING: Final = "cdk-triton:StateOnSeveralInstances"


def stateful_models(model: ITritonModel) -> tuple[str, ...]:
    """The models with a sequence batcher; none for an imported model, or one of a user's own class."""
    found: tuple[str, ...] = getattr(model, "_stateful_models", ())
    return found


def warn_about_state(
    notes: Annotations, variants: Sequence[TritonVariant], most_instances: Callable[[TritonVariant], int | None]
) -> None:
    """Warn if the requests of a sequence may reach different instances.

    SageMaker sends a request to any instance of any variant that has a weight. Its sticky sessions need a container
    that returns a session id ("Stateful sessions with SageMaker AI models"), which `src/sagemaker_server.cc` of Triton
    does not do.

    Args:
        notes: the annotations of the endpoint.
        variants: the endpoint's production variants.
        most_instances: the most instances of a variant; None for an unresolved token.
    """
    stateful = [each for each in variants if stateful_models(each.model)]
    reasons = [reason for variant in stateful for reason in _reasons(variant, most_instances)]
    reached = [each.variant_name for each in variants if is_token(each.initial_weight) or each.initial_weight > 0]
    if len(reached) > 1 and any(each.variant_name in reached for each in stateful):
        reasons.append(f"requests that name no variant go to {in_words(map(repr, reached), 'or')}")
    _warn(notes, [each.model for each in stateful], reasons, "on one variant with one instance")


def warn_about_shadow_state(
    notes: Annotations,
    shadow: TritonVariant,
    production: TritonVariant,
    most_instances: Callable[[TritonVariant], int | None],
) -> None:
    """Warn if the copies of the requests of a sequence do not all reach the same instance of a shadow.

    Args:
        notes: the annotations of the endpoint.
        shadow: the endpoint's shadow.
        production: the variant whose requests SageMaker copies.
        most_instances: the most instances of a variant; None for an unresolved token.
    """
    models = stateful_models(shadow.model)
    reasons = list(_reasons(shadow, most_instances))
    weights = shadow.initial_weight, production.initial_weight
    if not any(map(is_token, weights)) and 0 < weights[0] < weights[1]:
        reasons.append("SageMaker copies only a part of the requests to it")
    if models and reasons:
        notes.add_warning_v2(
            STATE_WARNING,
            f"{_keeps(models)} state between the requests of a sequence, but the shadow {shadow.variant_name!r} does "
            f"not see whole sequences, because {in_words(reasons, 'and')}. Give the shadow one instance and the weight "
            f"of {production.variant_name!r}, or acknowledge this if every sequence is a single request",
        )


def warn_about_state_of_copies(notes: Annotations, copies: Mapping[str, tuple[ITritonModel, int]]) -> None:
    """Warn if the requests of a sequence may reach different copies of an inference component.

    Args:
        notes: the annotations of the endpoint.
        copies: the model of each component, and the most copies of it.
    """
    divided = {name: (model, most) for name, (model, most) in copies.items() if most > 1 and stateful_models(model)}
    reasons = [f"component {name!r} may have {most} copies" for name, (_, most) in divided.items()]
    _warn(notes, [model for model, _ in divided.values()], reasons, "in a component with one copy")


def _warn(notes: Annotations, models: Iterable[ITritonModel], reasons: Sequence[str], place: str) -> None:
    names = tuple(dict.fromkeys(name for model in models for name in stateful_models(model)))
    if names and reasons:
        notes.add_warning_v2(
            STATE_WARNING,
            f"{_keeps(names)} state between the requests of a sequence, but {in_words(reasons, 'and')}, so a "
            f"request may not find the state of the requests before it. Serve {'it' if len(names) == 1 else 'them'} as "
            f"a single model {place} and without scaling, or acknowledge this if every sequence is a single request",
        )


def _keeps(models: Sequence[str]) -> str:
    one = len(models) == 1
    return f"the {'model' if one else 'models'} {listed_in_quotes(models, shown=3)} {'keeps' if one else 'keep'}"


def _reasons(variant: TritonVariant, most_instances: Callable[[TritonVariant], int | None]) -> Iterator[str]:
    name = repr(variant.variant_name)
    most = most_instances(variant)
    if most is not None and most > 1:
        yield f"variant {name} may have {most} instances"
    if variant.fallback_models:
        yield f"variant {name} has pools of several instance types"
    if variant.model.is_multi_model:
        yield f"an instance of variant {name} may unload a target model between two requests"
