"""CT226 to CT229: metrics, parameters and optimization, as far as the server or a backend rejects them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.releases import is_newer_than_schema, is_older
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, core
from cdk_triton.onnx_models.accelerators import Fault, accelerator_faults
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.option_values import BOOLEAN, INTEGER, Reader
from cdk_triton.triton.schema import ModelConfig

_TAG = re.compile(r"(?!_)[A-Za-z0-9_]*")

_STRATEGY = "execution_context_allocation_strategy"
_INTRA_THREADS, _INTER_THREADS = "INTRA_OP_THREAD_COUNT", "INTER_OP_THREAD_COUNT"

# How a value is read, and what is said of one that cannot be, with the value, the parameter and the model in it: the
# backends' own readers.
_EXPECTED = "expected the parameter '{1}' to be "
_COUNT: Reader = (  # nothing is as if the parameter were not there
    re.compile(r"|\d+"),
    _EXPECTED + "a non-negative number",
    "a whole number from 0 on",
)

READERS: Mapping[str, Mapping[str, Reader]] = {
    "onnxruntime": {
        "execution_mode": (
            re.compile(r"\s*[+]?0*[01](?!\d).*", re.DOTALL),
            "Expected values for  execution_mode are 0 or 1 but got {0}",
            "0 or 1",
        ),
        "intra_op_thread_count": INTEGER,
        "inter_op_thread_count": INTEGER,
        "enable_mem_arena": BOOLEAN,
        "enable_mem_pattern": BOOLEAN,
    },
    "pytorch": {
        "DISABLE_OPTIMIZED_EXECUTION": BOOLEAN,
        "ENABLE_CACHE_CLEANING": BOOLEAN,
        "INFERENCE_MODE": BOOLEAN,
        "DISABLE_CUDNN": BOOLEAN,
        "ENABLE_TENSOR_FUSER": BOOLEAN,
        "ENABLE_WEIGHT_SHARING": BOOLEAN,
        "ENABLE_JIT_PROFILING": BOOLEAN,
        "ENABLE_JIT_EXECUTOR": BOOLEAN,
        _INTRA_THREADS: INTEGER,
        _INTER_THREADS: INTEGER,
    },
    "python": {
        "FORCE_CPU_ONLY_INPUT_TENSORS": (
            re.compile("yes|no"),
            "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: {0}",
            "yes or no",
        )
    },
    "openvino": {
        "INFERENCE_NUM_THREADS": _COUNT,
        "COMPILATION_NUM_THREADS": _COUNT,
        "HINT_BF16": (re.compile("|yes", re.IGNORECASE), _EXPECTED + "YES", "YES"),
        "NUM_STREAMS": (
            re.compile(r"|auto|numa|\d+", re.IGNORECASE),
            _EXPECTED + "either AUTO/NUMA/<int_value>",
            "AUTO, NUMA or a whole number from 0 on",
        ),
        "PERFORMANCE_HINT": (
            re.compile("|latency|throughput|cumulative_throughput", re.IGNORECASE),
            _EXPECTED + "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT",
            "LATENCY, THROUGHPUT or CUMULATIVE_THROUGHPUT",
        ),
    },
    "tensorrt": {
        _STRATEGY: (
            re.compile("STATIC|ON_PROFILE_CHANGE"),
            "Invalid value for '{1}': '{0}' for model instance '{2}'. Supported values are 'STATIC' and "
            "'ON_PROFILE_CHANGE'.",
            "STATIC or ON_PROFILE_CHANGE",
        )
    },
}

# Parameter → the first release whose backend reads it: the branches of tensorrt_backend and pytorch_backend.
_SINCE = {_STRATEGY: "25.05", _INTRA_THREADS: "24.05", _INTER_THREADS: "24.05", "DISABLE_CUDNN": "24.06"}


@model_rule(
    "CT226",
    Severity.ERROR,
    "a metric tag crashes the server",
    source=core("src/metric_model_reporter.cc", 366, 396),
)
def metric_tag(each: ConfiguredModel) -> Iterator[Problem]:
    """The server uses each metric tag as a label of the model's metrics, and crashes if the label is invalid.

    The metrics library throws an exception that the server does not catch. The whole server ends when it loads the
    model, even if metrics are switched off. A valid tag contains only the letters A to Z and a to z, digits and
    underscores, and does not begin with an underscore.

    Example:
        # model/config.pbtxt
        backend: "python"
        metric_tags { key: "cost-centre" value: "4711" }

    Instead:
        # model/config.pbtxt
        backend: "python"
        metric_tags { key: "cost_centre" value: "4711" }
    """
    for tag in sorted(each.config.metric_tags):
        if not _TAG.fullmatch(tag):
            yield each.problem(
                f'metric_tags["{tag}"]',
                f"the metric tag {tag!r} is not a valid label name, so the server would crash when it loads "
                f"{each.name!r}: terminate called after throwing an instance of 'std::invalid_argument', what():  "
                "Invalid label name",
                "write only letters, digits and underscores, and do not begin with an underscore",
            )


@model_rule(
    "CT227", Severity.ERROR, "a metric control is incomplete", source=core("src/model_config_utils.cc", 454, 486)
)
def metric_control(each: ConfiguredModel) -> Iterator[Problem]:
    """A `metric_control` lacks the metric family, or the buckets of the histogram.

    The server does not load the model.

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
        Servers before 24.11 do not have the field `model_metrics`. CT103 reports the field if a platform is given.
    """
    for control in each.parts("model_metrics.metric_control", each.config.model_metrics.metric_control):
        given = control.message
        if not given.HasField("metric_identifier"):
            words, field = "metric control must specify 'metric_identifier'", "metric_identifier"
        elif not given.metric_identifier.family:
            words, field = "metric identifier must specify non-empty 'family'", "metric_identifier.family"
        elif not given.HasField("histogram_options"):
            words, field = "metric control must specify 'histogram_options'", "histogram_options"
        elif not given.histogram_options.buckets:
            words, field = "histogram options must specify non-empty 'buckets'", "histogram_options.buckets"
        else:
            continue
        yield control.unloadable(
            field,
            f"metric control {control.index} has no {field.rpartition('.')[2]}",
            words,
            "write the metric family and the bucket boundaries of its histogram",
        )


@model_rule(
    "CT228",
    Severity.ERROR,
    "a parameter has a value that the backend cannot read",
    source=backend("backend", "src/backend_common.cc", 1045, 1083),
)
def unreadable_parameter(each: ConfiguredModel) -> Iterator[Problem]:
    """A backend reads some `parameters` as a number, a boolean or one of a few words, and rejects every other value.

    The server then does not load the model. The PyTorch and ONNX Runtime backends accept the booleans `true`, `on`,
    `1`, `false`, `off` and `0`, in upper or lower case. The Python backend accepts only `yes` and `no`. From 25.05 on,
    the TensorRT backend accepts only `STATIC` and `ON_PROFILE_CHANGE` as `execution_context_allocation_strategy`. A
    backend ignores parameters that it does not know.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "true" } }

    Instead:
        # model/config.pbtxt
        backend: "python"
        parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "yes" } }

    Limits:
        The rule checks only the ONNX Runtime, OpenVINO, PyTorch, Python and TensorRT backends. If no release is given,
        the rule assumes a release whose backend reads the parameter.
    """
    parameters, platform = each.config.parameters, each.context.platform
    if not parameters or is_newer_than_schema(platform):
        return
    readers = READERS.get(known_backend(each.context, each.model), {})
    for name in sorted(set(parameters) & set(readers)):
        value, (accepted, words, values) = parameters[name].string_value, readers[name]
        is_read = platform is None or name not in _SINCE or not is_older(platform, _SINCE[name])
        if is_read and not accepted.fullmatch(value):
            yield each.unloadable(
                f'parameters["{name}"].string_value',
                f"the parameter {name!r} is {value!r}",
                words.format(value, name, each.said_name),
                f"write {values}, or remove the parameter",
            )


@model_rule(
    "CT229",
    Severity.ERROR,
    "an optimization that the backend rejects",
    source=backend("onnxruntime_backend", "src/onnxruntime.cc", 444, 786),
)
def rejected_optimization(each: ConfiguredModel) -> Iterator[Problem]:
    """The ONNX Runtime or TensorRT backend rejects a setting of `optimization`, so the server does not load the model.

    The ONNX Runtime backend has the accelerator `openvino` for CPUs. For GPUs, it has `tensorrt` and, from 24.06 on,
    `cuda`. The backend ignores GPU accelerators if all instance groups are `KIND_CPU`. The accelerator `tensorrt` has
    six options up to 24.03, and 32 options from 24.04 on. The backend rejects every other option. It also rejects a
    value that it cannot convert to the boolean, the number or the precision mode that the option needs.

    If the model batches, the TensorRT backend rejects a CUDA graph if the batch size of the graph, or of its
    `graph_lower_bound`, is not from 1 to `max_batch_size`. The backend also rejects a graph whose lower bound is above
    the batch size of the graph.

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
        The rule does not check values that ONNX Runtime itself reads: string options, such as the shapes of profiles,
        and all options of `cuda`. The rule does not check the shapes of CUDA graphs.
    """
    if not each.config.HasField("optimization") or is_newer_than_schema(each.context.platform):
        return
    name = known_backend(each.context, each.model)
    faults: Iterable[Fault] = ()
    if name == "onnxruntime":
        faults = accelerator_faults(each.config, each.context.platform)
    elif name == "tensorrt":
        faults = _graph_faults(each.config)
    for found, words, fix, field in faults:
        message = f"{found}, and the backend {name!r} would not load {each.name!r}: {words}"
        yield each.problem(f"optimization.{field}", message, fix)


def _graph_faults(config: ModelConfig) -> Iterator[Fault]:
    """The faults of CUDA graphs. Without `max_batch_size`, the batch is the plan's."""
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
