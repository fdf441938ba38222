"""The accelerators, and their options, that the ONNX Runtime backend rejects.

The names and options stand in src/onnxruntime.cc of the backend: in the branches r21.09 to r24.03 the six options of
`_FIRST_OPTIONS`, from r24.04 to r26.06 all of `_OPTIONS`. `cuda` is there from r24.06 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cdk_triton._wording import did_you_mean
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.option_values import BOOLEAN, COUNT, INTEGER, Reader
from cdk_triton.triton.schema import ModelConfig, ModelInstanceGroup

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelOptimizationPolicy

    Accelerator = ModelOptimizationPolicy.ExecutionAccelerators.Accelerator

__all__ = ["Fault", "accelerator_faults"]

Fault = tuple[str, str, str, str]
"""A fault: its description, the backend's words, the fix, and the field below `optimization`."""

_PRECISIONS = ("FP32", "FP16", "BF16", "INT8")
_TEXT: Reader = (re.compile(".*", re.DOTALL), "", "")
_PRECISION: Reader = (
    re.compile("|".join(_PRECISIONS)),
    "unsupported precision mode '{0}' is requested",
    f"one of {', '.join(_PRECISIONS)}",
)

_FIRST_OPTIONS = {
    "precision_mode": _PRECISION,
    "max_workspace_size_bytes": COUNT,
    "int8_calibration_table_name": _TEXT,
    "int8_use_native_calibration_table": BOOLEAN,
    "trt_engine_cache_enable": BOOLEAN,
    "trt_engine_cache_path": _TEXT,
}
_OPTIONS = {
    **_FIRST_OPTIONS,
    **dict.fromkeys(
        (
            "trt_build_heuristics_enable",
            "trt_context_memory_sharing_enable",
            "trt_cuda_graph_enable",
            "trt_detailed_build_log",
            "trt_dla_enable",
            "trt_dump_ep_context_model",
            "trt_dump_subgraphs",
            "trt_force_sequential_engine_build",
            "trt_force_timing_cache",
            "trt_layer_norm_fp32_fallback",
            "trt_sparsity_enable",
            "trt_timing_cache_enable",
        ),
        BOOLEAN,
    ),
    **dict.fromkeys(
        (
            "trt_auxiliary_streams",
            "trt_builder_optimization_level",
            "trt_dla_core",
            "trt_ep_context_embed_mode",
            "trt_max_partition_iterations",
            "trt_min_subgraph_size",
        ),
        INTEGER,
    ),
    **dict.fromkeys(
        (
            "trt_engine_cache_prefix",
            "trt_ep_context_file_path",
            "trt_extra_plugin_lib_paths",
            "trt_profile_max_shapes",
            "trt_profile_min_shapes",
            "trt_profile_opt_shapes",
            "trt_tactic_sources",
            "trt_timing_cache_path",
        ),
        _TEXT,
    ),
}
_ALL_OPTIONS_SINCE = "24.04"
_CUDA_SINCE = "24.06"


def accelerator_faults(config: ModelConfig, platform: ServingPlatform | None) -> Iterator[Fault]:
    """The accelerators and options that the backend rejects when it loads the model."""
    accelerators = config.optimization.execution_accelerators
    groups = [group.kind for group in config.instance_group]
    on_cpu = bool(groups) and all(kind == ModelInstanceGroup.KIND_CPU for kind in groups)
    on_gpus = ("tensorrt",) if platform is not None and is_older(platform, _CUDA_SINCE) else ("tensorrt", "cuda")
    kinds: list[tuple[str, Sequence[Accelerator], tuple[str, ...]]] = [
        ("cpu_execution_accelerator", accelerators.cpu_execution_accelerator, ("openvino",))
    ]
    if not on_cpu:
        kinds += [("gpu_execution_accelerator", accelerators.gpu_execution_accelerator, on_gpus)]
    for kind, listed, known in kinds:
        for index, accelerator in enumerate(listed):
            field = f"execution_accelerators.{kind}[{index}]"
            if accelerator.name not in known:
                words = f"unknown Execution Accelerator '{accelerator.name}' is requested"
                fix = f"write {' or '.join(map(repr, known))}, or remove the accelerator"
                yield f"the accelerator is called {accelerator.name!r}", words, fix, f"{field}.name"
            elif accelerator.name == "tensorrt":
                yield from _option_faults(accelerator, field, platform)


def _option_faults(accelerator: Accelerator, field: str, platform: ServingPlatform | None) -> Iterator[Fault]:
    """The options of TensorRT that the backend does not have, or cannot convert."""
    is_old = platform is not None and is_older(platform, _ALL_OPTIONS_SINCE)
    options = _FIRST_OPTIONS if is_old else _OPTIONS
    for key, value in sorted(accelerator.parameters.items()):
        place = f'{field}.parameters["{key}"]'
        if key not in options:
            words = f"unknown parameter '{key}' is provided for TensorRT Execution Accelerator"
            fix = f"remove the option{did_you_mean(key, options)}"
            if is_old and key in _OPTIONS:
                fix = f"remove the option, or serve with {_ALL_OPTIONS_SINCE} or newer"
            yield f"the accelerator tensorrt has the option {key!r}", words, fix, place
            continue
        pattern, words, values = options[key]
        if pattern.fullmatch(value) is None:
            found = f"the precision mode is {value!r}" if key == "precision_mode" else f"{key} is {value!r}"
            yield found, words.format(value), f"write {values}", place
