"""Which format a file has, by its first bytes."""

from __future__ import annotations

import bz2
import lzma
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

from cdk_triton.tree_models.reader.forest import Format

__all__ = ["format_of", "pickle_in", "pickling_library"]

# The opcode PROTO with the protocol, of Python 3's pickles (Lib/pickle.py); a pickle of protocol 0 or 1 has no mark.
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_LZ4 = b"\x04\x22M\x18"  # the standard library does not decompress it
_MOST = 65_536  # bytes that are decompressed

# The modules of the classes that a pickle names.
_LIBRARIES = {
    "scikit-learn": b"sklearn",
    "cuML": b"cuml",
    "XGBoost": b"xgboost",
    "LightGBM": b"lightgbm",
}
_MARKERS = b"iUIlL"  # of UBJSON's lengths: a key of an object begins with one


def format_of(head: bytes) -> Format | None:
    """The format of a file that begins with these bytes; None if they belong to none of the five formats."""
    if head.startswith(b"binf") or _has_legacy_header(head):
        return "xgboost"
    if head[:1] == b"{" and head[1:2] and (head[1] in _MARKERS or head[1:2] in (b"$", b"#")):
        return "xgboost_ubj"
    if head.lstrip()[:1] in (b"{", b"["):
        return "xgboost_json"
    if re.search(rb"^max_feature_idx=\d", head, re.MULTILINE):
        return "lightgbm"
    if _has_checkpoint_header(head):
        return "treelite_checkpoint"
    return None


def pickle_in(head: bytes) -> bytes | None:
    """The beginning of the pickle in a file, decompressed if joblib has compressed it; None if the file has none."""
    found = next((each for each in (head, *_decompressed(head)) if _PICKLE.match(each)), None)
    return b"" if found is None and head.startswith(_LZ4) else found


def _decompressed(head: bytes) -> Iterator[bytes]:
    """The beginning of the content, for each compression of joblib that the bytes may have (joblib/compressor.py)."""
    decompressors: tuple[Callable[[], bytes], ...] = (
        lambda: zlib.decompressobj(wbits=47).decompress(head, _MOST),  # 47: zlib or gzip
        lambda: bz2.BZ2Decompressor().decompress(head, _MOST),
        lambda: lzma.LZMADecompressor().decompress(head, _MOST),
    )
    for decompress in decompressors:
        with suppress(zlib.error, OSError, EOFError, lzma.LZMAError):
            yield decompress()


def pickling_library(pickled: bytes) -> str:
    """The library whose objects a pickle contains, by the first module that it names; "" if unknown.

    A class of XGBoost or LightGBM for scikit-learn names modules of scikit-learn, too, but later.
    """
    places = {name: pickled.find(module) for name, module in _LIBRARIES.items()}
    found = {name: place for name, place in places.items() if place >= 0}
    return min(found, key=lambda name: found[name], default="")


def _has_legacy_header(head: bytes) -> bool:
    """Whether the parameters of XGBoost's learner are followed by the names of an objective and of a booster."""
    if len(head) < 144:
        return False
    (length,) = struct.unpack_from("<Q", head, 136)
    end = 144 + length
    if not 0 < length < 64 or len(head) < end + 8 or re.fullmatch(rb"[a-z]+:[a-z0-9_]+", head[144:end]) is None:
        return False
    (length,) = struct.unpack_from("<Q", head, end)
    return head[end + 8 : end + 8 + length] in (b"gbtree", b"dart", b"gblinear")


def _has_checkpoint_header(head: bytes) -> bool:
    """Whether a version of Treelite is followed by the types of thresholds and leaves."""
    if len(head) < 14:
        return False
    major, minor, patch, threshold, leaf = struct.unpack_from("<3i2B", head)
    return 0 <= major <= 9 and 0 <= minor < 100 and 0 <= patch < 100 and threshold in (2, 3) and leaf in (1, 2, 3)
