"""The file `labels.txt` beside a network: the names of its classes, a line each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cdk_triton.cli.config.values import Guess, Tensor

__all__ = ["Labels", "with_labels"]

_NAME = "labels.txt"


@dataclass(frozen=True)
class Labels:
    """The file with the names, if there is one, and how many it has."""

    file: Path | None = None
    count: int = 0

    def placed(self, outputs: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], dict[str, Path]]:
        """The outputs, with the file added to each that has as many elements as the file has lines; and the file."""
        if self.file is None:
            return tuple(outputs), {}
        found = tuple(replace(each, labels=_NAME) if self._fits(each) else each for each in outputs)
        return found, {_NAME: self.file} if found != tuple(outputs) else {}

    def guesses(self, outputs: Sequence[Tensor]) -> list[Guess]:
        """Why an output has the labels, or why none has."""
        if self.file is None:
            return []
        named = [index for index, each in enumerate(outputs) if each.labels]
        if not named:
            reason = f"{self.file} has {self.count} lines and no output has {self.count} elements, so no output gets it"
            return [Guess("output", reason)]
        reason = f"the output has {self.count} elements, as {self.file} has lines"
        return [Guess(f"output[{index}].label_filename", reason) for index in named]

    def _fits(self, output: Tensor) -> bool:
        return bool(output.dims) and math.prod(output.dims or ()) == self.count


def with_labels(network: Path, directory: Path | None) -> Labels:
    """The labels beside a network, or in the model's directory."""
    for place in (network.parent, directory):
        file = None if place is None else place / _NAME
        if file is not None and file.is_file():
            return Labels(file, sum(bool(line.strip()) for line in file.read_bytes().splitlines()))
    return Labels()
