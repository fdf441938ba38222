"""What each version of ONNX Runtime reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["OnnxSupport", "onnx_support"]


@dataclass(frozen=True)
class OnnxSupport:
    """The newest that a version of ONNX Runtime reads; it refuses anything newer.

    Attributes:
        opsets: domain of operators → version; ONNX's own domain is "".
        ir_version: the version of the file format.
    """

    opsets: Mapping[str, int]
    ir_version: int


# Minor version → opset of ONNX, opset of ai.onnx.ml, version of the format. Measured on 2026-11-21: the wheel of each
# minor version that a Triton release has was given files with ever newer numbers. Of versions before 1.15 (Triton
# 23.05 and older) nothing was measured, and nothing is said.
_READS = {
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
    """What a version of ONNX Runtime reads, `1.19.2`; None for one that is not in the table."""
    row = _READS.get(".".join(version.split(".")[:2]))
    return None if row is None else OnnxSupport({"": row[0], "ai.onnx.ml": row[1]}, row[2])
