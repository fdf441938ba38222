"""The newest formats that a version of ONNX Runtime reads, and the operators that it brings beside those of ONNX.

`data/onnxruntime_operators.json` has the operators. `tools/generate/onnxruntime_operators.py` writes it from wheels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

__all__ = [
    "OWN_OPSETS",
    "OnnxSupport",
    "has_operator",
    "known_operators",
    "newest_version",
    "onnx_support",
    "operator_since",
]


@dataclass(frozen=True)
class OnnxSupport:
    """The newest versions that a version of ONNX Runtime reads; it rejects anything newer.

    Attributes:
        opsets: domain of operators → version; ONNX's own domain is "".
        ir_version: the version of the file format.
    """

    opsets: Mapping[str, int]
    ir_version: int


OWN_OPSETS: Final = dict.fromkeys(
    ("com.microsoft", "com.microsoft.experimental", "com.microsoft.nchwc", "ai.onnx.training", "org.pytorch.aten"), 1
)
"""Domains that ONNX Runtime has in version 1 only, as its newest version was measured."""

# Minor version → opset of ONNX, opset of ai.onnx.ml, version of the format. Measured on 2026-11-21, and the versions
# before 1.15 on 2026-11-29: the wheel of each minor version that a Triton release has was given files with ever newer
# numbers.
_READS = {
    "1.12": (17, 3, 8),
    "1.13": (17, 3, 8),
    "1.14": (18, 3, 8),
    "1.15": (18, 3, 9),
    "1.16": (19, 3, 9),
    "1.17": (20, 4, 9),
    "1.18": (21, 5, 10),
    "1.19": (21, 5, 10),
    "1.20": (21, 5, 10),
    "1.21": (22, 5, 10),
    "1.22": (22, 5, 10),
    "1.23": (23, 5, 11),
    "1.24": (25, 5, 13),
    "1.27": (26, 5, 13),
    "1.28": (26, 5, 13),
}


def onnx_support(version: str) -> OnnxSupport | None:
    """The limits of a version of ONNX Runtime, such as `1.19.2`; None for a version that is not in the table."""
    row = _READS.get(".".join(version.split(".")[:2]))
    return None if row is None else OnnxSupport({"": row[0], "ai.onnx.ml": row[1], **OWN_OPSETS}, row[2])


def known_operators(domain: str) -> tuple[str, ...]:
    """The operators of all versions in a domain of ONNX Runtime's own; none for another domain."""
    return tuple(_table()["domains"].get(domain, ()))


def operator_since(domain: str, name: str) -> str | None:
    """The first version of the table whose ONNX Runtime has an operator, `1.17`; None where no version has it."""
    since: str | None = _table()["domains"].get(domain, {}).get(name)
    return since


def has_operator(domain: str, name: str, version: str | None) -> bool:
    """Whether a version of ONNX Runtime may have an operator in a domain of its own.

    Operators that need NCCL count as present, because nothing shows how ONNX Runtime was built.

    Args:
        domain: such as `com.microsoft`.
        name: the operator.
        version: such as `1.19.2`; None for any version. A version that is older than the table counts as any.
    """
    since = operator_since(domain, name)
    if since is None:
        return domain == "com.microsoft" and name in _table()["built_with_nccl"]
    oldest: str = _table()["versions"][0]
    return version is None or _order(version) < _order(oldest) or _order(since) <= _order(version)


def newest_version() -> str:
    """The newest version of ONNX Runtime in the table of operators."""
    newest: str = _table()["versions"][-1]
    return newest


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


@cache
def _table() -> dict[str, Any]:
    text = files(__package__).joinpath("data", "onnxruntime_operators.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
