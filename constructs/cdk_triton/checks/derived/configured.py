"""The models that have a configuration, and the configuration as the server completes it, for several rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.releases import knows_aoti, knows_libtorch
from cdk_triton.checks.registry import Problem, rules_about, would_not_load
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import backend_fields
from cdk_triton.triton.model import CONFIG_NAME, Model
from cdk_triton.triton.schema import ModelConfig
from cdk_triton.triton.server_options import given_options

__all__ = [
    "PLATFORMS",
    "ConfiguredModel",
    "Part",
    "completed_pair",
    "completes",
    "configured",
    "configured_or_not",
    "ensemble_rule",
    "ensembles",
    "has_argument",
    "has_no_configuration",
    "is_wrong_pair",
    "model_rule",
    "said_name",
]

PLATFORMS = {
    "onnxruntime": '"onnxruntime_onnx"',
    "pytorch": '"pytorch_libtorch"',
    "tensorflow": '"tensorflow_savedmodel" or "tensorflow_graphdef"',
    "tensorrt": '"tensorrt_plan"',
}
"""Backend to its platforms, for the backends that have some; other backends accept any."""


Message = TypeVar("Message", covariant=True)


@dataclass(frozen=True, slots=True)
class ConfiguredModel:
    """A model with its configuration, which a rule judges.

    Attributes:
        context: the check.
        model: the model.
        config: the model's configuration.
    """

    context: CheckContext
    model: Model
    config: ModelConfig

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def said_name(self) -> str:
        """The name in the server's sentences about the configuration."""
        return said_name(self.model)

    def parts(self, field: str, messages: Sequence[Message]) -> Iterator[Part[Message]]:
        """The elements of a repeated field."""
        for index, message in enumerate(messages):
            yield Part(self, field, index, message)

    def problem(self, field: str, message: str, fix: str) -> Problem:
        """A problem of a field."""
        return Problem(self.model.config_path, message, fix, field)

    def unloadable(self, field: str, found: str, words: str, fix: str, *, joint: str = ", so ") -> Problem:
        """A problem of a field for which the server does not load the model; `words` are the server's."""
        return self.problem(field, would_not_load(self.model, found, words, joint), fix)


@dataclass(frozen=True, slots=True)
class Part(Generic[Message]):
    """A message in a configuration, such as an instance group, which a rule judges.

    Attributes:
        owner: the model with the configuration.
        repeated: the repeated field that has the message, such as `instance_group`.
        index: the position in that field.
        message: the message.
    """

    owner: ConfiguredModel
    repeated: str
    index: int
    message: Message

    def field(self, name: str = "") -> str:
        """The path of one of its fields, or its own, as findings write it."""
        own = f"{self.repeated}[{self.index}]"
        return f"{own}.{name}" if name else own

    def problem(self, field: str, message: str, fix: str) -> Problem:
        """A problem of one of its fields; "" for the message itself."""
        return self.owner.problem(self.field(field), message, fix)

    def unloadable(self, field: str, found: str, words: str, fix: str, *, joint: str = ", so ") -> Problem:
        """A problem for which the server does not load the model; `words` are the server's."""
        return self.owner.unloadable(self.field(field), found, words, fix, joint=joint)


@per_check
def configured(context: CheckContext) -> Iterator[ConfiguredModel]:
    """The loaded models whose configuration can be read; the others are reported by CT101."""
    for model in context.loaded_models:
        if model.config is not None:
            yield ConfiguredModel(context, model, model.config)


model_rule = rules_about(configured)
"""Register a rule about each loaded model that has a configuration; the parameters are those of `rule`."""


def ensembles(context: CheckContext) -> Iterator[ConfiguredModel]:
    """The ensembles among the configured models."""
    return (each for each in configured(context) if each.model.is_ensemble)


ensemble_rule = rules_about(ensembles)
"""Register a rule about each loaded ensemble; the parameters are those of `rule`."""


def configured_or_not(context: CheckContext) -> Iterator[ConfiguredModel]:
    """The loaded models, also those without a configuration, for which the server begins with an empty one."""
    for model in context.loaded_models:
        if model.config is not None:
            yield ConfiguredModel(context, model, model.config)
        elif has_no_configuration(context, model):
            yield ConfiguredModel(context, model, ModelConfig())


def has_no_configuration(context: CheckContext, model: Model) -> bool:
    """Whether a model certainly has no configuration, in its directory or elsewhere."""
    is_elsewhere = model.config_path in model.produced or has_argument(context, "--model-config-name")
    return model.config_text is None and CONFIG_NAME not in model.subdirectories and not is_elsewhere


def completes(context: CheckContext) -> bool:
    """Whether the server lets backends complete configurations, unless the container's environment turns that off."""
    return not any(has_argument(context, each) for each in ("--disable-auto-complete-config", "--strict-model-config"))


def completed_pair(context: CheckContext, model: Model) -> tuple[str, str]:
    """`platform` and `backend` as the server of the platform completes them."""
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
    """Whether the server rejects this completed platform with this completed backend; CT285 reports ensembles."""
    if backend not in PLATFORMS or platform == "ensemble" or f'"{platform}"' in PLATFORMS[backend]:
        return False
    return (platform, backend) != ("torch_aoti", "pytorch") or not knows_aoti(serving)


def said_name(model: Model) -> str:
    """The name in the server's sentences about a configuration: its `name`, or else the directory's.

    The two should be equal (CT104), which the server checks last.
    """
    return (model.config.name if model.config is not None else "") or model.name


def has_argument(context: CheckContext, beginning: str) -> bool:
    """Whether the container's environment gives the server an argument with this beginning; False without one.

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
