"""Keeps text of requests out of messages and logs, where a model's own messages may repeat it."""

from __future__ import annotations

import builtins
import json
import re
from pathlib import Path
from typing import Iterable, Iterator

from .tensors import AnswerError, read_tensors

__all__ = ["printed_without_text", "said_without_text"]

_PIECE = 4
"""A message that has as many characters of a text in a row is left out."""

_SHORTEST_TEXT = 3
_HEADER = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \w+\.\w+:\d+\]")
"""How the server begins a line: level and date, time, process, source file and line."""

_EXCEPTION = re.compile(r"[A-Z][A-Za-z]+")
_PLACE = re.compile(r" \((?P<file>[^()]+), line \d+\)$")


def printed_without_text(line: str) -> str:
    """A line of the server without words of its own: where the server wrote it, and the exceptions of Python.

    Returns:
        Such as `E1130 04:15:00.123456 7 model.cc:12] ValueError`; empty where nothing is left.
    """
    header = _HEADER.match(line)
    return " ".join([*([header[0]] if header else []), *_exceptions(line)])


def said_without_text(message: str, body: bytes, content_type: str, repository: Path) -> str:
    """A message of a model, or what it tells without words if they may repeat the request.

    Args:
        message: the message; see `load_failures.failed_request`.
        body: the body of the request.
        content_type: its content type.
        repository: the directory of the models, whose files the end of the message may name.
    """
    place = _PLACE.search(message)
    if place is not None and not (repository / place["file"]).is_file():
        place = None
    said = message[: place.start()] if place else message
    if not _repeats(said, _texts(body, content_type)):
        return message
    names = _exceptions(said.partition(":")[0])
    return f"{names[0] if names else 'an error'}{place[0] if place else ''}, whose message may repeat the request"


def _exceptions(line: str) -> list[str]:
    """The names of Python's own exceptions in a line. Any other name could be text of a request."""
    kinds = ((name, getattr(builtins, name, None)) for name in _EXCEPTION.findall(line))
    return [name for name, kind in kinds if isinstance(kind, type) and issubclass(kind, BaseException)]


def _repeats(message: str, texts: Iterable[bytes]) -> bool:
    plain = _plain(message)
    pieces = {plain[start : start + _PIECE] for start in range(len(plain) - _PIECE + 1)}
    for text in texts:
        for form in _forms(text):
            if len(form) < _PIECE:
                if len(form) >= _SHORTEST_TEXT and form in plain:
                    return True
            elif any(piece in form for piece in pieces):
                return True
    return False


def _forms(text: bytes) -> Iterator[str]:
    """A text as it is, and as messages escape it."""
    words = text.decode("utf-8", "replace")
    return map(_plain, (words, repr(text)[2:-1], ascii(words)[1:-1], json.dumps(words)[1:-1]))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _texts(body: bytes, content_type: str) -> Iterator[bytes]:
    """The texts among the inputs of a request; the whole body if it is not one."""
    try:
        inputs = read_tensors(body, content_type, "inputs").values()
    except AnswerError:
        yield body
        return
    for tensor in inputs:
        if tensor.datatype == "BYTES":
            yield from map(bytes, tensor.values)
