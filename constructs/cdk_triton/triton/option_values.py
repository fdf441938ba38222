"""The values of tritonserver's options: what its parser takes, by the kinds of `data/server_options.json`.

The server reads numbers with std::stoi and its like, which skip what follows the number, and flags as `true`, `on`, `1`
and their opposites: `src/command_line_parser.cc` of triton-inference-server/server. Backends convert the texts of
parameters in the same way: `ParseBoolValue` and `ParseIntValue` in src/backend_common.cc of
triton-inference-server/backend, 3f57fb90, lines 1045 to 1081.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Final

from cdk_triton._wording import in_words
from cdk_triton.triton.releases import release_order

__all__ = [
    "BOOLEAN",
    "COUNT",
    "INTEGER",
    "MAX_INT32",
    "MAX_INT64",
    "MAX_THREADS",
    "Reader",
    "cut_number",
    "least_shared_memory",
    "value_fault",
]

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1

MAX_THREADS: Final = 1024
"""Threads of a kind. It is a limit of this library: no instance type has more processors, and 100,000 threads end the
server."""

# Kind of a number → its least and its greatest value. std::stoull takes a minus and wraps.
_BOUNDS: Final = {
    "int32": (-(2**31), MAX_INT32),
    "int64": (-(2**63), MAX_INT64),
    "uint64": (-(2**64) + 1, 2**64 - 1),
}
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_REAL = re.compile(
    r"[+-]?(?:inf(?:inity)?|nan|0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)",
    re.ASCII | re.IGNORECASE,
)
_PAIR = re.compile(r"(int32)([:-])(\w+)")
# Settings of `--backend-config` and `--cache-config` that std::stol reads.
_SIZES = {
    ("local", "size"),
    ("python", "shm-default-byte-size"),
    ("python", "shm-growth-byte-size"),
    ("python", "shm_message_queue_size"),
    ("python", "stub-timeout-seconds"),
    ("python", "thread-pool-size"),
}
_FLAGS = ("true", "false", "on", "off", "1", "0")
_RESTRICTED = (  # RESTRICTED_CATEGORY_NAMES in src/restricted_features.h
    "health",
    "metadata",
    "inference",
    "shared-memory",
    "model-config",
    "model-repository",
    "statistics",
    "trace",
    "logging",
)
_TRACE_LEVELS = ("off", "false", "true", "on", "min", "max", "timestamps", "tensors")

Reader = tuple[re.Pattern[str], str, str]
"""The texts that can be converted, the server's words for the others (`{0}` stands for the text), and what to write."""

BOOLEAN: Reader = (
    re.compile(r"true|on|1|false|off|0", re.IGNORECASE),
    "failed to convert '{0}' to boolean",
    "true or false",
)
INTEGER: Reader = (
    re.compile(r"\s*[+-]?\d+.*", re.DOTALL),
    "failed to convert '{0}' to integral number",
    "a whole number",
)
COUNT: Reader = (INTEGER[0], "failed to convert '{0}' to unsigned long long integral number", INTEGER[2])

MIB: Final = 1 << 20
_LESS_SHARED_MEMORY_SINCE = "23.09"


def value_fault(kind: str, value: str, release: str) -> str | None:
    """The values that the server accepts, if it rejects this one; None if it accepts it.

    Args:
        kind: how the server reads the value, as the table has it.
        value: the value.
        release: the release that reads it.
    """
    kind, _, bounds = kind.partition(" from ")
    if kind in _BOUNDS:
        least, _, most = bounds.partition(" to ")
        low, high = _BOUNDS[kind]
        return _whole(value, int(least) if least else low, int(most) if most else high)
    if match := _PAIR.fullmatch(kind):
        return _pair(value, match[2], match[3])
    if kind.startswith(("choice:", "exact:")):
        how, _, names = kind.partition(":")
        allowed = names.split("|")
        given = value.lower() if how == "choice" else value
        return None if given in allowed else in_words(map(repr, allowed))
    reader = _READERS.get(kind)
    return None if reader is None else reader(value, release)


