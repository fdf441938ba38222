"""Models that keep state between requests, on an endpoint that may send these requests to different instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from aws_cdk import Annotations

from cdk_triton._wording import in_words, listed_in_quotes
from cdk_triton.hosting.endpoints.variants.variant import TritonVariant
from cdk_triton.hosting.naming.literals import is_token

__all__ = ["keeps_state", "warn_about_state"]

STATE_WARNING: Final = "cdk-triton:StateOnSeveralInstances"


def keeps_state(variant: TritonVariant) -> tuple[str, ...]:
    """The models of a variant with a sequence batcher; none for an imported model, or one of a user's own class."""
    found: tuple[str, ...] = getattr(variant.model, "_stateful_models", ())
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
    models = tuple(dict.fromkeys(name for variant in variants for name in keeps_state(variant)))
    reasons = [reason for variant in variants if keeps_state(variant) for reason in _reasons(variant, most_instances)]
    reached = [each.variant_name for each in variants if is_token(each.initial_weight) or each.initial_weight > 0]
    if len(reached) > 1 and any(each.variant_name in reached and keeps_state(each) for each in variants):
        reasons.append(f"requests that name no variant go to {in_words(map(repr, reached), 'or')}")
    if models and reasons:
        one = len(models) == 1
        notes.add_warning_v2(
            STATE_WARNING,
            f"{'the model' if one else 'the models'} {listed_in_quotes(models, shown=3)} "
            f"{'keeps' if one else 'keep'} state between the requests of a sequence, but {in_words(reasons, 'and')}, "
            "so the requests of a sequence may reach different instances, which know nothing of each other. Serve "
            f"{'it' if one else 'them'} as a single model on one variant with one instance and without scaling, or "
            "acknowledge this if every sequence is a single request",
        )


def _reasons(variant: TritonVariant, most_instances: Callable[[TritonVariant], int | None]) -> Iterator[str]:
    name = repr(variant.variant_name)
    most = most_instances(variant)
    if most is not None and most > 1:
        yield f"variant {name} may have {most} instances"
    if variant.fallback_models:
        yield f"variant {name} has pools of several instance types"
    if variant.model.is_multi_model:
        yield f"an instance of variant {name} may unload a target model between two requests"
