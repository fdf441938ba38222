"""Writes configurations as text, with a comment beside each value that was guessed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cdk_triton.cli.config.connections import Connected, Place
from cdk_triton.cli.config.values import Face, Guess, Tensor

__all__ = ["Written", "ensemble_config", "is_unchanged", "model_config"]

_HEAD = re.compile(
    r"# The ensemble \S+, by `cdk-triton config`, which writes it again unless you change it \((?P<digest>\w+)\)\.\n"
)
_UNKNOWN_TYPE, _UNKNOWN_DIMS = "FP32", (-1,)


@dataclass(frozen=True)
class Written:
    """A configuration as text, and what in it was guessed."""

    text: str
    guesses: tuple[Guess, ...]


def model_config(face: Face) -> Written:
    """The configuration of one model."""
    face, guesses = _completed(face)
    lines = [
        f"# A first configuration of {face.name}, by `cdk-triton config`. The model's directory has this file and "
        f"{next(iter(face.files))}.",
        f'backend: "{face.backend}"',
        *_noted("max_batch_size", guesses),
        f"max_batch_size: {face.max_batch_size}",
        *_tensors("input", face.inputs, guesses),
        *_tensors("output", face.outputs, guesses),
    ]
    if face.backend == "onnxruntime" and face.max_batch_size:
        lines += [*_noted("dynamic_batching", guesses), "dynamic_batching { }"]
    return Written("\n".join(lines) + "\n", tuple(guesses))


def _completed(face: Face) -> tuple[Face, list[Guess]]:
    """Values that no file contains get a placeholder, and a guess for each."""
    guesses = list(face.guesses)
    if face.max_batch_size is None:
        guesses.append(
            Guess("max_batch_size", "no file shows whether the tensors have a batch dimension; 0 is without")
        )
    sides = {}
    for side, tensors in (("input", face.inputs), ("output", face.outputs)):
        for index, each in enumerate(tensors):
            if each.data_type is None:
                guesses.append(Guess(f"{side}[{index}].data_type", "no file contains the type; write it"))
            noted = any(guess.field == f"{side}[{index}].dims" for guess in guesses)
            if each.dims is None and not noted:
                guesses.append(Guess(f"{side}[{index}].dims", "no file contains the dimensions; write them"))
        sides[side] = tuple(
            replace(
                each,
                data_type=each.data_type or _UNKNOWN_TYPE,
                dims=_UNKNOWN_DIMS if each.dims is None else each.dims,
            )
            for each in tensors
        )
    if face.backend == "onnxruntime" and face.max_batch_size:
        reason = "requests that wait at the same time are computed together; remove the line if they must not be"
        guesses.append(Guess("dynamic_batching", reason))
    size = face.max_batch_size or 0
    return replace(face, max_batch_size=size, inputs=sides["input"], outputs=sides["output"]), guesses


def _noted(field: str, guesses: Iterable[Guess], indent: str = "") -> Iterator[str]:
    yield from (f"{indent}# Guessed: {guess.reason}." for guess in guesses if guess.field == field)


def _tensors(side: str, tensors: Sequence[Tensor], guesses: Sequence[Guess]) -> Iterator[str]:
    yield from _noted(side, guesses)
    yield f"{side} ["
    for index, each in enumerate(tensors):
        place = f"{side}[{index}]"
        yield "  {"
        yield f'    name: "{_escaped(each.name)}"'
        yield from _noted(f"{place}.data_type", guesses, "    ")
        yield f"    data_type: TYPE_{each.data_type}"
        yield from _noted(f"{place}.dims", guesses, "    ")
        yield f"    dims: [ {', '.join(map(str, each.dims or (1,)))} ]"
        if each.dims == ():
            yield "    reshape { shape: [ ] }"
        if each.labels:
            yield from _noted(f"{place}.label_filename", guesses, "    ")
            yield f'    label_filename: "{each.labels}"'
        yield "  }," if index < len(tensors) - 1 else "  }"
    yield "]"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def ensemble_config(name: str, connected: Connected) -> Written:
    """The configuration of the ensemble that connects the models."""
    completed = [_completed(each) for each in connected.faces]
    faces = tuple(face for face, _ in completed)
    names = _Names(replace(connected, faces=faces))
    sizes = [face.max_batch_size or 0 for face in faces]
    batch = min(sizes)
    guesses = list(names.guesses)
    if batch == 0 and any(sizes):
        at = next(face.name for face in faces if not face.max_batch_size)
        guesses.append(Guess("max_batch_size", f"{at!r} has no batch dimension, so the ensemble has none"))
    elif unknown := [each for each in connected.faces if each.max_batch_size is None]:
        guesses.append(_repeated("max_batch_size", unknown[0]))
    made = {face.name: {guess.field for guess in found} for face, found in completed if not face.written}
    for side, tensors in (("input", names.inputs), ("output", names.outputs)):
        for index, (face, tensor, _) in enumerate(tensors):
            own = (face.inputs if side == "input" else face.outputs).index(tensor)
            guesses += [
                _repeated(f"{side}[{index}].{each}", face)
                for each in ("data_type", "dims")
                if f"{side}[{own}].{each}" in made.get(face.name, ())
            ]
    lines = [
        "# In each map, key is the model's name of a tensor, and value is the ensemble's.",
        'platform: "ensemble"',
        *_noted("max_batch_size", guesses),
        f"max_batch_size: {batch}",
        *_tensors("input", [_tensor_of_ensemble(batch, *each) for each in names.inputs], guesses),
        *_tensors("output", [_tensor_of_ensemble(batch, *each) for each in names.outputs], guesses),
        "ensemble_scheduling {",
        "  step [",
    ]
    for index, face in enumerate(faces):
        lines += [*_step(face, index, names, guesses), "    }," if index < len(faces) - 1 else "    }"]
    text = "\n".join([*lines, "  ]", "}"]) + "\n"
    head = f"# The ensemble {name}, by `cdk-triton config`, which writes it again unless you change it"
    return Written(f"{head} ({_digest(text)}).\n{text}", tuple(guesses))


def is_unchanged(text: str) -> bool:
    """Whether the configuration of an ensemble is as `ensemble_config` wrote it."""
    head = _HEAD.match(text)
    return head is not None and head["digest"] == _digest(text[head.end() :])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _repeated(field: str, face: Face) -> Guess:
    reason = f"it repeats the guess in {face.name}/config.pbtxt; correct that one, and write this file again"
    return Guess(field, reason, repeats=face.name)


def _tensor_of_ensemble(batch: int, face: Face, tensor: Tensor, name: str) -> Tensor:
    """If only the model has batches, their dimension is one of the dims."""
    dims = tensor.dims or (1,)
    return Tensor(name, tensor.data_type, dims if batch or not face.max_batch_size else (-1, *dims))


def _step(face: Face, index: int, names: _Names, guesses: Sequence[Guess]) -> Iterator[str]:
    yield "    {"
    yield f'      model_name: "{face.name}"'
    yield "      model_version: -1"
    for kind, tensors in (("input_map", face.inputs), ("output_map", face.outputs)):
        for each in tensors:
            yield from _noted(f'ensemble_scheduling.step[{index}].{kind}["{each.name}"]', guesses, "      ")
            value = names.of[Place(face.name, each.name), kind]
            yield f'      {kind} {{ key: "{_escaped(each.name)}" value: "{_escaped(value)}" }}'


class _Names:
    """The names of the tensors in the ensemble.

    Attributes:
        of: place and map → the name in the ensemble.
        inputs: the inputs of the ensemble: model, tensor and name.
        outputs: the outputs of the ensemble.
        guesses: why inputs read what they read.
    """

    def __init__(self, connected: Connected) -> None:
        self.of: dict[tuple[Place, str], str] = {}
        self.inputs: list[tuple[Face, Tensor, str]] = []
        self.outputs: list[tuple[Face, Tensor, str]] = []
        self.guesses: list[Guess] = []
        self._taken: set[str] = set()
        read = {link.source for link in connected.links.values()}
        for index, face in enumerate(connected.faces):
            for each in face.inputs:
                self._name_input(connected, index, face, each)
        for face in connected.faces:
            for each in face.outputs:
                place = Place(face.name, each.name)
                wanted = f"{face.name}_{each.name}" if place in read else each.name
                name = self.of[place, "output_map"] = self._unique(wanted, face)
                if place not in read:
                    self.outputs.append((face, each, name))
        for place, link in connected.links.items():
            self.of[place, "input_map"] = self.of[link.source, "output_map"]

    def _name_input(self, connected: Connected, index: int, face: Face, tensor: Tensor) -> None:
        place = Place(face.name, tensor.name)
        field = f'ensemble_scheduling.step[{index}].input_map["{tensor.name}"]'
        if (link := connected.links.get(place)) is not None:
            self.guesses += [Guess(field, link.reason)] if link.reason else []
            return
        if (reason := connected.open_reasons.get(place)) is not None:
            self.guesses.append(Guess(field, f"{reason}, so the caller of the ensemble gives this input"))
        for other, same, name in self.inputs:
            alike = (same.name, same.data_type, same.dims) == (tensor.name, tensor.data_type, tensor.dims)
            if alike and bool(other.max_batch_size) == bool(face.max_batch_size):
                self.of[place, "input_map"] = name
                self.guesses.append(Guess(field, f"{other.name!r} and {face.name!r} read the same input of the caller"))
                return
        name = self.of[place, "input_map"] = self._unique(tensor.name, face)
        self.inputs.append((face, tensor, name))

    def _unique(self, wanted: str, face: Face) -> str:
        """With the model's name in front if another tensor has the name."""
        name = wanted if wanted not in self._taken else f"{face.name}_{wanted}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
