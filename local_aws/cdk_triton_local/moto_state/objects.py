"""Keeps moto from copying the contents of S3's objects, so that they take a byte of memory for each stored byte.

Each page of moto 5.2.5's ListObjectVersions copies all objects of all pages with their contents. moto has a list of
every object that it ever made, so the copies stay. After a publication of 2,000 ensembles whose objects were listed, it
had 13 bytes for each byte that was uploaded.
"""

from __future__ import annotations

import io
import threading
from typing import Any

from cdk_triton_local.moto_state.patching import replace_method

__all__ = ["correct_objects"]


def correct_objects() -> None:
    """Make moto copy objects without copying their content.

    Raises:
        LocalError: moto does not have a method that is replaced.
    """
    from moto.s3.models import FakeKey

    replace_method(FakeKey, "__getstate__", lambda original: _state)
    replace_method(FakeKey, "__setstate__", lambda original: _set_state)


def _state(key: Any) -> dict[str, Any]:
    """An object for `copy.deepcopy`, which only ListObjectVersions calls: all but its content and its parts."""
    known = {} if key.disposed else {"_etag": key.etag.strip('"')}  # which moto computes from the content
    left_out = ("_value_buffer", "lock")
    return {name: value for name, value in vars(key).items() if name not in left_out} | known | {"multipart": None}


def _set_state(key: Any, state: dict[str, Any]) -> None:
    vars(key).update(state, _value_buffer=io.BytesIO(), lock=threading.Lock())
