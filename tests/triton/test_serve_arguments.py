"""tritonserver's arguments as the container's start script builds them.

The expectations were recorded from NVIDIA's `docker/sagemaker/serve` (server commit e1db8a603) with a `tritonserver`
on the PATH that prints its arguments and its environment. 1,200 random environments agreed as well, except for default
models with a path below a model.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import ServeError
from cdk_triton.triton import serve_arguments, server_environment

FIXED = ["--allow-sagemaker=true", "--allow-http=false", "--model-control-mode=explicit"]
SHARED_MEMORY = [
    "--backend-config=python,shm-default-byte-size=16777216",
    "--backend-config=python,shm-growth-byte-size=1048576",
]
DEFAULTS = ["--model-namespacing=true", "--allow-grpc=false", "--allow-metrics=false", "--log-verbose=true"]


def test_a_single_model_with_nothing_set() -> None:
    assert serve_arguments({}, ["bert"]) == [
        *FIXED,
        "--model-repository=/opt/ml/model/",
        *DEFAULTS,
        *SHARED_MEMORY,
        "--load-model=bert",
    ]


def test_several_models_with_nothing_set() -> None:
    assert serve_arguments({"SAGEMAKER_MULTI_MODEL": "true"}, []) == [
        *FIXED,
        "--model-repository=/tmp/sagemaker",
        *DEFAULTS,
        *SHARED_MEMORY,
    ]


def test_an_empty_value_is_an_unset_one() -> None:
    empty = dict.fromkeys(
        ["SAGEMAKER_TRITON_LOG_VERBOSE", "SAGEMAKER_BIND_TO_PORT", "SAGEMAKER_TRITON_INFERENCE_TYPE"], ""
    )
    assert serve_arguments(empty, ["bert"]) == serve_arguments({}, ["bert"])


def test_everything_set() -> None:
    environment = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble",
        "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING": "false",
        "SAGEMAKER_BIND_TO_PORT": "8081",
        "SAGEMAKER_SAFE_PORT_RANGE": "9000-9010",
        "SAGEMAKER_TRITON_ALLOW_GRPC": "true",
        "SAGEMAKER_TRITON_ALLOW_METRICS": "true",
        "SAGEMAKER_TRITON_METRICS_PORT": "9002",
        "SAGEMAKER_TRITON_GRPC_PORT": "9001",
        "SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT": "2",
        "SAGEMAKER_TRITON_THREAD_COUNT": "16",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_LOG_INFO": "true",
        "SAGEMAKER_TRITON_LOG_WARNING": "true",
        "SAGEMAKER_TRITON_LOG_ERROR": "true",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "1",
        "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE": "2",
        "SAGEMAKER_TRITON_TENSORFLOW_VERSION": "2",
        "SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT": "0.9",
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--exit-timeout-secs=5 --load-model=vae",
        "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate",
        "SAGEMAKER_TRITON_PING_MODE": "ready",
        "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "live",
    }
    assert serve_arguments(environment, ["vae", "ensemble"], gpu_count=2) == [
        *FIXED,
        "--model-repository=/opt/ml/model/",
        "--model-namespacing=false",
        "--sagemaker-port=8081",
        "--sagemaker-safe-port-range=9000-9010",
        "--allow-grpc=true",
        "--allow-metrics=true",
        "--metrics-port=9002",
        "--grpc-port=9001",
        "--buffer-manager-thread-count=2",
        "--sagemaker-thread-count=16",
        "--log-verbose=false",
        "--log-info=true",
        "--log-warning=true",
        "--log-error=true",
        "--backend-config=python,shm-default-byte-size=1",
        "--backend-config=python,shm-growth-byte-size=2",
        "--backend-config=tensorflow,version=2",
        "--model-load-gpu-limit",
        "0:0.9",
        "--model-load-gpu-limit",
        "1:0.9",
        "--exit-timeout-secs=5",
        "--load-model=vae",
        "--load-model=ensemble",
    ]


@pytest.mark.parametrize(
    ("environment", "directories", "message"),
    [
        pytest.param(
            {},
            ["config.pbtxt", "1"],
            "ERROR: Incorrect directory structure.\n       Model directory needs to contain the top level folder",
            id="config.pbtxt at the top",
        ),
        pytest.param(
            {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble"},
            ["config.pbtxt", "ensemble"],
            "ERROR: Incorrect directory structure.\n       Model directory needs to contain the top level folder",
            id="config.pbtxt at the top beside the default model",
        ),
        pytest.param(
            {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "nobody"},
            ["bert"],
            "ERROR: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME nobody does not exist",
            id="no directory of the default name",
        ),
        pytest.param({}, [], "ERROR: No model found in model repository", id="no directory"),
        pytest.param(
            {"SAGEMAKER_MULTI_MODEL": "True"},
            ["bert", "preprocess"],
            "ERROR: More than 1 model directory found in model repository.\n"
            "       Either provide a single directory or set SAGEMAKER_TRITON_DEFAULT_MODEL_NAME to run the ensemble "
            "backend.\n"
            "       Directories found in model repository: bert preprocess",
            id="several directories, and not quite multi-model",
        ),
        pytest.param(
            {},
            ["my model"],
            "ERROR: More than 1 model directory found in model repository.\n"
            "       Either provide a single directory or set SAGEMAKER_TRITON_DEFAULT_MODEL_NAME to run the ensemble "
            "backend.\n"
            "       Directories found in model repository: my model",
            id="one directory with a blank in its name",
        ),
        pytest.param(
            {"SAGEMAKER_MULTI_MODEL": "true", "SAGEMAKER_TRITON_INFERENCE_TYPE": "stream"},
            [],
            "ERROR: Invalid SAGEMAKER_TRITON_INFERENCE_TYPE 'stream'\n"
            "       Must be one of: infer, generate, generate_stream",
            id="unknown inference type",
        ),
    ],
)
def test_rejections_are_the_script_s_own(environment: dict[str, str], directories: list[str], message: str) -> None:
    with pytest.raises(ServeError) as caught:
        serve_arguments(environment, directories)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("environment", "directories", "last"),
    [
        pytest.param({"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "a"}, ["a", "b"], ["--load-model=a"], id="named"),
        pytest.param({"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": ""}, ["b"], ["--load-model=b"], id="empty is unset"),
        pytest.param({"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "a/"}, ["a"], ["--load-model=a/"], id="with a slash"),
        pytest.param({"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "."}, ["a"], ["--load-model=."], id="the top itself"),
        pytest.param(
            {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "my model"},
            ["my model"],
            ["--load-model=my", "model"],
            id="with a blank",
        ),
    ],
)
def test_default_model(environment: dict[str, str], directories: list[str], last: list[str]) -> None:
    assert serve_arguments(environment, directories)[-len(last) :] == last


def test_values_are_split_as_the_script_does() -> None:
    """AWS's samples loaded models that way before there was a variable for it."""
    environment = {
        "SAGEMAKER_TRITON_LOG_INFO": "false --load-model=text_encoder\t--load-model=vae",
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--x='a b'",
    }
    arguments = serve_arguments(environment, ["m"])
    assert arguments[8:11] == ["--log-info=false", "--load-model=text_encoder", "--load-model=vae"]
    assert arguments[-3:] == ["--x='a", "b'", "--load-model=m"]


