"""Finds the line of a finding in its file: that of the rule, or that of the field in a `config.pbtxt`.

The text need not be a valid configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from cdk_triton.triton.findings import Finding
from cdk_triton.triton.model import Model
from cdk_triton.triton.model_config import fault_of
from cdk_triton.triton.repository import ModelRepository
from cdk_triton.triton.text_format_dialect import as_python_reads_it
from cdk_triton.triton.text_format_reader import Reader, TextFormatError, Value, decoded, line_and_column, tokens

__all__ = ["Location", "Locations", "locate"]

# One step of a field's path: `step[1]`, `dims`, `input_map["TEXT"]`, `parameters[EXECUTION_ENV_PATH]`.
_STEP = re.compile(r"""\.?(?P<name>[A-Za-z_]\w*)(?:\[(?:(?P<index>\d+)|(?P<quote>["']?)(?P<key>.*?)(?P=quote))\])?""")
_KEYS = ("key", "name", "model_name")  # what tells the entries of a map, the tensors and the steps apart


class Location(NamedTuple):
    """A place in a text; line and column are counted from 1, in characters."""

    line: int
    column: int
    length: int = 1


class Locations:
    """Finds the places of findings in a repository, and reads each file once."""

    def __init__(self, repository: ModelRepository) -> None:
        self._sources = {str(file.path): file.source for file in repository.files}
        self._models: Mapping[str, Model] = {str(model.config_path): model for model in repository.models}
        self._read: dict[str, _Text] = {}
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
            text = model.config_text
            with suppress(TextFormatError):
                text = as_python_reads_it(text)
            self._read[finding.path] = _Text(text)
        return self._read[finding.path].location(finding.field)

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
        The place of the field or, if the text lacks it, of the block that would contain it; None for the whole file.
    """
    return _Text(text).location(path)


class _Text:
    def __init__(self, text: str) -> None:
        reader = Reader()
        self._text = text
        self._file = reader.open[0]
        for token in tokens(text):
            reader.take(token)

    def location(self, path: str) -> Location | None:
        block, found = self._file, None
        for step in _STEP.finditer(path):
            if step["name"] not in block.fields and "value" in block.fields:  # an entry of a map: what is in its value
                block = (block.fields["value"].values or [block])[-1]
            field = block.fields.get(step["name"])
            if field is None:
                break
            found, values = field.names[0], field.values
            if wanted := step["key"] or step["index"]:
                values = _chosen(values, wanted, step["index"])
                found = values[0].place if values else found
            if not values:
                break
            block = values[0]
        return None if found is None else Location(*line_and_column(self._text, found.start), len(found.text))


def _chosen(values: list[Value], wanted: str, index: str | None) -> list[Value]:
    """The value with the index, otherwise the one with the key or name `wanted`."""
    if index is not None and int(index) < len(values):
        return [values[int(index)]]
    for value in values:
        keys = [each.token for name in _KEYS if name in value.fields for each in value.fields[name].values]
        if wanted in [key.text[1:-1] if key.kind == "string" else key.text for key in keys]:
            return [value]
    return []
