"""The models that have a configuration, and the configuration as the server completes it, for several rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.releases import knows_aoti, knows_libtorch
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import backend_fields
from cdk_triton.triton.model import CONFIG_NAME, Model
from cdk_triton.triton.schema import ModelConfig
from cdk_triton.triton.server_options import given_options

__all__ = [
    "PLATFORMS",
    "completed_pair",
    "completes",
    "configured",
    "configured_or_not",
    "has_argument",
    "has_no_configuration",
    "is_wrong_pair",
    "said_name",
]

PLATFORMS = {
    "onnxruntime": '"onnxruntime_onnx"',
    "pytorch": '"pytorch_libtorch"',
    "tensorflow": '"tensorflow_savedmodel" or "tensorflow_graphdef"',
    "tensorrt": '"tensorrt_plan"',
}
"""Backend to its platforms, for the backends that have some; other backends accept any."""


@per_check
def configured(context: CheckContext) -> Iterator[tuple[Model, ModelConfig]]:
    """The loaded models whose configuration can be read; the others are reported by CT101."""
    for model in context.loaded_models:
        if model.config is not None:
            yield model, model.config


def configured_or_not(context: CheckContext) -> Iterator[tuple[Model, ModelConfig]]:
    """The loaded models, those without a configuration included: the server begins with an empty one for them."""
    for model in context.loaded_models:
        if model.config is not None:
            yield model, model.config
        elif has_no_configuration(context, model):
            yield model, ModelConfig()


def has_no_configuration(context: CheckContext, model: Model) -> bool:
    """Whether a model certainly has no configuration, in its directory or elsewhere."""
    is_elsewhere = model.config_path in model.produced or has_argument(context, "--model-config-name")
    return model.config_text is None and CONFIG_NAME not in model.subdirectories and not is_elsewhere


def completes(context: CheckContext) -> bool:
    """Whether the server lets backends complete configurations, unless the container's environment turns that off."""
    return not any(has_argument(context, each) for each in ("--disable-auto-complete-config", "--strict-model-config"))


def completed_pair(context: CheckContext, model: Model) -> tuple[str, str]:
    """`platform` and `backend` as the server that serves completes them."""
    return _completed_pairs(context)[model.name]


@per_check
def _completed_pairs(context: CheckContext) -> Mapping[str, tuple[str, str]]:
    aoti, libtorch = knows_aoti(context.platform), knows_libtorch(context.platform)

    def pair(model: Model) -> tuple[str, str]:
        return backend_fields.completed_pair(
            model.config, model.name, lambda: model.first_version_entries, knows_aoti=aoti, knows_libtorch=libtorch
        )

    return {model.name: pair(model) for model in context.repository.models}


def is_wrong_pair(platform: str, backend: str, serving: ServingPlatform | None) -> bool:
    """Whether the server rejects a completed platform beside a completed backend; an ensemble is CT285's."""
    if backend not in PLATFORMS or platform == "ensemble" or f'"{platform}"' in PLATFORMS[backend]:
        return False
    return (platform, backend) != ("torch_aoti", "pytorch") or not knows_aoti(serving)


def said_name(model: Model) -> str:
    """The name in the server's sentences about a configuration: its `name`, or else the directory's.

    They should be the same (CT104), and the server compares them last.
    """
    return (model.config.name if model.config is not None else "") or model.name


def has_argument(context: CheckContext, beginning: str) -> bool:
    """Whether the container's environment gives the server an argument that begins so; False without an environment.

    Args:
        context: what the rule may look at.
        beginning: an option, and the beginning of its value: `--host-policy=gpu_0,`.
    """
    if context.environment is None or not context.environment.additional_args:
        return False
    return any(
        f"--{option}={value}".startswith(beginning)
        for option, value in given_options(context.environment.additional_args)
    )
