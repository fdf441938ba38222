"""The file that the stand-in for DALI writes instead of a serialised pipeline: the definition's source, in JSON."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cdk_triton._dali_signature import PipelineSignature

__all__ = ["SerializedStandIn", "read_stand_in", "write_stand_in"]

_MARK: Final = "cdk-triton stand-in for nvidia.dali: no DALI can read this file, only the local backend"


@dataclass(frozen=True)
class SerializedStandIn:
    """A pipeline definition that stands in for a serialised pipeline.

    Attributes:
        function: the name of the definition.
        source: the Python file that defines it.
        signature: the inputs and outputs of the pipeline (`PipelineSignature` as JSON).
    """

    function: str
    source: str
    signature: Mapping[str, Any]


def write_stand_in(definition: Callable[..., Any], path: Path, signature: PipelineSignature) -> None:
    """Write the file for a function with `@pipeline_def`, whose source file must still exist."""
    written = inspect.unwrap(definition)
    origin = written.__code__.co_filename
    source = Path(origin).read_text(encoding="utf-8")
    # DALI too writes where the code of an operator stands (`_origin_stack_filename`).
    document = {
        "stand_in": _MARK,
        "function": written.__name__,
        "origin": origin,
        "source": source,
        "signature": signature._asdict(),
    }
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_stand_in(path: Path) -> SerializedStandIn | None:
    """The contents of such a file; None for any other one, such as a real serialised pipeline."""
    if path.suffix == ".py":
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    if not isinstance(document, dict) or document.get("stand_in") != _MARK:
        return None
    return SerializedStandIn(document["function"], document["source"], document["signature"])