@pytest.mark.parametrize(
    ("environment", "seen"),
    [
        # The rows of the script's bug: it announces a ping mode, and does not export it.
        pytest.param({"SAGEMAKER_MULTI_MODEL": "true"}, None, id="multi, nothing set"),
        pytest.param(
            {"SAGEMAKER_MULTI_MODEL": "true", "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "live"}, None, id="multi, override"
        ),
        pytest.param(
            {"SAGEMAKER_MULTI_MODEL": "true", "SAGEMAKER_TRITON_PING_MODE": "x"}, "live", id="multi, anything set"
        ),
        pytest.param({"SAGEMAKER_TRITON_PING_MODE": "live"}, "ready", id="single, anything set"),
        pytest.param(
            {"SAGEMAKER_TRITON_PING_MODE": "x", "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "live"},
            "live",
            id="single, both",
        ),
    ],
)
def test_ping_mode_that_reaches_the_server(environment: dict[str, str], seen: str | None) -> None:
    assert server_environment(environment, ["m"]).get("SAGEMAKER_TRITON_PING_MODE") == seen


def test_the_only_model_is_exported() -> None:
    assert server_environment({"HOME": "/root"}, ["bert"]) == {
        "HOME": "/root",
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "bert",
    }
    assert server_environment({"SAGEMAKER_MULTI_MODEL": "true"}, ["bert"]) == {"SAGEMAKER_MULTI_MODEL": "true"}


@given(
    st.dictionaries(
        st.sampled_from(["SAGEMAKER_TRITON_LOG_VERBOSE", "SAGEMAKER_TRITON_ADDITIONAL_ARGS", "SAGEMAKER_MULTI_MODEL"]),
        st.text(max_size=12),
    ),
    st.lists(st.text(min_size=1, max_size=6), max_size=3),
)
def test_no_argument_holds_a_blank(environment: dict[str, str], directories: list[str]) -> None:
    try:
        arguments = serve_arguments(environment, directories)
    except ServeError:
        arguments = ["refused"]
    assert all(argument and not set(" \t\n") & set(argument) for argument in arguments)
