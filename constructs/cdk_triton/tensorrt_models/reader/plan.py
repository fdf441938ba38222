"""The first bytes of a file that should be a TensorRT plan. The format is not public, so little is certain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cdk_triton.onnx_models.reader.file import onnx_file
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["PlanFile", "tensorrt_plan"]

# What NVIDIA's own code takes for the beginning of a serialised engine: pytorch/TensorRT, py/torch_tensorrt, where an
# engine is restored ("startswith(b'ftrt')"). Engines of TensorRT before 8.6 may begin otherwise.
_PLAN = b"ftrt"

_OTHERS = (
    (b"PK\x03\x04", "is a ZIP archive, as PyTorch writes it"),
    (b"\x1f\x8b", "is compressed with gzip"),
    (b"\x89HDF", "is an HDF5 file"),
    (b"<?xml", "is XML text"),
    (b"version https://git-lfs", "is a pointer of Git LFS"),
)


@dataclass(frozen=True)
class PlanFile:
    """A file that may be a plan.

    Attributes:
        begins_like_plan: whether it begins as plans of TensorRT 8.6 and newer do.
    """

    begins_like_plan: bool


def tensorrt_plan(path: Path) -> PlanFile | Unreadable:
    """Look at the beginning of a file."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror}")
    if head.startswith(_PLAN):
        return PlanFile(begins_like_plan=True)
    if not head:
        return Unreadable("is empty")
    for beginning, what in _OTHERS:
        if head.startswith(beginning):
            return Unreadable(what)
    if _is_ultralytics(head):
        return Unreadable("begins with the metadata that Ultralytics' export writes before the plan")
    if head[0] == 0x08 and not isinstance(onnx_file(path), Unreadable):  # ONNX begins with the version of its format
        return Unreadable("is an ONNX file")
    return PlanFile(begins_like_plan=False)


def _is_ultralytics(head: bytes) -> bool:
    """Four bytes of length, and a description in JSON."""
    length = int.from_bytes(head[:4], "little")
    return head[4:5] == b"{" and 0 < length < 1_000_000 and b'"' in head[5:64]
