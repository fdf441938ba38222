"""What trtexec prints is read as its sources print it; the lines were composed by hand from these.

NVIDIA/TensorRT: samples/common/logging.h and samples/common/sampleInference.cpp at the versions named.
"""

from __future__ import annotations

import pytest

from build_program.engine_speed import speed_in
from build_program.trtexec import (
    Binding,
    bindings_in,
    data_dependent_outputs_in,
    shapes_in,
    version_in,
)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v8401] # trtexec --help", "8.4.1"),
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # /usr/src/tensorrt/bin/trtexec --help", "8.6.1"),
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v100001] # trtexec --help", "10.0.1"),
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v101303] [b9] # trtexec --help", "10.13.3.9"),
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v110100] [b106] # trtexec --help", "11.1.0.106"),
        ("trtexec: error while loading shared libraries: libnvinfer.so.10", None),
    ],
)
def test_the_version_is_in_the_banner(line: str, version: str | None) -> None:
    assert version_in(["something before", line]) == version


def test_bindings_are_told_with_their_types_from_8_6_on() -> None:
    lines = [
        "[11/21/2026-16:00:00] [I] Dumping I/O Bindings to RAW Files:",
        "[11/21/2026-16:00:00] [I] Writing file for input binding ids (with datatype int64 and dimensions 2.128) to "
        "ids.input.2.128.int64.raw",
        "[11/21/2026-16:00:00] [I] Writing file for output binding a/b:0 (with datatype fp16 and dimensions 2.4.8) to "
        "a_b_0.output.2.4.8.fp16.raw",
        "[11/21/2026-16:00:00] [I] Writing file for output binding scalar (with datatype bool and dimensions ) to "
        "scalar.output..bool.raw",
    ]

    assert bindings_in(lines) == [
        Binding("ids", True, (2, 128), "int64", "ids.input.2.128.int64.raw"),
        Binding("a/b:0", False, (2, 4, 8), "fp16", "a_b_0.output.2.4.8.fp16.raw"),
        Binding("scalar", False, (), "bool", "scalar.output..bool.raw"),
    ]


def test_bindings_are_told_without_types_before_8_6() -> None:
    lines = [
        "[11/21/2026-16:00:00] [I] Created input binding for ids with dimensions 2x128",
        "[11/21/2026-16:00:00] [I] Created output binding for y with dimensions 2",
    ]

    assert shapes_in(lines) == [Binding("ids", True, (2, 128)), Binding("y", False, (2,))]


def test_outputs_whose_shape_depends_on_values_are_known() -> None:
    lines = [
        "[I] Output binding for boxes is dynamic and will be created during execution using OutputAllocator.",
        "[I] Output binding for y with dimensions 2x4 is created.",
    ]

    assert data_dependent_outputs_in(lines) == ["boxes"]


def test_the_speed_is_in_the_performance_summary() -> None:
    """A log of TensorRT 10 on a V100, as its user published it."""
    lines = [
        "[04/01/2024-21:10:48] [I] === Performance summary ===",
        "[04/01/2024-21:10:48] [I] Throughput: 9.56737 qps",
        "[04/01/2024-21:10:48] [I] Latency: min = 104.92 ms, max = 106.878 ms, mean = 105.678 ms, median = 105.593 ms, "
        "percentile(90%) = 106.558 ms, percentile(95%) = 106.747 ms, percentile(99%) = 106.878 ms",
        "[04/01/2024-21:10:48] [I] H2D Latency: min = 0.438232 ms, max = 0.87085 ms, mean = 0.527107 ms, median = "
        "0.458984 ms, percentile(90%) = 0.635376 ms, percentile(95%) = 0.685303 ms, percentile(99%) = 0.87085 ms",
    ]
    assert speed_in(lines) == {
        "inferences_per_second": 9.56737,
        "latency_milliseconds": {
            "min": 104.92,
            "max": 106.878,
            "mean": 105.678,
            "median": 105.593,
            "p90": 106.558,
            "p95": 106.747,
            "p99": 106.878,
        },
    }
    assert speed_in(["[I] Average on 10 runs - GPU latency: 2 ms"]) is None
