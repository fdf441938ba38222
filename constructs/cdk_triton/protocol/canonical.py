"""A canonical text of JSON, for keys and other hashes."""

from __future__ import annotations

import hashlib
import json

__all__ = ["canonical_json", "sha256_of_json"]


def canonical_json(document: object) -> str:
    """The value as sorted ASCII without spaces."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def sha256_of_json(document: object) -> str:
    """The SHA-256 of the value's canonical text, in hexadecimal."""
    return hashlib.sha256(canonical_json(document).encode("ascii")).hexdigest()
