"""The warm-ups that the server runs, for the rules on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import configured
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import ModelConfig

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelWarmup

__all__ = ["WarmUp", "WarmUpInput", "warm_up_inputs", "warm_ups"]


@dataclass(frozen=True)
class WarmUp:
    """One `model_warmup` block that the server runs.

    Attributes:
        model: the model.
        config: its configuration.
        index: the position of the block in `model_warmup`.
        warmup: the block.
    """

    model: Model
    config: ModelConfig
    index: int
    warmup: ModelWarmup

    @property
    def field(self) -> str:
        """The block as a field of the configuration."""
        return f"model_warmup[{self.index}]"

    @property
    def text(self) -> str:
        """The block in words."""
        return f"the warm-up {self.warmup.name!r}"


@dataclass(frozen=True)
class WarmUpInput:
    """One input of a warm-up.

    Attributes:
        warm_up: the warm-up.
        name: the input's name.
        given: what the warm-up contains of it.
    """

    warm_up: WarmUp
    name: str
    given: ModelWarmup.Input

    def field(self, name: str) -> str:
        """A field of the input as a field of the configuration."""
        return f'{self.warm_up.field}.inputs["{self.name}"].{name}'


@per_check
def warm_ups(context: CheckContext) -> Iterator[WarmUp]:
    """The warm-ups that the server runs: it rejects those of an ensemble, and skips those whose batch size is 0."""
    for model, config in configured(context):
        for index, warmup in enumerate(config.model_warmup):
            if warmup.batch_size > 0 and not model.is_ensemble:
                yield WarmUp(model, config, index, warmup)


@per_check
def warm_up_inputs(context: CheckContext) -> Iterator[WarmUpInput]:
    """The inputs of these warm-ups, in the order of their names."""
    for each in warm_ups(context):
        for name, given in sorted(each.warmup.inputs.items()):
            yield WarmUpInput(each, name, given)
