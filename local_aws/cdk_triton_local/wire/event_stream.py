"""The messages of `application/vnd.amazon.eventstream`, in which InvokeEndpointWithResponseStream answers.

A message is a prelude (its size and that of its headers, both as 32 bits in network order, and their CRC32), the
headers, the payload, and the CRC32 of all of it ("Event stream encoding" in the guide of Amazon Transcribe).
`botocore.eventstream` reads them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Final
from zlib import crc32

__all__ = ["CONTENT_TYPE", "exception", "payload_part"]

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"

_STRING: Final = 7
"""The type of a header whose value is a text."""


def payload_part(data: bytes) -> bytes:
    """A `PayloadPart` with some bytes of an answer."""
    headers = {
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
        ":message-type": "event",
    }
    return _message(headers, data)


def exception(kind: str, members: Mapping[str, str]) -> bytes:
    """The exception with which a stream ends, such as ModelStreamError."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return _message(headers, json.dumps(members).encode())


def _message(headers: Mapping[str, str], payload: bytes) -> bytes:
    encoded = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    message = b"".join([prelude, struct.pack("!I", crc32(prelude)), encoded, payload])
    return message + struct.pack("!I", crc32(message))


def _header(name: bytes, value: bytes) -> bytes:
    return struct.pack(f"!B{len(name)}sBH{len(value)}s", len(name), name, _STRING, len(value), value)
