"""Connects the models of an ensemble: finds the output that each input reads, by name, type and shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cdk_triton._wording import in_words
from cdk_triton.cli.config.values import Face, Tensor

__all__ = ["Connected", "Link", "Place", "connected"]


class Place(NamedTuple):
    """An input or output: its model and its name."""

    model: str
    tensor: str


@dataclass(frozen=True)
class Link:
    """An output that an input reads.

    Attributes:
        source: the output.
        reason: why this output was chosen although its name differs; "" if the names are equal.
    """

    source: Place
    reason: str = ""


@dataclass(frozen=True)
class Connected:
    """The models and their connections.

    Attributes:
        faces: the models; what a file does not contain about a tensor is taken from the tensor that it is connected to.
        links: input → the output that it reads; the caller gives the others.
        open_reasons: input → why it is not connected, although an output might be intended for it.
    """

    faces: tuple[Face, ...]
    links: Mapping[Place, Link]
    open_reasons: Mapping[Place, str]


def connected(faces: Sequence[Face]) -> Connected:
    """Connect the models. A request passes them in this order, unless the names of tensors give another."""
    search = _Search(tuple(faces))
    search.by_name(lambda name: name, "")
    search.by_name(lambda name: re.sub(r"[\W_]", "", name).lower(), "their names are alike")
    search.by_shape()
    search.by_shape_of_unlinked()
    return Connected(search.faces, search.links, search.open_reasons)


class _Search:
    def __init__(self, faces: tuple[Face, ...]) -> None:
        self.faces = faces
        self.links: dict[Place, Link] = {}
        self.open_reasons: dict[Place, str] = {}

    def by_name(self, spelled: Callable[[str], str], reason: str) -> None:
        """Connect tensors of the same name; the nearest model before the reader comes first, then those after it."""
        for index, face, given in self._unread():
            others = [*reversed(self.faces[:index]), *self.faces[index + 1 :]]
            for other in others:
                output = next((each for each in other.outputs if spelled(each.name) == spelled(given.name)), None)
                if output is None or self._reaches(face.name, other.name):
                    continue
                if not _fits(other, output, face, given):
                    self.open_reasons.setdefault(
                        Place(face.name, given.name),
                        f"{output.name!r} of {other.name!r} is {_text(output)}, but {given.name!r} is {_text(given)}",
                    )
                    continue
                why = f"{output.name!r} of {other.name!r} and {given.name!r} fit, and {reason}" if reason else ""
                self._link(Place(face.name, given.name), Link(Place(other.name, output.name), why))
                break

    def by_shape(self) -> None:
        """Connect an input with the one unread output of an earlier model that has its type and shape."""
        for index, face, given in self._unread():
            used = {link.source for link in self.links.values()}
            found = [
                Place(other.name, output.name)
                for other in self.faces[:index]
                for output in other.outputs
                if Place(other.name, output.name) not in used and _fits(other, output, face, given)
            ]
            place = Place(face.name, given.name)
            if len(found) == 1:
                reason = f"{found[0].tensor!r} of {found[0].model!r} is the one output that fits {given.name!r}"
                self._link(place, Link(found[0], reason))
            elif found:
                names = in_words((f"{each.tensor!r} of {each.model!r}" for each in found), "and")
                self.open_reasons[place] = f"several outputs fit the input {given.name!r} ({names})"

    def by_shape_of_unlinked(self) -> None:
        """Connect a model that has no link to the one input of an earlier model that fits: the order was another."""
        for index, face, given in self._unread():
            linked = {model for place, link in self.links.items() for model in (place.model, link.source.model)}
            found = [
                Place(other.name, output.name)
                for other in self.faces[index + 1 :]
                for output in other.outputs
                if other.name not in linked and _fits(other, output, face, given)
            ]
            if len(found) == 1:
                reason = f"{found[0].tensor!r} of {found[0].model!r} is the one unread output that fits {given.name!r}"
                self._link(Place(face.name, given.name), Link(found[0], reason))

    def _unread(self) -> Iterator[tuple[int, Face, Tensor]]:
        """The inputs that have no link when the iteration comes to them."""
        for index in range(len(self.faces)):
            for number in range(len(self.faces[index].inputs)):
                face = self.faces[index]
                given = face.inputs[number]
                if Place(face.name, given.name) not in self.links:
                    yield index, face, given

    def _reaches(self, start: str, end: str) -> bool:
        """A link from `end` back to `start` would then make a cycle."""
        readers = {place.model for place, link in self.links.items() if link.source.model == start}
        return start == end or any(self._reaches(each, end) for each in readers)

    def _link(self, place: Place, link: Link) -> None:
        self.links[place] = link
        self.open_reasons.pop(place, None)
        face, other = self._face(place.model), self._face(link.source.model)
        given = next(each for each in face.inputs if each.name == place.tensor)
        output = next(each for each in other.outputs if each.name == link.source.tensor)
        size = face.max_batch_size if face.max_batch_size is not None else other.max_batch_size
        known = Tensor(
            given.name, given.data_type or output.data_type, given.dims if given.dims is not None else output.dims
        )
        self._replace(replace(face, max_batch_size=size, inputs=_with(face.inputs, known)))
        size = other.max_batch_size if other.max_batch_size is not None else size
        known = replace(
            output,
            data_type=output.data_type or known.data_type,
            dims=output.dims if output.dims is not None else known.dims,
        )
        self._replace(replace(other, max_batch_size=size, outputs=_with(other.outputs, known)))

    def _face(self, name: str) -> Face:
        return next(each for each in self.faces if each.name == name)

    def _replace(self, face: Face) -> None:
        self.faces = tuple(face if each.name == face.name else each for each in self.faces)


def _with(tensors: tuple[Tensor, ...], known: Tensor) -> tuple[Tensor, ...]:
    return tuple(known if each.name == known.name else each for each in tensors)


def _fits(writer: Face, output: Tensor, reader: Face, given: Tensor) -> bool:
    """Whether the server accepts the connection. An unknown type or unknown dimensions fit everything."""
    if output.data_type and given.data_type and output.data_type != given.data_type:
        return False
    if output.dims is None or given.dims is None:
        return True
    pairs = [(writer.max_batch_size, reader.max_batch_size)]
    if None in pairs[0] or bool(pairs[0][0]) == bool(pairs[0][1]):
        return _same(output.dims or (1,), given.dims or (1,))
    one, other = (
        ((-1,) if face.max_batch_size else ()) + (each.dims or (1,))
        for face, each in ((writer, output), (reader, given))
    )
    return _same(one, other)


def _same(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(a == b or -1 in (a, b) for a, b in zip(one, other, strict=True))


def _text(tensor: Tensor) -> str:
    dims = "any shape" if tensor.dims is None else f"[{', '.join(map(str, tensor.dims))}]"
    return f"{tensor.data_type or 'of any type'} {dims}"
