"""What several rules about configurations ask: which models have one, and what the server completes in it."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.triton import backend_fields
from cdk_triton.triton.checks.engine import Check
from cdk_triton.triton.releases import release_order
from cdk_triton.triton.repository import Model, Platform
from cdk_triton.triton.schema import ModelConfig

__all__ = ["completed_pair", "configured", "has_argument", "knows_aoti"]

_AOTI_SINCE = "26.03"  # branches of core: from r26.03 on it knows `torch_aoti` and `model.pt2`


def configured(check: Check) -> Iterator[tuple[Model, ModelConfig]]:
    """The loaded models whose configuration can be read; the others are reported by CT101."""
    for model in check.loaded_models:
        if model.config is not None:
            yield model, model.config


def completed_pair(model: Model, config: ModelConfig, platform: Platform | None) -> tuple[str, str]:
    """`platform` and `backend` as the server that serves completes them."""
    return backend_fields.completed_pair(
        config, model.name, model.first_version_entries, knows_aoti=knows_aoti(platform)
    )


def knows_aoti(platform: Platform | None) -> bool:
    """Whether the server knows PyTorch's second platform, `torch_aoti`; so it does where nobody said the release."""
    release = platform.release if platform is not None else None
    return release is None or release_order(release) >= release_order(_AOTI_SINCE)


def has_argument(check: Check, beginning: str) -> bool:
    """Whether the container's environment gives the server an argument that begins so; not, where nobody said."""
    return check.environment is not None and any(
        argument.startswith(beginning) for argument in check.environment.additional_args
    )