def cut_number(kind: str, value: str) -> tuple[str, str] | None:
    """The number that the server reads in a value, and the text after it that the server skips; None without such text.

    Args:
        kind: how the server reads the value, as the table has it.
        value: a value that the server takes.
    """
    kind = kind.partition(" from ")[0]
    if kind in _BOUNDS or kind == "bool|int32":
        return _cut(_WHOLE, value)
    if kind == "double":
        return _cut(_REAL, value)
    if match := _PAIR.fullmatch(kind):
        left, _, right = value.partition(match[2])
        return _cut(_WHOLE, left) or _cut(_REAL if match[3] == "double" else _WHOLE, right)
    if kind in ("backend-config", "cache-config") and (parts := _parts(value)) is not None and parts[:2] in _SIZES:
        return _cut(_WHOLE, parts[2])
    return None


def _cut(pattern: re.Pattern[str], value: str) -> tuple[str, str] | None:
    match = pattern.match(value)
    rest = value[match.end() :].strip() if match is not None else ""
    return (match.group(), rest) if match is not None and rest else None


def least_shared_memory(release: str | None) -> int:
    """The least `shm-default-byte-size` that the Python backend accepts, in bytes.

    Through 23.08 it is 4 MiB; then 1 MiB, although the backend's message still names 4 MiB: `TRITONBACKEND_Initialize`
    in src/python_be.cc of python_backend at r23.08 and r23.09. None: the least of all releases.
    """
    old = release is not None and release_order(release) < release_order(_LESS_SHARED_MEMORY_SINCE)
    return 4 * MIB if old else MIB


def _whole(value: str, low: int, high: int) -> str | None:
    match = _WHOLE.match(value)
    # No number with more digits is within any bounds, and Python does not read one of thousands.
    if match is not None and len(match.group().lstrip("+-0")) <= 20 and low <= int(match.group()) <= high:
        return None
    return f"a whole number from {low:,} to {high:,}"


def _real(value: str, low: float = -math.inf, high: float = math.inf) -> str | None:
    match = _REAL.match(value)
    if match is not None:
        text = match.group().lower()
        number = float.fromhex(text) if "0x" in text else float(text)
        overflows = math.isinf(number) and "inf" not in text
        underflows = abs(number) < sys.float_info.min and re.search(r"[1-9a-f]", re.split(r"[ep]", text)[0]) is not None
        if not (overflows or underflows) and not (number < low or number > high):
            return None
    return "a number" if low == -math.inf else f"a number from {low:g} to {high:g}"


def _pair(value: str, delimiter: str, second: str) -> str | None:
    left, found, right = value.partition(delimiter)
    if not found or _whole(left, *_BOUNDS["int32"]):
        return f"two numbers with {delimiter!r} between them"
    if second == "double":  # a GPU, and a fraction of its memory
        if left.startswith("-"):
            return "a GPU's number from 0 on, ':' and a fraction, such as '0:0.9'"
        return _real(right, 0, 1) and f"a fraction from 0 to 1 after {delimiter!r}"
    if fault := _whole(right, *_BOUNDS[second]):
        return f"{fault} after {delimiter!r}"
    return None


def _flag(value: str, release: str) -> str | None:
    return None if value.lower() in _FLAGS else "'true' or 'false'"


def _level(value: str, release: str) -> str | None:
    if value.lower() in ("true", "false") or _whole(value, *_BOUNDS["int32"]) is None:
        return None
    return f"'true', 'false' or a level up to {MAX_INT32:,}"


def _word(value: str, release: str) -> str | None:
    return None if value else "a name that is not empty"


def _parts(value: str) -> tuple[str, str, str] | None:
    """Name, setting and value of `<name>,<setting>=<value>`, where the name is optional."""
    name, comma, rest = value.partition(",")
    if not comma:
        name, rest = "", value
    setting, equals, given = rest.partition("=")
    return None if (comma and not name) or not (equals and setting and given) else (name, setting, given)


