"""CT226 to CT229 and CT297: metrics, parameters and optimization, as far as the server or a backend misreads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, model_rule
from cdk_triton.checks.derived.places import place_of_instances
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

_OPTION = 'Failed to parse provider option "{1}"'  # ONNX Runtime's own

READERS: Mapping[str, Mapping[str, Reader]] = {
    "onnxruntime": {
        "execution_mode": (
            re.compile(r"\s*[+]?0*[01](?!\d).*", re.DOTALL),
            "Expected values for  execution_mode are 0 or 1 but got {0}",
            "0 or 1",
        ),
        "intra_op_thread_count": INTEGER,
        "inter_op_thread_count": INTEGER,
        "arena_extend_strategy": (
            re.compile(r"\s*[+]?0*[01](?!\d).*", re.DOTALL),
            "unsupported arena_extend_strategy value '{0}' is requested",
            "0 (kNextPowerOfTwo) or 1 (kSameAsRequested)",
        ),
        "cudnn_conv_algo_search": (
            re.compile(r"\s*[+]?0*[0-2](?!\d).*", re.DOTALL),
            "unsupported cudnn_conv_algo_search value '{0}' is requested",
            "0 (EXHAUSTIVE), 1 (HEURISTIC) or 2 (DEFAULT)",
        ),
        "do_copy_in_default_stream": (re.compile("[Tt]rue|1|[Ff]alse|0"), _OPTION, "1 or 0"),
        "gpu_mem_limit": (re.compile(r"\d+"), _OPTION, "a number of bytes"),
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

# Those that the backend hands to CUDA, so it reads them for instances on a GPU only.
_FOR_GPUS = ("arena_extend_strategy", "cudnn_conv_algo_search", "do_copy_in_default_stream", "gpu_mem_limit")

# Backend → parameter that is on if it has one of these values, and off with any other value: src/openvino.cc, 298 to
# 313; src/model_state.cc of tensorrt_backend, 343 to 430; src/onnxruntime.cc, 305 to 325.
_SWITCHES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "onnxruntime": {"session.use_device_allocator_for_initializers": ("1",)},
    "openvino": dict.fromkeys(("ENABLE_BATCH_PADDING", "RESHAPE_IO_LAYERS", "SKIP_OV_DYNAMIC_BATCHSIZE"), ("yes",)),
    "tensorrt": dict.fromkeys(("enable_multi_device", "multi_device_per_rank_engines"), ("true", "1")),
}
_OFF = ("", "0", "false", "no", "off")
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "dali": ("num_threads",),
    "onnxruntime": ("execution_mode", "intra_op_thread_count", "inter_op_thread_count", *_FOR_GPUS[:2]),
    "pytorch": (_INTRA_THREADS, _INTER_THREADS),
}
_CUT = re.compile(r"\s*(?P<read>[+-]?\d+)[.,_'eE]\d.*", re.DOTALL)

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
    `1`, `false`, `off` and `0`, in upper or lower case. The Python backend accepts only `yes` and `no`. For instances
    on a GPU, ONNX Runtime accepts numbers for `arena_extend_strategy` and `cudnn_conv_algo_search`, not the words that
    the accelerator `cuda` has for them. From 25.05 on, the TensorRT backend accepts only `STATIC` and
    `ON_PROFILE_CHANGE` as `execution_context_allocation_strategy`. A backend ignores parameters that it does not know.

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
        if name in _FOR_GPUS:
            is_read = place_of_instances(each.config, "onnxruntime") != "CPU"
            words = INTEGER[1] if name in _FOR_GPUS[:2] and not INTEGER[0].fullmatch(value) else words
        if is_read and not accepted.fullmatch(value):
            yield each.unloadable(
                f'parameters["{name}"].string_value',
                f"the parameter {name!r} is {value!r}",
                words.format(value, name, each.said_name),
                f"write {values}, or remove the parameter",
            )


@model_rule(
    "CT297",
    Severity.WARNING,
    "a backend reads another value than a parameter has",
    source=backend("openvino_backend", "src/openvino.cc", 298, 313),
)
def misread_parameter(each: ConfiguredModel) -> Iterator[Problem]:
    """A backend treats an unknown text as "off", or reads only the beginning of a number.

    The server loads the model with the other value, and reports no error. The OpenVINO backend switches
    `ENABLE_BATCH_PADDING`, `RESHAPE_IO_LAYERS` and `SKIP_OV_DYNAMIC_BATCHSIZE` on only if they are `yes`, the TensorRT
    backend its two switches only if they are `true` or `1`, and ONNX Runtime
    `session.use_device_allocator_for_initializers` only if it is `1`. Numbers of threads and the like are whole
    numbers: a backend reads `0.5` as 0.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "intra_op_thread_count" value { string_value: "1e2" } }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
        parameters { key: "intra_op_thread_count" value { string_value: "100" } }

    Limits:
        CT813 reports such parameters of FIL. The rule does not check parameters that ONNX Runtime itself reads, apart
        from this switch.
    """
    parameters = each.config.parameters
    name_of = known_backend(each.context, each.model) if parameters else ""
    switches, numbers = _SWITCHES.get(name_of, {}), _NUMBERS.get(name_of, ())
    for name in sorted(parameters):
        value, field = parameters[name].string_value, f'parameters["{name}"].string_value'
        if name in switches and value.lower() not in (*switches[name], *_OFF):
            yield each.problem(
                field,
                f"the parameter {name!r} of {each.name!r} is {value!r}, which the backend {name_of} takes for off",
                f"write {switches[name][0]} to switch it on, or remove the parameter",
            )
        elif name in numbers and (cut := _CUT.fullmatch(value)) and not _is_number(value, float(cut["read"])):
            yield each.problem(
                field,
                f"the parameter {name!r} of {each.name!r} is {value!r}, of which the backend {name_of} reads "
                f"{cut['read']}",
                "write a whole number in digits",
            )


def _is_number(text: str, number: float) -> bool:
    """Whether a text is this number, as `4.0` is 4."""
    try:
        return "_" not in text and float(text) == number
    except ValueError:
        return False


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
