"""The rules CT226 to CT229 and CT297: metrics, parameters and optimizations of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from cdk_triton.triton import Finding, ModelRepository
    from golden_messages import Messages, Place
    from sample_repositories import Write

IMAGE = f"registry.example.com/triton@sha256:{'0' * 64}"
OWN = (*(f"CT{number}" for number in range(220, 230)), "CT297")

CODE = """
class TritonPythonModel:
    def execute(self, requests): ...
"""


def found_in(repository: ModelRepository) -> list[Finding]:
    """What these rules find; a model's file that is missing is the business of others."""
    return [finding for finding in repository.check() if finding.code in OWN]


FINDINGS: Mapping[str, tuple[str, list[Place]]] = {
    "CT226": (
        'backend: "python" metric_tags { key: "team name" value: "x" }',
        [("CT226", "model/config.pbtxt", 'metric_tags["team name"]')],
    ),
    "CT227 identifier": (
        'backend: "python" model_metrics { metric_control { } }',
        [("CT227", "model/config.pbtxt", "model_metrics.metric_control[0].metric_identifier")],
    ),
    "CT227 family": (
        'backend: "python" model_metrics { metric_control { metric_identifier { } } }',
        [("CT227", "model/config.pbtxt", "model_metrics.metric_control[0].metric_identifier.family")],
    ),
    "CT227 histogram": (
        'backend: "python" model_metrics { metric_control { metric_identifier { family: "f" } } }',
        [("CT227", "model/config.pbtxt", "model_metrics.metric_control[0].histogram_options")],
    ),
    "CT227 buckets": (
        'backend: "python" model_metrics { metric_control { metric_identifier { family: "f" } '
        "histogram_options { } } }",
        [("CT227", "model/config.pbtxt", "model_metrics.metric_control[0].histogram_options.buckets")],
    ),
    "CT228 Python": (
        'backend: "python" parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "Yes" } }',
        [("CT228", "model/config.pbtxt", 'parameters["FORCE_CPU_ONLY_INPUT_TENSORS"].string_value')],
    ),
    "CT228 boolean": (
        'backend: "pytorch" input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" '
        'data_type: TYPE_FP32 dims: 4 } parameters { key: "INFERENCE_MODE" value { string_value: '
        '"yes" } }',
        [("CT228", "model/config.pbtxt", 'parameters["INFERENCE_MODE"].string_value')],
    ),
    "CT228 number": (
        'backend: "onnxruntime" parameters { key: "intra_op_thread_count" value { } }',
        [("CT228", "model/config.pbtxt", 'parameters["intra_op_thread_count"].string_value')],
    ),
    "CT228 mode": (
        'backend: "onnxruntime" parameters { key: "execution_mode" value { string_value: "2" } }',
        [("CT228", "model/config.pbtxt", 'parameters["execution_mode"].string_value')],
    ),
    "CT228 OpenVINO": (
        'backend: "openvino" parameters { key: "NUM_STREAMS" value { string_value: "-1" } }',
        [("CT228", "model/config.pbtxt", 'parameters["NUM_STREAMS"].string_value')],
    ),
    "CT228 TensorRT": (
        'backend: "tensorrt" parameters { key: "execution_context_allocation_strategy" value { string_value: '
        '"DYNAMIC" } }',
        [("CT228", "model/config.pbtxt", 'parameters["execution_context_allocation_strategy"].string_value')],
    ),
    "CT229 accelerator on GPUs": (
        'backend: "onnxruntime" optimization { execution_accelerators { gpu_execution_accelerator [ '
        '{ name: "cuda" }, { name: "trt" } ] } }',
        [("CT229", "model/config.pbtxt", "optimization.execution_accelerators.gpu_execution_accelerator[1].name")],
    ),
    "CT229 accelerator on CPUs": (
        'backend: "onnxruntime" optimization { execution_accelerators { cpu_execution_accelerator { name: "cuda" } } }',
        [("CT229", "model/config.pbtxt", "optimization.execution_accelerators.cpu_execution_accelerator[0].name")],
    ),
    "CT229 precision": (
        'backend: "onnxruntime" optimization { execution_accelerators { gpu_execution_accelerator { '
        'name: "tensorrt" parameters { key: "precision_mode" value: "fp16" } } } }',
        [
            (
                "CT229",
                "model/config.pbtxt",
                'optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["precision_mode"]',
            )
        ],
    ),
    "CT228 word of CUDA": (
        'backend: "onnxruntime" parameters { key: "cudnn_conv_algo_search" value { string_value: "HEURISTIC" } }',
        [("CT228", "model/config.pbtxt", 'parameters["cudnn_conv_algo_search"].string_value')],
    ),
    "CT228 choice of CUDA": (
        'backend: "onnxruntime" parameters { key: "arena_extend_strategy" value { string_value: "2" } }',
        [("CT228", "model/config.pbtxt", 'parameters["arena_extend_strategy"].string_value')],
    ),
    "CT228 switch of CUDA": (
        'backend: "onnxruntime" parameters { key: "do_copy_in_default_stream" value { string_value: "yes" } }',
        [("CT228", "model/config.pbtxt", 'parameters["do_copy_in_default_stream"].string_value')],
    ),
    "CT228 bytes of CUDA": (
        'backend: "onnxruntime" parameters { key: "gpu_mem_limit" value { string_value: "2e9" } }',
        [("CT228", "model/config.pbtxt", 'parameters["gpu_mem_limit"].string_value')],
    ),
    **{
        f"CT297 {name} {value}": (
            f'backend: "{backend}" parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}',
            [("CT297", "model/config.pbtxt", f'parameters["{name}"].string_value')],
        )
        for backend, name, value in (
            ("openvino", "ENABLE_BATCH_PADDING", "true"),
            ("openvino", "RESHAPE_IO_LAYERS", "1"),
            ("tensorrt", "enable_multi_device", "yes"),
            ("onnxruntime", "session.use_device_allocator_for_initializers", "true"),
            ("onnxruntime", "intra_op_thread_count", "0.5"),
            ("onnxruntime", "inter_op_thread_count", "1_000"),
            ("onnxruntime", "execution_mode", "0.5"),
            ("pytorch", "INTRA_OP_THREAD_COUNT", "1e2"),
            ("dali", "num_threads", "2,5"),
        )
    },
    "CT229 option": (
        'backend: "onnxruntime" optimization { execution_accelerators { gpu_execution_accelerator { '
        'name: "tensorrt" parameters { key: "trt_engine_cache" value: "true" } } } }',
        [
            (
                "CT229",
                "model/config.pbtxt",
                'optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["trt_engine_cache"]',
            )
        ],
    ),
    "CT229 switch": (
        'backend: "onnxruntime" optimization { execution_accelerators { gpu_execution_accelerator { '
        'name: "tensorrt" parameters { key: "trt_engine_cache_enable" value: "yes" } } } }',
        [
            (
                "CT229",
                "model/config.pbtxt",
                'optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["trt_engine_cache_enable"]',
            )
        ],
    ),
    "CT229 number": (
        'backend: "onnxruntime" optimization { execution_accelerators { gpu_execution_accelerator { '
        'name: "tensorrt" parameters { key: "max_workspace_size_bytes" value: "1073741824" } '
        'parameters { key: "trt_min_subgraph_size" value: "few" } } } }',
        [
            (
                "CT229",
                "model/config.pbtxt",
                'optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["trt_min_subgraph_size"]',
            )
        ],
    ),
    "CT229 graph": (
        'backend: "tensorrt" max_batch_size: 4 optimization { cuda { graphs: true graph_spec { batch_size: 8 } } }',
        [("CT229", "model/config.pbtxt", "optimization.cuda.graph_spec[0].batch_size")],
    ),
    "CT229 bound": (
        'backend: "tensorrt" max_batch_size: 4 optimization { cuda { graphs: true graph_spec { '
        "batch_size: 2 graph_lower_bound { batch_size: 3 } } } }",
        [("CT229", "model/config.pbtxt", "optimization.cuda.graph_spec[0].batch_size")],
    ),
}


