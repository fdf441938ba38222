"""Finds `trtexec` and reads what it prints.

Read in NVIDIA/TensorRT at v8.6.1, v10.0.1, v10.4.0, v10.13.3, v10.16, v11.0 and v11.1: samples/trtexec/trtexec.cpp and
logging.h, sampleInference.cpp and sampleOptions.cpp of samples/common.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Iterable, NamedTuple

__all__ = ["Binding", "bindings_in", "data_dependent_outputs_in", "find_trtexec", "shapes_in", "version_in"]

_PLACES = ("/usr/src/tensorrt/bin/trtexec", "/opt/tensorrt/bin/trtexec")

# `&&&& RUNNING TensorRT.trtexec [TensorRT v101303] [b9] # trtexec …`: logging.h, defineTest. The number is
# major * 10000 + minor * 100 + patch from 10 on and had 1000 instead before (8601); the build is there from 10.x on.
_BANNER = re.compile(r"&&&& RUNNING TensorRT\.trtexec \[TensorRT v(\d+)\](?: \[b(\d+)\])?")

# `Writing file for output binding y (with datatype fp32 and dimensions 2.3) to y.output.2.3.fp32.raw`:
# sampleInference.cpp, dumpRawBindingToFiles. The only place where trtexec prints the type of a tensor.
_WRITTEN = re.compile(
    r"Writing file for (input|output) binding (.+) \(with datatype (\w+) and dimensions ([\d.-]*)\) to (.+)$"
)
# `Output binding for y is dynamic and will be created during execution using OutputAllocator.`: same file.
_DATA_DEPENDENT = re.compile(r"Output binding for (.+) is dynamic and will be created during execution")

# `Created Input binding for x with dimensions 2x3`: all that versions before 8.6 print of a tensor.
_CREATED = re.compile(r"Created (input|output) binding for (.+) with dimensions ([\dx-]*)$", re.IGNORECASE)


class Binding(NamedTuple):
    """An input or output of an engine in one run.

    Attributes:
        name: its name.
        is_input: whether it goes in.
        dims: its dimensions in this run.
        data_type: trtexec's word: fp32, fp16, bf16, int8, int32, int64, bool, uint8, fp8, …; None: it did not print it.
        file: its raw content, in the directory that trtexec ran in; None: it wrote none.
    """

    name: str
    is_input: bool
    dims: tuple[int, ...]
    data_type: str | None = None
    file: str | None = None


def find_trtexec() -> str | None:
    """The path of `trtexec`: on PATH, or at its place in NVIDIA's images (Triton's image has it off PATH)."""
    found = shutil.which("trtexec")
    return found or next((place for place in _PLACES if Path(place).is_file()), None)


def version_in(lines: Iterable[str]) -> str | None:
    """The TensorRT version in trtexec's banner: "10.13.3.9", or without the build where the banner has none."""
    for found in filter(None, map(_BANNER.search, lines)):
        number, build = int(found.group(1)), found.group(2)
        major_unit = 10000 if number >= 100000 else 1000
        parts = [number // major_unit, number % major_unit // 100, number % 100]
        return ".".join(map(str, parts)) + (f".{build}" if build else "")
    return None


def bindings_in(lines: Iterable[str]) -> list[Binding]:
    """The inputs and outputs that a run with `--dumpRawBindingsToFile` wrote."""
    return [
        Binding(
            name=found.group(2),
            is_input=found.group(1) == "input",
            dims=tuple(int(dim) for dim in found.group(4).split(".") if dim),
            data_type=found.group(3),
            file=found.group(5),
        )
        for found in filter(None, map(_WRITTEN.search, lines))
    ]


def shapes_in(lines: Iterable[str]) -> list[Binding]:
    """The inputs and outputs as versions before 8.6 print them: without types and files."""
    return [
        Binding(
            name=found.group(2),
            is_input=found.group(1).lower() == "input",
            dims=tuple(int(dim) for dim in found.group(3).split("x") if dim),
        )
        for found in filter(None, map(_CREATED.search, lines))
    ]


def data_dependent_outputs_in(lines: Iterable[str]) -> list[str]:
    """Outputs whose shape depends on values; trtexec does not write their raw files whole."""
    return [found.group(1) for found in filter(None, map(_DATA_DEPENDENT.search, lines))]
