"""The warm-ups that the server runs, and the files with their texts, for the rules on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.configured import Part, configured
from cdk_triton.checks.registry import Problem, rules_about

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelWarmup

__all__ = [
    "TextElements",
    "WarmUp",
    "WarmUpInput",
    "text_elements",
    "warm_up_input_rule",
    "warm_up_inputs",
    "warm_up_rule",
    "warm_ups",
]

_LENGTH = 4
_MOST = 100_000  # no longer file is counted to its end


@dataclass(frozen=True, slots=True)
class WarmUp(Part["ModelWarmup"]):
    """One `model_warmup` block that the server runs."""

    @property
    def text(self) -> str:
        """The block in words."""
        return f"the warm-up {self.message.name!r}"


@dataclass(frozen=True)
class WarmUpInput:
    """One input of a warm-up.

    Attributes:
        warm_up: the warm-up.
        name: the input's name.
        given: its entry in the warm-up.
    """

    warm_up: WarmUp
    name: str
    given: ModelWarmup.Input

    def field(self, name: str) -> str:
        """A field of the input as a field of the configuration."""
        return self.warm_up.field(f'inputs["{self.name}"].{name}')

    def unloadable(self, field: str, found: str, words: str, fix: str) -> Problem:
        """A problem of a field for which the server does not load the model; `words` are the server's."""
        return self.warm_up.owner.unloadable(self.field(field), found, words, fix)


@per_check
def warm_ups(context: CheckContext) -> Iterator[WarmUp]:
    """The warm-ups that the server runs: it rejects those of an ensemble, and skips those whose batch size is 0."""
    for each in configured(context):
        for index, block in enumerate(each.config.model_warmup):
            if block.batch_size > 0 and not each.model.is_ensemble:
                yield WarmUp(each, "model_warmup", index, block)


warm_up_rule = rules_about(warm_ups)
"""Register a rule about each of these warm-ups; the parameters are those of `rule`."""


@per_check
def warm_up_inputs(context: CheckContext) -> Iterator[WarmUpInput]:
    """The inputs of these warm-ups, in the order of their names."""
    for each in warm_ups(context):
        for name, given in sorted(each.message.inputs.items()):
            yield WarmUpInput(each, name, given)


warm_up_input_rule = rules_about(warm_up_inputs)
"""Register a rule about each of these inputs; the parameters are those of `rule`."""


@dataclass(frozen=True)
class TextElements:
    """How a file divides into texts as Triton stores them: four bytes with the length, and as many bytes of text.

    Attributes:
        count: the elements; the last may be cut off.
        cut_off: the length of the last element and how many bytes of it are there, if it is cut off.
        rest: the number of bytes after them, too few for the length of another element.
        is_complete: whether the file was read to its end.
    """

    count: int
    rest: int
    is_complete: bool
    cut_off: tuple[int, int] | None = None


def text_elements(path: Path) -> TextElements:
    """Count the texts in a file in Triton's format, without loading it as a whole."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            count = position = length = 0
            while size - position >= _LENGTH and count < _MOST:
                length = int.from_bytes(file.read(_LENGTH), "little")
                position += _LENGTH + length
                file.seek(position)
                count += 1
    except OSError:
        return TextElements(0, 0, is_complete=False)
    cut_off = (length, length - (position - size)) if position > size else None
    return TextElements(count, max(0, size - position), size - position < _LENGTH, cut_off)
