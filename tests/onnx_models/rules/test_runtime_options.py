"""The rule CT290: options of ONNX Runtime for CUDA that the backend replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages
    from sample_repositories import Write

TENSORS = 'input { name: "IN" data_type: TYPE_FP32 dims: 4 } output { name: "OUT" data_type: TYPE_FP32 dims: 4 }'
PLACE = "optimization.execution_accelerators.gpu_execution_accelerator[0]"


def accelerator(name: str, **options: str) -> str:
    pairs = " ".join(f'parameters {{ key: "{key}" value: "{value}" }}' for key, value in options.items())
    return f'optimization {{ execution_accelerators {{ gpu_execution_accelerator {{ name: "{name}" {pairs} }} }} }}'


def parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


def found(write: Write, config: str, backend: str = "onnxruntime") -> list[Finding]:
    repository = write({"model/config.pbtxt": f'backend: "{backend}" {TENSORS} {config}'}, base={})
    return [finding for finding in repository.check() if finding.code == "CT290"]


@pytest.mark.parametrize(
    ("key", "value", "config"),
    [
        pytest.param("cudnn_conv_algo_search", "HEURISTIC", "", id="search"),
        pytest.param("arena_extend_strategy", "kSameAsRequested", "", id="arena"),
        pytest.param("gpu_mem_limit", "2147483648", "", id="memory"),
        pytest.param("do_copy_in_default_stream", "0", "", id="copy"),
        pytest.param("cudnn_conv_algo_search", "fast", "", id="a word that is unknown"),
        pytest.param(
            "cudnn_conv_algo_search", "DEFAULT", parameter("cudnn_conv_algo_search", "1"), id="another in parameters"
        ),
    ],
)
def test_an_option_that_the_backend_replaces(
    messages: Messages, write: Write, key: str, value: str, config: str
) -> None:
    findings = found(write, f"{config} {accelerator('cuda', **{key: value})}")
    assert messages.of(findings) == [("CT290", "model/config.pbtxt", f'{PLACE}.parameters["{key}"]')]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(parameter("cudnn_conv_algo_search", "1"), id="in parameters"),
        pytest.param(
            parameter("cudnn_conv_algo_search", "1") + accelerator("cuda", cudnn_conv_algo_search="HEURISTIC"),
            id="in both, the same",
        ),
        pytest.param(
            parameter("gpu_mem_limit", "1000") + accelerator("cuda", gpu_mem_limit="1000"), id="in both, a number"
        ),
        pytest.param(accelerator("cuda", cudnn_conv_algo_search="EXHAUSTIVE"), id="the default"),
        pytest.param(accelerator("cuda", do_copy_in_default_stream="true"), id="the default in another word"),
        pytest.param(accelerator("cuda", cudnn_conv_use_max_workspace="0"), id="another option"),
        pytest.param(accelerator("tensorrt", trt_engine_cache_enable="true"), id="another accelerator"),
    ],
)
def test_options_that_have_an_effect(write: Write, config: str) -> None:
    assert found(write, config) == []


def test_another_backend(write: Write) -> None:
    assert found(write, accelerator("cuda", cudnn_conv_algo_search="HEURISTIC"), backend="tensorrt") == []
