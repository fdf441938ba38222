"""The rules CT226 to CT229: metrics, parameters and optimizations of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import ModelRepository
    from sample_repositories import Write

OWN = tuple(f"CT{number}" for number in range(220, 230))

CODE = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


def found_in(repository: ModelRepository) -> list[str]:
    """What these rules find; a model's file that is missing is the business of others."""
    return [str(finding) for finding in repository.check() if finding.code in OWN]


FINDINGS: Mapping[str, tuple[str, list[str]]] = {
    "CT226": (
        'backend: "python" metric_tags { key: "team name" value: "x" }',
        [
            "model/config.pbtxt metric_tags[\"team name\"]: error CT226: the metric tag 'team name' is no "
            "name of a label, and the server would end when it loads 'model': terminate called after "
            "throwing an instance of 'std::invalid_argument', what():  Invalid label name; write "
            "letters, digits and underscores only, and no underscore at the beginning",
        ],
    ),
    "CT227 identifier": (
        'backend: "python" model_metrics { metric_control { } }',
        [
            "model/config.pbtxt model_metrics.metric_control[0].metric_identifier: error CT227: metric "
            "control 0 has no metric_identifier, and the server would not load 'model': metric control "
            "must specify 'metric_identifier'; write the family of metrics and the boundaries of its "
            "histogram's buckets",
        ],
    ),
    "CT227 family": (
        'backend: "python" model_metrics { metric_control { metric_identifier { } } }',
        [
            "model/config.pbtxt model_metrics.metric_control[0].metric_identifier.family: error CT227: "
            "metric control 0 has no family, and the server would not load 'model': metric identifier "
            "must specify non-empty 'family'; write the family of metrics and the boundaries of its "
            "histogram's buckets",
        ],
    ),
    "CT227 histogram": (
        'backend: "python" model_metrics { metric_control { metric_identifier { family: "f" } } }',
        [
            "model/config.pbtxt model_metrics.metric_control[0].histogram_options: error CT227: metric "
            "control 0 has no histogram_options, and the server would not load 'model': metric control "
            "must specify 'histogram_options'; write the family of metrics and the boundaries of its "
            "histogram's buckets",
        ],
    ),
    "CT227 buckets": (
        'backend: "python" model_metrics { metric_control { metric_identifier { family: "f" } '
        "histogram_options { } } }",
        [
            "model/config.pbtxt model_metrics.metric_control[0].histogram_options.buckets: error CT227: "
            "metric control 0 has no buckets, and the server would not load 'model': histogram options "
            "must specify non-empty 'buckets'; write the family of metrics and the boundaries of its "
            "histogram's buckets",
        ],
    ),
    "CT228 Python": (
        'backend: "python" parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "Yes" } }',
        [
            'model/config.pbtxt parameters["FORCE_CPU_ONLY_INPUT_TENSORS"].string_value: error CT228: '
            "the parameter 'FORCE_CPU_ONLY_INPUT_TENSORS' is 'Yes', and the server would not load "
            "'model': Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: Yes; write a value that the "
            "backend reads, or leave the parameter out",
        ],
    ),
    "CT228 boolean": (
        'backend: "pytorch" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } parameters { key: "INFERENCE_MODE" value { string_value: '
        '"yes" } }',
        [
            'model/config.pbtxt parameters["INFERENCE_MODE"].string_value: error CT228: the parameter '
            "'INFERENCE_MODE' is 'yes', and the server would not load 'model': failed to convert 'yes' "
            "to boolean; write a value that the backend reads, or leave the parameter out",
        ],
    ),
    "CT228 number": (
        'backend: "onnxruntime" parameters { key: "intra_op_thread_count" value { } }',
        [
            'model/config.pbtxt parameters["intra_op_thread_count"].string_value: error CT228: the '
            "parameter 'intra_op_thread_count' is '', and the server would not load 'model': failed to "
            "convert '' to integral number; write a value that the backend reads, or leave the parameter "
            "out",
        ],
    ),
    "CT228 mode": (
        'backend: "onnxruntime" parameters { key: "execution_mode" value { string_value: "2" } }',
        [
            'model/config.pbtxt parameters["execution_mode"].string_value: error CT228: the parameter '
            "'execution_mode' is '2', and the server would not load 'model': Expected values for  "
            "execution_mode are 0 or 1 but got 2; write a value that the backend reads, or leave the "
            "parameter out",
        ],
    ),
    "CT228 OpenVINO": (
        'backend: "openvino" parameters { key: "NUM_STREAMS" value { string_value: "-1" } }',
        [
            'model/config.pbtxt parameters["NUM_STREAMS"].string_value: error CT228: the parameter '
            "'NUM_STREAMS' is '-1', and the server would not load 'model': expected the parameter "
            "'NUM_STREAMS' to be either AUTO/NUMA/<int_value>; write a value that the backend reads, or "
            "leave the parameter out",
        ],
    ),
    "CT229 accelerator on GPUs": (
        'backend: "onnxruntime" optimization { execution_accelerators { gpu_execution_accelerator [ '
        '{ name: "cuda" }, { name: "trt" } ] } }',
        [
            "model/config.pbtxt optimization.execution_accelerators.gpu_execution_accelerator[1].name: "
            "error CT229: the accelerator is called 'trt', and the backend 'onnxruntime' would not load "
            "'model': unknown Execution Accelerator 'trt' is requested; write 'tensorrt' or 'cuda', or "
            "leave the accelerator out",
        ],
    ),
    "CT229 accelerator on CPUs": (
        'backend: "onnxruntime" optimization { execution_accelerators { cpu_execution_accelerator { name: "cuda" } } }',
        [
            "model/config.pbtxt optimization.execution_accelerators.cpu_execution_accelerator[0].name: "
            "error CT229: the accelerator is called 'cuda', and the backend 'onnxruntime' would not load "
            "'model': unknown Execution Accelerator 'cuda' is requested; write 'openvino', or leave the "
            "accelerator out",
        ],
    ),
    "CT229 precision": (
        'backend: "onnxruntime" optimization { execution_accelerators { gpu_execution_accelerator { '
        'name: "tensorrt" parameters { key: "precision_mode" value: "fp16" } } } }',
        [
            "model/config.pbtxt "
            'optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["precision_mode"]: '
            "error CT229: the precision mode is 'fp16', and the backend 'onnxruntime' would not load "
            "'model': unsupported precision mode 'fp16' is requested; write one of FP32, FP16, BF16, INT8",
        ],
    ),
    "CT229 graph": (
        'backend: "tensorrt" max_batch_size: 4 optimization { cuda { graphs: true graph_spec { batch_size: 8 } } }',
        [
            "model/config.pbtxt optimization.cuda.graph_spec[0].batch_size: error CT229: CUDA graph 0 is "
            "for batches from 8 to 8, max_batch_size is 4, and the backend 'tensorrt' would not load "
            "'model': graph spec expects 'batch_size' to be >= 1 and <= 4; write sizes from 1 to 4",
        ],
    ),
    "CT229 bound": (
        'backend: "tensorrt" max_batch_size: 4 optimization { cuda { graphs: true graph_spec { '
        "batch_size: 2 graph_lower_bound { batch_size: 3 } } } }",
        [
            "model/config.pbtxt optimization.cuda.graph_spec[0].batch_size: error CT229: CUDA graph 0 is "
            "for batches from 3 to 2, max_batch_size is 4, and the backend 'tensorrt' would not load "
            "'model': graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'; "
            "write a lower bound that is not above the graph's own batch_size",
        ],
    ),
}


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_options(write: Write, text: str, findings: list[str]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert found_in(repository) == findings


SOUND: Mapping[str, str] = {
    "tags": 'backend: "python" metric_tags { key: "a_1" value: "?" } metric_tags { key: "" value: "" }',
    "metrics": """
        backend: "python"
        model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { buckets: 1 } } }
    """,
    "booleans": """
        backend: "pytorch"
        parameters { key: "INFERENCE_MODE" value { string_value: "TRUE" } }
        parameters { key: "ENABLE_CACHE_CLEANING" value { string_value: "off" } }
        parameters { key: "OTHER" value { string_value: "maybe" } }
    """,
    "numbers": """
        backend: "onnxruntime"
        parameters { key: "execution_mode" value { string_value: "1" } }
        parameters { key: "intra_op_thread_count" value { string_value: " 4 threads" } }
    """,
    "words": """
        backend: "openvino"
        parameters { key: "NUM_STREAMS" value { string_value: "Auto" } }
        parameters { key: "HINT_BF16" value { string_value: "YES" } }
        parameters { key: "PERFORMANCE_HINT" value { } }
    """,
    "accelerators": """
        backend: "onnxruntime"
        optimization {
          execution_accelerators {
            gpu_execution_accelerator {
              name: "tensorrt" parameters { key: "precision_mode" value: "FP16" }
            }
            cpu_execution_accelerator { name: "openvino" }
          }
        }
    """,
    "an accelerator for GPUs that nobody looks at": """
        backend: "onnxruntime"
        instance_group { kind: KIND_CPU }
        optimization { execution_accelerators { gpu_execution_accelerator { name: "trt" } } }
    """,
    "CUDA graphs": """
        backend: "tensorrt"
        max_batch_size: 4
        optimization {
          cuda {
            graphs: true
            graph_spec [ { batch_size: 4 graph_lower_bound { batch_size: 1 } }, { batch_size: 1 } ]
          }
        }
    """,
    "CUDA graphs that are switched off": """
        backend: "tensorrt"
        max_batch_size: 4
        optimization { cuda { graph_spec { batch_size: 8 } } }
    """,
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_what_is_right_is_no_fault(write: Write, text: str) -> None:
    assert found_in(write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})) == []