@pytest.mark.parametrize(("text", "findings"), FINDINGS.values(), ids=FINDINGS)
def test_options(messages: Messages, write: Write, text: str, findings: list[Place]) -> None:
    repository = write({"model/config.pbtxt": text, "model/1/model.py": CODE}, base={})
    assert messages.of(found_in(repository)) == findings


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
    "numbers for CUDA": """
        backend: "onnxruntime"
        parameters { key: "cudnn_conv_algo_search" value { string_value: "2" } }
        parameters { key: "arena_extend_strategy" value { string_value: "1" } }
        parameters { key: "do_copy_in_default_stream" value { string_value: "True" } }
        parameters { key: "gpu_mem_limit" value { string_value: "2000000000" } }
        parameters { key: "intra_op_thread_count" value { string_value: "4.0" } }
    """,
    "what the CPU does not read": """
        backend: "onnxruntime"
        instance_group { kind: KIND_CPU }
        parameters { key: "cudnn_conv_algo_search" value { string_value: "HEURISTIC" } }
    """,
    "switches": """
        backend: "openvino"
        parameters { key: "ENABLE_BATCH_PADDING" value { string_value: "YES" } }
        parameters { key: "RESHAPE_IO_LAYERS" value { string_value: "no" } }
        parameters { key: "SKIP_OV_DYNAMIC_BATCHSIZE" value { string_value: "false" } }
    """,
    "words": """
        backend: "openvino"
        parameters { key: "NUM_STREAMS" value { string_value: "Auto" } }
        parameters { key: "HINT_BF16" value { string_value: "YES" } }
        parameters { key: "PERFORMANCE_HINT" value { } }
    """,
    "the strategies of TensorRT": """
        backend: "tensorrt"
        parameters { key: "execution_context_allocation_strategy" value { string_value: "ON_PROFILE_CHANGE" } }
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


@pytest.mark.parametrize(
    ("release", "accelerator", "places"),
    [
        pytest.param(
            "24.03", 'name: "tensorrt" parameters { key: "trt_engine_cache_enable" value: "1" }', [], id="old"
        ),
        pytest.param(
            "24.03",
            'name: "tensorrt" parameters { key: "trt_profile_min_shapes" value: "IN:1x4" }',
            ['[0].parameters["trt_profile_min_shapes"]'],
            id="option of 24.04",
        ),
        pytest.param(
            "24.05",
            'name: "tensorrt" parameters { key: "trt_profile_min_shapes" value: "IN:1x4" }',
            [],
            id="from 24.04",
        ),
        pytest.param("24.05", 'name: "cuda"', ["[0].name"], id="accelerator of 24.06"),
        pytest.param("24.07", 'name: "cuda"', [], id="from 24.06"),
    ],
)
def test_accelerators_belong_to_releases(
    messages: Messages, write: Write, release: str, accelerator: str, places: list[str]
) -> None:
    config = f"""
        backend: "onnxruntime" input {{ name: "IN" data_type: TYPE_FP32 dims: 4 }}
        output {{ name: "OUT" data_type: TYPE_FP32 dims: 4 }}
        optimization {{ execution_accelerators {{ gpu_execution_accelerator {{ {accelerator} }} }} }}
    """
    platform = ServingPlatform(release=release, image=IMAGE, instance_type="ml.g5.2xlarge")
    repository = write({"model/config.pbtxt": config}, base={})
    findings = [each for each in repository.check(platform=platform) if each.code in OWN]
    field = "optimization.execution_accelerators.gpu_execution_accelerator"
    assert messages.of(findings) == [("CT229", "model/config.pbtxt", f"{field}{place}") for place in places]


@pytest.mark.parametrize(
    ("release", "value", "is_found"),
    [
        ("25.04", "DYNAMIC", False),  # ignored
        ("25.05", "DYNAMIC", True),
        ("26.05", "static", True),
        ("26.05", "STATIC", False),
        (None, "", True),
    ],
)
def test_the_strategies_of_tensorrt_belong_to_releases(
    messages: Messages, write: Write, release: str | None, value: str, is_found: bool
) -> None:
    key = "execution_context_allocation_strategy"
    config = f'backend: "tensorrt" parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
    platform = ServingPlatform(release=release, image=IMAGE, instance_type="ml.g5.2xlarge")
    repository = write({"model/config.pbtxt": config}, base={})
    findings = [each for each in repository.check(platform=platform) if each.code in OWN]
    place = ("CT228", "model/config.pbtxt", f'parameters["{key}"].string_value')
    assert messages.of(findings) == [place] * is_found