def _backend_config(value: str, release: str) -> str | None:
    parts = _parts(value)
    if parts is None:
        return "'<backend>,<setting>=<value>' or '<setting>=<value>'"
    name, setting, given = parts
    if name == "tensorflow" and setting == "version":
        return None if given in ("1", "2") else "'tensorflow,version=2'"
    least = {
        "shm-default-byte-size": least_shared_memory(release),
        "shm-growth-byte-size": 1,
        "stub-timeout-seconds": 1,
        "thread-pool-size": 1,
    }.get(setting)
    if name != "python" or least is None:
        return None
    return (fault := _whole(given, least, MAX_INT64)) and f"'python,{setting}=' and {fault}"


def _cache_config(value: str, release: str) -> str | None:
    parts = _parts(value)
    if parts is None or not parts[0]:
        return "'<cache>,<setting>=<value>', such as 'local,size=1048576'"
    if parts[:2] != ("local", "size"):
        return None
    return (fault := _whole(parts[2], 1, MAX_INT64)) and f"'local,size=' and {fault}"


def _metrics_config(value: str, release: str) -> str | None:
    setting, equals, given = value.partition("=")
    return None if setting and equals and given and "," not in setting else "'<setting>=<value>'"


def _rate_limiter_resource(value: str, release: str) -> str | None:
    _, *numbers = value.split(":")
    fits = 1 <= len(numbers) <= 2 and not any(_whole(number, *_BOUNDS["int32"]) for number in numbers)
    return None if fits else "'<resource>:<count>' or '<resource>:<count>:<device>'"


def _host_policy(value: str, release: str) -> str | None:
    parts = _parts(value)
    fits = parts is not None and parts[0] != "" and parts[1] in ("numa-node", "cpu-cores")
    return None if fits else "'<policy>,numa-node=<value>' or '<policy>,cpu-cores=<value>'"


def _trace_level(value: str, release: str) -> str | None:
    return None if value.lower() in _TRACE_LEVELS else "'OFF', 'TIMESTAMPS' or 'TENSORS'"


def _trace_config(value: str, release: str) -> str | None:
    parts = _parts(value)
    if parts is None:
        return "'<mode>,<setting>=<value>' or '<setting>=<value>'"
    mode, setting, given = parts
    if mode.lower() not in ("", "triton", "opentelemetry"):
        return "the mode 'triton' or 'opentelemetry'"
    fault = None
    if (not mode and setting in ("rate", "count")) or (mode.lower(), setting) == ("triton", "log-frequency"):
        fault = _whole(given, *_BOUNDS["int32"])
    elif not mode and setting == "level":
        fault = _trace_level(given, release)
    elif not mode and setting == "mode":
        fault = None if given.lower() in ("triton", "opentelemetry") else "'triton' or 'opentelemetry'"
    return fault and f"'{setting}=' and {fault}"


def _restricted_feature(value: str, release: str) -> str | None:
    features, colon, rest = value.partition(":")
    key, equals, given = rest.partition("=")
    names = features.split(",")
    if not (features and colon and key and equals and given):
        return "'<apis>:<header>=<value>'"
    unknown = [name for name in names if name not in _RESTRICTED]
    return (
        f"one or more of {in_words(_RESTRICTED, 'and')}, each at most once"
        if unknown or len(set(names)) < len(names)
        else None
    )


_READERS: Final[Mapping[str, Callable[[str, str], str | None]]] = {
    "backend-config": _backend_config,
    "bool": _flag,
    "bool|int32": _level,
    "cache-config": _cache_config,
    "double": lambda value, release: _real(value),
    "host-policy": _host_policy,
    "metrics-config": _metrics_config,
    "rate-limiter-resource": _rate_limiter_resource,
    "restricted-feature": _restricted_feature,
    "trace-config": _trace_config,
    "trace-level": _trace_level,
    "word": _word,
}
