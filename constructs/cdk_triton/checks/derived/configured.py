"""What several rules about configurations ask: which models have one, and what the server completes in it."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.releases import knows_aoti
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import backend_fields
from cdk_triton.triton.repository import Model
from cdk_triton.triton.schema import ModelConfig

__all__ = ["completed_pair", "configured", "has_argument", "said_name"]


def configured(context: CheckContext) -> Iterator[tuple[Model, ModelConfig]]:
    """The loaded models whose configuration can be read; the others are reported by CT101."""
    for model in context.loaded_models:
        if model.config is not None:
            yield model, model.config


def completed_pair(model: Model, config: ModelConfig, platform: ServingPlatform | None) -> tuple[str, str]:
    """`platform` and `backend` as the server that serves completes them."""
    return backend_fields.completed_pair(
        config, model.name, model.first_version_entries, knows_aoti=knows_aoti(platform)
    )


def said_name(model: Model) -> str:
    """The name in the server's sentences about a configuration: its `name`, or else the directory's.

    They should be the same (CT104), and the server compares them last.
    """
    return (model.config.name if model.config is not None else "") or model.name


def has_argument(context: CheckContext, beginning: str) -> bool:
    """Whether the container's environment gives the server an argument that begins so; not, where nobody said."""
    return context.environment is not None and any(
        argument.startswith(beginning) for argument in context.environment.additional_args
    )
