"""The place of a finding in its file: the line that the rule gives, or that of the field in a `config.pbtxt`.

The text is read a second time, for positions only. Protobuf's own tokenizer splits it. A text that is not a
configuration gives places up to the point where it still makes sense. Nothing here judges the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from google.protobuf import text_format

from cdk_triton.triton.findings import Finding
from cdk_triton.triton.model import Model
from cdk_triton.triton.model_config import fault_of
from cdk_triton.triton.repository import ModelRepository
from cdk_triton.triton.text_format_dialect import as_python_reads_it, decoded

__all__ = ["Location", "Locations", "locate"]

_NAME = re.compile(r"[A-Za-z_]\w*")
# One step of a field's path: `step[1]`, `dims`, `input_map["TEXT"]`, `parameters[EXECUTION_ENV_PATH]`.
_STEP = re.compile(r"""\.?(?P<name>[A-Za-z_]\w*)(?:\[(?:(?P<index>\d+)|(?P<quote>["']?)(?P<key>.*?)(?P=quote))\])?""")
_KEYS = ("key", "name", "model_name")  # what tells the entries of a map, the tensors and the steps apart
_MAX_DEPTH = 100  # protobuf's own limit


class Location(NamedTuple):
    """A place in a text; line and column are counted from 1, in characters."""

    line: int
    column: int
    length: int = 1


@dataclass
class _Field:
    """A field as often as it is written: `places` of its name, and one entry per value."""

    places: list[Location] = field(default_factory=list)
    entries: list[_Entry] = field(default_factory=list)


@dataclass
class _Entry:
    """A value: text, or a block with fields."""

    place: Location
    text: str = ""
    fields: dict[str, _Field] = field(default_factory=dict)


class Locations:
    """Finds the places of findings in a repository, and reads each file once."""

    def __init__(self, repository: ModelRepository) -> None:
        self._sources = {str(file.path): file.source for file in repository.files}
        self._models: Mapping[str, Model] = {str(model.config_path): model for model in repository.models}
        self._read: dict[str, _Entry] = {}
        self._lines: dict[str, list[str]] = {}

    def of(self, finding: Finding) -> Location | None:
        """The place of a finding in its file, or None if it is about the file as a whole."""
        if finding.line is not None:
            text = self.line(finding.path, Location(finding.line, 1))
            code = text.strip()
            return Location(finding.line, text.index(code) + 1, max(1, len(code)))
        model = self._models.get(finding.path)
        if model is None or model.config_text is None:
            return None
        error = model.config_error
        if error is not None and error.line is not None and finding.message.startswith(fault_of(error)):
            place = Location(error.line, error.column or 1)
            word = re.match(r"\w*", self.line(finding.path, place)[place.column - 1 :])
            return place._replace(length=max(1, len(word.group() if word else "")))
        if finding.path not in self._read:
            self._read[finding.path] = _read(as_python_reads_it(model.config_text))
        return _find(self._read[finding.path], finding.field)

    def line(self, path: str, location: Location) -> str:
        """The text of the line."""
        if path not in self._lines:
            self._lines[path] = decoded(self._sources[path].read_bytes()).split("\n") if path in self._sources else []
        lines = self._lines[path]
        return lines[location.line - 1] if location.line <= len(lines) else ""


def locate(text: str, path: str) -> Location | None:
    """The place of a field in the text of a configuration.

    Args:
        text: the configuration in protobuf's text format; it may be wrong.
        path: the field, such as `ensemble_scheduling.step[1].input_map["TEXT"]`.

    Returns:
        The place of the field. If it is not written, that of the block that would contain it; None for the whole file.
    """
    return _find(_read(text), path)


def _find(root: _Entry, path: str) -> Location | None:
    entry, found = root, None
    for step in _STEP.finditer(path):
        written = entry.fields.get(step["name"])
        if written is None and "value" in entry.fields:  # an entry of a map: what is in its value
            entry = entry.fields["value"].entries[-1] if entry.fields["value"].entries else entry
            written = entry.fields.get(step["name"])
        if written is None:
            break
        found = written.places[0]
        if step["index"] is not None or step["key"]:
            chosen = _chosen(written.entries, step["index"], step["key"])
            if chosen is None:
                break
            entry, found = chosen, chosen.place
        elif written.entries:
            entry = written.entries[0]
        else:
            break
    return found


def _chosen(entries: list[_Entry], index: str | None, key: str | None) -> _Entry | None:
    if index is not None and int(index) < len(entries):
        return entries[int(index)]
    wanted = key or index
    for entry in entries:
        names = [each.text for name in _KEYS if name in entry.fields for each in entry.fields[name].entries]
        if wanted in names:
            return entry
    return None


def _read(text: str) -> _Entry:
    """The fields of a text, as deep and as far as it makes sense."""
    root = _Entry(Location(1, 1))
    reader = _Reader(text)
    reader.block(root, 0)
    return root


class _Reader:
    """Reads a text block by block; what it does not understand it passes over."""

    def __init__(self, text: str) -> None:
        self._tokenizer = text_format.Tokenizer(text.split("\n"))

    @property
    def _word(self) -> str:
        """The next word, or "" at the end."""
        return self._tokenizer.token

    def block(self, into: _Entry, depth: int) -> None:
        """Read fields up to the end of a block; the file itself ends at its end."""
        while self._word and (depth == 0 or self._word not in "}>"):
            name, place = self._take()
            if _NAME.fullmatch(name):
                written = into.fields.setdefault(name, _Field())
                written.places.append(place)
                self._skip(":")
                self._values(written, place, depth)

    def _values(self, written: _Field, place: Location, depth: int) -> None:
        if self._word == "[":
            self._take()
            while self._word and self._word not in "]}>":
                self._value(written, None, depth)
                self._skip(",")
            self._skip("]")
        elif self._word and self._word not in "}>":
            self._value(written, place, depth)

    def _value(self, written: _Field, place: Location | None, depth: int) -> None:
        """Read one value: it is where its field's name is, or where it begins itself in a list."""
        word, here = self._take()
        entry = _Entry(place or here)
        written.entries.append(entry)
        if word not in ("{", "<"):
            entry.text = word[1:-1] if word[0] in "\"'" else word
        elif depth < _MAX_DEPTH:
            self.block(entry, depth + 1)
            self._skip("}>")

    def _skip(self, words: str) -> None:
        if self._word and self._word in words:
            self._tokenizer.NextToken()

    def _take(self) -> tuple[str, Location]:
        word = self._word
        here = self._tokenizer.ParseError("")  # type: ignore[arg-type]  # the stub is wrong: it takes text
        self._tokenizer.NextToken()
        return word, Location(here.GetLine() or 1, here.GetColumn() or 1, len(word))
