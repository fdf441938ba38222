"""The common part of documents: writing, reading, versions and the errors of reading.

Each document has a field `schema`, the number of its version. A reader accepts only its own version, and the error for
another one says which of the two is newer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Final, Self, get_args, get_origin, get_type_hints

__all__ = [
    "Document",
    "DocumentError",
    "OtherVersionError",
    "faults_translated",
    "parse_json",
    "parse_object",
    "require_schema",
]

MAX_DEPTH = 50
"""The deepest nesting of values. `json` fails at 1,000 levels when it reads, and sooner when it writes."""

_KINDS: Final[Mapping[type, str]] = {
    dict: "a JSON object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a decimal number",
    bool: "true or false",
    type(None): "null",
}
"""The words of messages for the types of JSON values."""


class DocumentError(Exception):
    """A text is not the document that it should be; the message is a part of the reader's sentence."""


class OtherVersionError(DocumentError):
    """Another version of the library wrote the document.

    Attributes:
        is_newer: whether the document is newer than its reader.
    """

    def __init__(self, found: int, known: int) -> None:
        self.is_newer = found > known
        super().__init__(f"schema {found}, which is {'newer' if self.is_newer else 'older'} than schema {known}")


class Document:
    """A document: a frozen dataclass whose fields are JSON values, tuples or such dataclasses.

    Equal documents have equal texts.
    """

    SCHEMA: ClassVar[int] = 1

    def text(self) -> bytes:
        """The document as JSON."""
        return json.dumps(self._document(), sort_keys=True, indent=1).encode()

    def _document(self) -> dict[str, Any]:
        return {"schema": self.SCHEMA, **asdict(self)}  # type: ignore[call-overload]  # a subclass is a dataclass

    @classmethod
    def parse(cls, text: bytes | str) -> Self:
        """Read what `text` wrote.

        Raises:
            OtherVersionError: another version of the library wrote the document.
            DocumentError: the text is not such a document.
        """
        document = parse_object(text)
        _require_kind(int, _member(document, "schema", "schema"), "schema")
        require_schema(document, cls.SCHEMA)
        found: Self = _read(cls, document, "")
        return found


def _read(kind: Any, value: Any, field: str) -> Any:
    """A value of a type from its JSON; `field` is the path to it, such as `versions[0].live`."""
    if isinstance(kind, type) and is_dataclass(kind):
        return _read_object(kind, value, field)
    container, of = get_origin(kind), get_args(kind)
    if container is UnionType:  # with None, which comes last
        return None if value is None else _read(of[0], value, field)
    _require_kind(list if container is tuple else dict if container is Mapping else kind, value, field)
    if container is tuple:
        return tuple(_read(of[0], each, f"{field}[{number}]") for number, each in enumerate(value))
    if container is Mapping:
        return {name: _read(of[1], each, f"{field}.{name:.100}") for name, each in value.items()}
    return value


def _read_object(kind: Any, value: Any, field: str) -> Any:
    _require_kind(dict, value, field)
    types, values = _types(kind), dict[str, Any]()
    for each in fields(kind):
        name = f"{field}.{each.name}" if field else each.name
        values[each.name] = _read(types[each.name], _member(value, each.name, name), name)
    try:
        return kind(**values)
    except ValueError as error:
        raise DocumentError(f"in the field {field!r}, {error}" if field else str(error)) from error


def _member(document: Mapping[str, Any], name: str, field: str) -> Any:
    if name not in document:
        raise DocumentError(f"the field {field!r} is missing")
    return document[name]


def _require_kind(plain: Any, value: Any, field: str) -> None:
    if plain is not Any and (not isinstance(value, plain) or (plain is int and isinstance(value, bool))):
        raise DocumentError(f"the field {field!r} is {_KINDS[type(value)]}, not {_KINDS[plain]}")


@cache
def _types(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def require_schema(document: Mapping[str, Any], known: int) -> None:
    """Reject a document of another version.

    Raises:
        OtherVersionError: it has another version.
        LookupError, TypeError: it does not have a version.
    """
    found = document["schema"]
    if type(found) is not int:
        raise TypeError(f"schema {found!r:.300}")
    if found != known:
        raise OtherVersionError(found, known)


@contextmanager
def faults_translated() -> Iterator[None]:
    """Translate Python's exceptions for a malformed document into a DocumentError."""
    try:
        yield
    except KeyError as error:
        raise DocumentError(f"the field {error.args[0]!r} is missing") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DocumentError(str(error)) from error


def parse_object(text: bytes | str) -> dict[str, Any]:
    """Parse a JSON object that may have another author.

    Raises:
        DocumentError: the text is not a JSON object.
    """
    try:
        document = parse_json(text)
    except json.JSONDecodeError as error:
        raise DocumentError(f"line {error.lineno}, column {error.colno} is not JSON") from error
    except UnicodeDecodeError as error:
        raise DocumentError("it is not text") from error
    except ValueError as error:
        raise DocumentError(str(error)) from error
    if not isinstance(document, dict):
        raise DocumentError(f"it is {_KINDS[type(document)]}, not {_KINDS[dict]}")
    return document


def parse_json(text: bytes | str) -> Any:
    """Parse JSON that may have another author.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    try:
        document = json.loads(text)
    except RecursionError:
        is_deep = True
    else:
        is_deep = _is_deep(document, MAX_DEPTH)
    if is_deep:
        raise ValueError(f"it has more than {MAX_DEPTH} levels of nesting")
    return document


def _is_deep(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_is_deep(each, levels - 1) for each in inner)
