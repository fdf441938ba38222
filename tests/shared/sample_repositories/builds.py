"""Stand-ins for recipes: they build what the examples of rules only mention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdk_triton.errors import ModelConfigError
from cdk_triton.tensorrt_models.recipe import Profile, ProfileShapes
from cdk_triton.triton import ModelConfig, parse_model_config
from cdk_triton.triton.repository import Recipe

__all__ = ["BuiltPlans", "PlanOfExample", "backend_of", "is_built", "recipes_of", "without_files"]


_BUILT = re.compile(r"\(built from (?P<onnx>\S+) for (?P<profile>.+)\)")


def recipes_of(files: Mapping[str, str]) -> Sequence[Recipe]:
    """The recipes of an example: `(built from bert/bert.onnx for ids 1x128 to 16x128, mask 1x128 to 16x128)`."""
    recipes: list[Recipe] = [BuiltPlans(files)]
    for name, text in files.items():
        if match := _BUILT.fullmatch(text.strip()):
            shapes = (each.replace(" to ", " ").split() for each in match["profile"].split(", "))
            profile = {tensor: ProfileShapes(_shape(low), _shape(high), _shape(high)) for tensor, low, high in shapes}
            recipes.append(PlanOfExample((name,), match["onnx"], (profile,)))
    return recipes


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split("x"))


def is_built(name: str, text: str) -> bool:
    """Whether a file of an example is built by a recipe: a plan of which the example says nothing, or from what."""
    return name.endswith(".plan") and (text.strip() == "plan" or _BUILT.fullmatch(text.strip()) is not None)


@dataclass(frozen=True)
class PlanOfExample:
    """A recipe that builds a plan."""

    produces: tuple[str, ...]
    network: str
    profiles: tuple[Profile, ...]

    def _shape_profiles(self, config: ModelConfig) -> tuple[Profile, ...]:
        return self.profiles


@dataclass(frozen=True)
class BuiltPlans:
    """Builds the plans of an example's TensorRT models: of a plan that is there, nobody knows where it runs."""

    files: Mapping[str, str]

    @property
    def produces(self) -> tuple[str, ...]:
        built = [name for name, text in self.files.items() if is_built(name, text)]
        models = [name for name, config in without_files(self.files) if backend_of(config) == "tensorrt"]
        return (*built, *(f"{name}/1/model.plan" for name in models))


def backend_of(config: ModelConfig) -> str:
    platforms = {"tensorrt_plan": "tensorrt", "onnxruntime_onnx": "onnxruntime", "pytorch_libtorch": "pytorch"}
    return config.backend or platforms.get(config.platform, config.platform)


def without_files(files: Mapping[str, str]) -> Iterator[tuple[str, ModelConfig]]:
    """The models of an example that have no version: name and configuration."""
    for name, text in files.items():
        model, _, file = name.partition("/")
        if file == "config.pbtxt" and not any(re.match(f"{re.escape(model)}/.+/", o) for o in files):
            try:
                yield model, parse_model_config(text)
            except ModelConfigError:
                yield model, ModelConfig(backend="python")
