"""A model as the command `config` reads it: its tensors, its files, and what had to be guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Face", "Guess", "Tensor"]


@dataclass(frozen=True)
class Guess:
    """A value that no file contains.

    Attributes:
        field: the field of the configuration that has it, `output[0].dims`.
        reason: why it has this value, and when to change it.
        repeats: the model whose guess it repeats, in an ensemble; else "".
    """

    field: str
    reason: str
    repeats: str = ""


@dataclass(frozen=True)
class Tensor:
    """An input or output of a model.

    Attributes:
        name: the tensor's name.
        data_type: the data type without `TYPE_`; None where no file contains it.
        dims: the dimensions without the batch dimension; () for a scalar, None where no file contains them.
        labels: the name of the file with a line for each of its elements, or "".
    """

    name: str
    data_type: str | None = None
    dims: tuple[int, ...] | None = None
    labels: str = ""


@dataclass(frozen=True)
class Face:
    """A model with its inputs and outputs, as it is needed to connect it.

    Attributes:
        name: the model's name.
        backend: the backend that runs the model.
        max_batch_size: the largest batch; 0 without a batch dimension, None where no file contains it.
        inputs: the model's inputs.
        outputs: the model's outputs.
        files: the model's files: path relative to the model's directory → location of the file.
        written: whether one of the files is the model's configuration.
        guesses: the values that no file contains.
    """

    name: str
    backend: str
    max_batch_size: int | None
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    files: Mapping[str, Path]
    written: bool = False
    guesses: tuple[Guess, ...] = field(default=(), compare=False)
