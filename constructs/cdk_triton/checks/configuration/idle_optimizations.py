"""CT293: whether the backend of a model reads what `optimization` says."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.releases import is_at_least, is_older
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.findings import Severity

# Backend → the fields of `optimization` that it does not read (src of the three backends, r22.07 to r26.06).
_NOT_READ = {
    "onnxruntime": ("cuda",),
    "python": ("cuda", "execution_accelerators"),
    "tensorrt": ("execution_accelerators",),
}
_INSTEAD = {
    ("onnxruntime", "cuda"): "; the accelerator tensorrt has trt_cuda_graph_enable from 24.04 on",
    ("tensorrt", "execution_accelerators"): ", and set what it sets where the plan is built",
}

_SWITCHES_OFF_SINCE = "24.01"  # branches of onnxruntime_backend: src/onnxruntime.cc

# The first release that may have the change of https://github.com/triton-inference-server/tensorrt_backend/pull/125,
# which the branch r26.07 does not have.
_MAY_FIND_GRAPHS_SINCE = "26.08"


@model_rule(
    "CT293",
    Severity.WARNING,
    "a setting of optimization has no effect",
    source=backend("tensorrt_backend", "src/tensorrt_model.cc", 70, 95),
)
def idle_optimization(each: ConfiguredModel) -> Iterator[Problem]:
    """The backend does not read a setting of `optimization`, or never uses the CUDA graphs that the setting asks for.

    Only the TensorRT backend reads `optimization.cuda`. The accelerators in `execution_accelerators` belong to ONNX
    Runtime: a TensorRT plan has its precision and workspace from its build.

    The ONNX Runtime backend knows the levels -1 and 1 of `graph`, and from 24.01 on also 2, which switches its
    optimizations off. It treats every other level as its default, which is all optimizations.

    The TensorRT backend records the graphs of `graph_spec` only with `graphs: true`. For a model without
    `max_batch_size`, it records them under batch size 0, and looks for them under batch size 1. So such a model pays
    for its graphs with time and GPU memory at each start, but up to 26.07 no request uses them.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        optimization { cuda { graphs: true } }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The rule knows what the ONNX Runtime, Python and TensorRT backends read. It reports graphs of a TensorRT model
        without `max_batch_size` only if a `graph_spec` has the batch size 0, because without `graph_spec` the server
        may set `max_batch_size` from the plan.
    """
    if not each.config.HasField("optimization"):
        return
    name = known_backend(each.context, each.model)
    for field in _NOT_READ.get(name, ()):
        if each.config.optimization.HasField(field):
            yield each.problem(
                f"optimization.{field}",
                f"the backend {name!r} does not read this setting, so it has no effect on {each.name!r}",
                f"remove the setting{_INSTEAD.get((name, field), '')}",
            )
    if name == "tensorrt":
        yield from _idle_graphs(each)
    if name == "onnxruntime":
        yield from _unknown_level(each)


def _unknown_level(each: ConfiguredModel) -> Iterator[Problem]:
    level, platform = each.config.optimization.graph.level, each.context.platform
    is_old = platform is not None and is_older(platform, _SWITCHES_OFF_SINCE)
    if level not in ((-1, 0, 1) if is_old else (-1, 0, 1, 2)):
        yield each.problem(
            "optimization.graph.level",
            f"the backend 'onnxruntime' does not know the level {level}, so {each.name!r} would get the default, all "
            "optimizations",
            "write -1 for the basic optimizations, 1 for the extended ones, or 2 for none"
            + f" (from {_SWITCHES_OFF_SINCE} on)" * is_old,
        )


def _idle_graphs(each: ConfiguredModel) -> Iterator[Problem]:
    cuda = each.config.optimization.cuda
    if cuda.graph_spec and not cuda.graphs:
        yield each.problem(
            "optimization.cuda.graph_spec",
            f"the backend records CUDA graphs only with graphs: true, so graph_spec has no effect on {each.name!r}",
            "write graphs: true, or remove graph_spec",
        )
    elif each.config.max_batch_size == 0 and not _may_find_graphs(each.context.platform):
        for index in (index for index, spec in enumerate(cuda.graph_spec) if spec.batch_size == 0):
            yield each.problem(
                f"optimization.cuda.graph_spec[{index}]",
                f"{each.name!r} has no max_batch_size, so the backend records this CUDA graph for batch size 0, but "
                "looks for one of batch size 1, and no request would use the graph",
                "remove the graph, or write max_batch_size and the batch size of the graph if the plan takes batches",
            )


def _may_find_graphs(platform: ServingPlatform | None) -> bool:
    return platform is not None and is_at_least(platform, _MAY_FIND_GRAPHS_SINCE)
