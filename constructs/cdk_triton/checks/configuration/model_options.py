"""CT226 to CT229: metrics, parameters and optimization, as far as the server or a backend refuses them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import configured
from cdk_triton.checks.derived.releases import is_newer_than_schema
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend, core
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig, ModelInstanceGroup

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelOptimizationPolicy

    Accelerator = ModelOptimizationPolicy.ExecutionAccelerators.Accelerator

_TAG = re.compile(r"(?!_)[A-Za-z0-9_]*")

# How a value is read, and what is said of one that cannot be: backend_common.cc and the backends' own readers.
_BOOLEAN = (re.compile(r"true|on|1|false|off|0", re.IGNORECASE), "failed to convert '{0}' to boolean")
_INTEGER = (re.compile(r"\s*[+-]?\d+.*", re.DOTALL), "failed to convert '{0}' to integral number")
_COUNT = re.compile(r"|\d+")  # nothing is as if the parameter were not there
_EXPECTED = "expected the parameter '{1}' to be "

_READERS: Mapping[str, Mapping[str, tuple[re.Pattern[str], str]]] = {
    "onnxruntime": {
        "execution_mode": (
            re.compile(r"\s*[+]?0*[01](?!\d).*", re.DOTALL),
            "Expected values for  execution_mode are 0 or 1 but got {0}",
        ),
        "intra_op_thread_count": _INTEGER,
        "inter_op_thread_count": _INTEGER,
        "enable_mem_arena": _BOOLEAN,
        "enable_mem_pattern": _BOOLEAN,
    },
    "pytorch": {
        "DISABLE_OPTIMIZED_EXECUTION": _BOOLEAN,
        "ENABLE_CACHE_CLEANING": _BOOLEAN,
        "INFERENCE_MODE": _BOOLEAN,
        "DISABLE_CUDNN": _BOOLEAN,
        "ENABLE_TENSOR_FUSER": _BOOLEAN,
        "ENABLE_WEIGHT_SHARING": _BOOLEAN,
        "ENABLE_JIT_PROFILING": _BOOLEAN,
        "ENABLE_JIT_EXECUTOR": _BOOLEAN,
    },
    "python": {
        "FORCE_CPU_ONLY_INPUT_TENSORS": (re.compile("yes|no"), "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: {0}")
    },
    "openvino": {
        "INFERENCE_NUM_THREADS": (_COUNT, _EXPECTED + "a non-negative number"),
        "COMPILATION_NUM_THREADS": (_COUNT, _EXPECTED + "a non-negative number"),
        "HINT_BF16": (re.compile("|yes", re.IGNORECASE), _EXPECTED + "YES"),
        "NUM_STREAMS": (re.compile(r"|auto|numa|\d+", re.IGNORECASE), _EXPECTED + "either AUTO/NUMA/<int_value>"),
        "PERFORMANCE_HINT": (
            re.compile("|latency|throughput|cumulative_throughput", re.IGNORECASE),
            _EXPECTED + "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT",
        ),
    },
}

_PRECISIONS = ("FP32", "FP16", "BF16", "INT8")


@rule(
    "CT226",
    Severity.ERROR,
    "a metric tag ends the server",
    source=core("src/metric_model_reporter.cc", 366, 396),
)
def metric_tag(context: CheckContext) -> Iterator[Problem]:
    """A tag becomes a label of the model's metrics, and the library for metrics throws at one that it cannot take.

    Nobody catches that, so that the whole server ends, even where metrics are switched off. A tag has letters of
    English, digits and underscores, and does not begin with an underscore.

    Example:
        # model/config.pbtxt
        backend: "python"
        metric_tags { key: "cost-centre" value: "4711" }

    Instead:
        # model/config.pbtxt
        backend: "python"
        metric_tags { key: "cost_centre" value: "4711" }
    """
    for model, config in configured(context):
        for tag in sorted(config.metric_tags):
            if not _TAG.fullmatch(tag):
                yield Problem(
                    model.config_path,
                    f"the metric tag {tag!r} is no name of a label, and the server would end when it loads "
                    f"{model.name!r}: terminate called after throwing an instance of 'std::invalid_argument', what():  "
                    "Invalid label name",
                    "write letters, digits and underscores only, and no underscore at the beginning",
                    f'metric_tags["{tag}"]',
                )


@rule(
    "CT227", Severity.ERROR, "the control of a metric is incomplete", source=core("src/model_config_utils.cc", 454, 486)
)
def metric_control(context: CheckContext) -> Iterator[Problem]:
    """Each `metric_control` names a family of metrics and the buckets of its histogram.

    Example:
        # model/config.pbtxt
        backend: "python"
        model_metrics { metric_control { metric_identifier { family: "nv_inference_first_response_histogram_ms" } } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        model_metrics {
          metric_control {
            metric_identifier { family: "nv_inference_first_response_histogram_ms" }
            histogram_options { buckets: [ 10, 100, 1000 ] }
          }
        }

    Limits:
        A server before 24.11 does not know the field at all.
    """
    for model, config in configured(context):
        for index, control in enumerate(config.model_metrics.metric_control):
            if not control.HasField("metric_identifier"):
                words, field = "metric control must specify 'metric_identifier'", "metric_identifier"
            elif not control.metric_identifier.family:
                words, field = "metric identifier must specify non-empty 'family'", "metric_identifier.family"
            elif not control.HasField("histogram_options"):
                words, field = "metric control must specify 'histogram_options'", "histogram_options"
            elif not control.histogram_options.buckets:
                words, field = "histogram options must specify non-empty 'buckets'", "histogram_options.buckets"
            else:
                continue
            yield Problem(
                model.config_path,
                f"metric control {index} has no {field.rpartition('.')[2]}, and the server would not load "
                f"{model.name!r}: {words}",
                "write the family of metrics and the boundaries of its histogram's buckets",
                f"model_metrics.metric_control[{index}].{field}",
            )


@rule(
    "CT228",
    Severity.ERROR,
    "a parameter has a value that the backend cannot read",
    source=backend("backend", "src/backend_common.cc", 1045, 1083),
)
def unreadable_parameter(context: CheckContext) -> Iterator[Problem]:
    """A backend reads some `parameters` as a number, a boolean or one of a few words, and refuses everything else.

    Booleans are `true`, `on`, `1`, `false`, `off` and `0` for PyTorch and ONNX Runtime, `yes` and `no` for Python.
    Parameters that a backend does not know are ignored.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "true" } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "yes" } }

    Limits:
        Looked at are ONNX Runtime, OpenVINO, PyTorch and Python.
    """
    for model, config in configured(context):
        if not config.parameters or is_newer_than_schema(context.platform):
            continue
        readers = _READERS.get(known_backend(context, model), {})
        for name in sorted(set(config.parameters) & set(readers)):
            value, (accepted, words) = config.parameters[name].string_value, readers[name]
            if not accepted.fullmatch(value):
                yield Problem(
                    model.config_path,
                    f"the parameter {name!r} is {value!r}, and the server would not load {model.name!r}: "
                    f"{words.format(value, name)}",
                    "write a value that the backend reads, or leave the parameter out",
                    f'parameters["{name}"].string_value',
                )


@rule(
    "CT229",
    Severity.ERROR,
    "an optimization that the backend refuses",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 444, 786),
)
def refused_optimization(context: CheckContext) -> Iterator[Problem]:
    """ONNX Runtime refuses accelerators that it does not know, TensorRT CUDA graphs that fit no batch.

    ONNX Runtime's accelerators are `tensorrt` and `cuda` on GPUs, and `openvino` on CPUs; on CPUs, those for GPUs are
    not looked at. The CUDA graphs of a TensorRT plan are for batches from 1 to `max_batch_size`, and a lower bound is
    not above the graph that it belongs to.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        optimization { execution_accelerators { gpu_execution_accelerator { name: "TensorRT" } } }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }

    Limits:
        Not looked at: values of an accelerator's parameters other than `precision_mode`, and shapes of CUDA graphs.
    """
    for model, config in configured(context):
        if not config.HasField("optimization") or is_newer_than_schema(context.platform):
            continue
        name = known_backend(context, model)
        faults = {"onnxruntime": _accelerator_faults, "tensorrt": _graph_faults}.get(name)
        for found, words, fix, field in () if faults is None else faults(config):
            yield Problem(
                model.config_path,
                f"{found}, and the backend {name!r} would not load {model.name!r}: {words}",
                fix,
                f"optimization.{field}",
            )


def _accelerator_faults(config: ModelConfig) -> Iterator[tuple[str, str, str, str]]:
    """What was found, what the backend says, what to do, and where."""
    accelerators = config.optimization.execution_accelerators
    groups = [group.kind for group in config.instance_group]
    on_cpu = bool(groups) and all(kind == ModelInstanceGroup.KIND_CPU for kind in groups)
    kinds: list[tuple[str, Sequence[Accelerator], tuple[str, ...]]] = [
        ("cpu_execution_accelerator", accelerators.cpu_execution_accelerator, ("openvino",))
    ]
    if not on_cpu:
        kinds += [("gpu_execution_accelerator", accelerators.gpu_execution_accelerator, ("tensorrt", "cuda"))]
    for kind, listed, known in kinds:
        for index, accelerator in enumerate(listed):
            field = f"execution_accelerators.{kind}[{index}]"
            precision = accelerator.parameters.get("precision_mode", "FP32")
            if accelerator.name not in known:
                words = f"unknown Execution Accelerator '{accelerator.name}' is requested"
                fix = f"write {' or '.join(map(repr, known))}, or leave the accelerator out"
                yield f"the accelerator is called {accelerator.name!r}", words, fix, f"{field}.name"
            elif accelerator.name == "tensorrt" and precision not in _PRECISIONS:
                words = f"unsupported precision mode '{precision}' is requested"
                fix = f"write one of {', '.join(_PRECISIONS)}"
                yield f"the precision mode is {precision!r}", words, fix, f'{field}.parameters["precision_mode"]'


def _graph_faults(config: ModelConfig) -> Iterator[tuple[str, str, str, str]]:
    """The same of CUDA graphs; without `max_batch_size` the plan tells what the batch is."""
    most = config.max_batch_size
    for index, spec in enumerate(config.optimization.cuda.graph_spec if config.optimization.cuda.graphs else ()):
        bounded = spec.HasField("graph_lower_bound")
        least = spec.graph_lower_bound.batch_size if bounded else spec.batch_size
        found = f"CUDA graph {index} is for batches from {least} to {spec.batch_size}, max_batch_size is {most}"
        field = f"cuda.graph_spec[{index}].batch_size"
        if most > 0 and not (1 <= spec.batch_size <= most and 1 <= least <= most):
            words = f"graph spec expects 'batch_size' to be >= 1 and <= {most}"
            yield found, words, f"write sizes from 1 to {most}", field
        elif most > 0 and least > spec.batch_size:
            words = "graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'"
            yield found, words, "write a lower bound that is not above the graph's own batch_size", field
