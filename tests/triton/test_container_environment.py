"""The typed environment of the container, and what the start script makes of it."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ContainerEnvironment, serve_arguments, server_environment
from cdk_triton.triton.environment import container_variables

if TYPE_CHECKING:
    from golden_messages import Messages


WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)


def test_defaults_of_a_single_model_container() -> None:
    assert container_variables(ContainerEnvironment(), multi_model=False, default_model="ensemble") == {
        "PYTHONUNBUFFERED": "1",
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_PING_MODE": "ready",
    }


def test_defaults_of_a_multi_model_container() -> None:
    assert container_variables(ContainerEnvironment(), multi_model=True, default_model="ensemble") == {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_PING_MODE": "live",
    }


def test_everything() -> None:
    environment = ContainerEnvironment(
        default_model_name="pipeline",
        additional_models=("vae", "unet"),
        model_namespacing=False,
        ping_mode="live",
        inference_type="generate_stream",
        log_verbose=2,
        log_info=False,
        log_warning=True,
        log_error=True,
        allow_metrics=True,
        metrics_port=9002,
        allow_grpc=True,
        grpc_port=9001,
        thread_count=16,
        buffer_manager_thread_count=0,
        shm_default_byte_size=1 << 25,
        shm_growth_byte_size=1 << 20,
        model_load_gpu_limit=0.9,
        tensorflow_version=2,
        port=8081,
        safe_port_range=(9000, 9010),
        additional_args=("--exit-timeout-secs=5",),
        variables={"HF_HOME": "/tmp/hf"},
    )
    assert container_variables(environment, multi_model=False, default_model="ensemble") == {
        "HF_HOME": "/tmp/hf",
        "PYTHONUNBUFFERED": "1",
        "SAGEMAKER_BIND_TO_PORT": "8081",
        "SAGEMAKER_SAFE_PORT_RANGE": "9000-9010",
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--exit-timeout-secs=5 --load-model=vae --load-model=unet",
        "SAGEMAKER_TRITON_ALLOW_GRPC": "true",
        "SAGEMAKER_TRITON_ALLOW_METRICS": "true",
        "SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT": "0",
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "pipeline",
        "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING": "false",
        "SAGEMAKER_TRITON_GRPC_PORT": "9001",
        "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream",
        "SAGEMAKER_TRITON_LOG_ERROR": "true",
        "SAGEMAKER_TRITON_LOG_INFO": "false",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "2",
        "SAGEMAKER_TRITON_LOG_WARNING": "true",
        "SAGEMAKER_TRITON_METRICS_PORT": "9002",
        "SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT": "0.9",
        "SAGEMAKER_TRITON_OVERRIDE_PING_MODE": "live",
        "SAGEMAKER_TRITON_PING_MODE": "live",
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "33554432",
        "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE": "1048576",
        "SAGEMAKER_TRITON_TENSORFLOW_VERSION": "2",
        "SAGEMAKER_TRITON_THREAD_COUNT": "16",
    }


class TestThroughTheStartScript:
    """What is asked for is what tritonserver gets."""

    @pytest.mark.parametrize("namespacing", [True, False])
    def test_namespacing_means_what_it_says(self, namespacing: bool) -> None:
        variables = container_variables(ContainerEnvironment(model_namespacing=namespacing), multi_model=True)
        arguments = serve_arguments({**variables, "SAGEMAKER_MULTI_MODEL": "true"}, [])
        assert f"--model-namespacing={str(namespacing).lower()}" in arguments

    @pytest.mark.parametrize(
        ("chosen", "multi_model", "seen"),
        [(None, False, "ready"), (None, True, "live"), ("live", False, "live"), ("ready", True, "ready")],
    )
    def test_ping_mode_reaches_the_server(self, chosen: str | None, multi_model: bool, seen: str) -> None:
        environment = ContainerEnvironment(ping_mode=chosen)  # type: ignore[arg-type]
        variables = container_variables(environment, multi_model=multi_model, default_model="m")
        mode = {"SAGEMAKER_MULTI_MODEL": "true"} if multi_model else {}
        assert server_environment({**variables, **mode}, ["m"])["SAGEMAKER_TRITON_PING_MODE"] == seen

    @given(st.lists(WORDS.map("--id={}".format), max_size=3), st.lists(WORDS, max_size=3))
    def test_arguments_arrive_whole(self, arguments: list[str], models: list[str]) -> None:
        environment = ContainerEnvironment(additional_args=tuple(arguments), additional_models=tuple(models))
        variables = container_variables(environment, multi_model=False, default_model="entry")
        expected = [*arguments, *(f"--load-model={model}" for model in models), "--load-model=entry"]
        assert serve_arguments(variables, ["entry", *models])[-len(expected) :] == expected


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"additional_args": ("--id=a b",)}, id="a blank"),
        *(pytest.param({"additional_args": (f"--id={c}",)}, id=f"the character {c}") for c in "\t\n'\"*?[]\\"),
        pytest.param({"default_model_name": "${Token[TOKEN.7]}"}, id="a token"),
        pytest.param({"additional_args": ("x=1",)}, id="no option"),
        pytest.param({"additional_args": ("--load-model=*",)}, id="every model"),
        pytest.param({"additional_args": "--x=1"}, id="not a list"),
        pytest.param({"additional_args": ("",)}, id="nothing"),
        pytest.param({"additional_models": ("*",)}, id="a wildcard"),
        pytest.param({"default_model_name": "my model"}, id="a name"),
        pytest.param({"ping_mode": "dead"}, id="ping mode"),
        pytest.param({"inference_type": "stream"}, id="inference type"),
        pytest.param({"tensorflow_version": 3}, id="TensorFlow"),
        pytest.param({"tensorflow_version": True}, id="TensorFlow as flag"),
        pytest.param({"metrics_port": 65536}, id="a port"),
        pytest.param({"port": 0}, id="zero is not left out"),
        pytest.param({"allow_metrics": True, "metrics_port": 8080}, id="SageMaker's port for metrics"),
        pytest.param({"allow_grpc": True, "grpc_port": 8002, "allow_metrics": True}, id="one port for two"),
        pytest.param({"allow_metrics": True, "safe_port_range": (9000, 9010)}, id="a port outside of the range"),
        pytest.param({"thread_count": 0}, id="no threads"),
        pytest.param({"thread_count": True}, id="a flag"),
        pytest.param({"shm_default_byte_size": 1.5}, id="half a byte"),
        pytest.param({"log_verbose": -1}, id="below no log"),
        pytest.param({"log_verbose": "true"}, id="a text"),
        pytest.param({"allow_grpc": "false"}, id="a word"),
        pytest.param({"log_info": 1}, id="a number"),
        pytest.param({"model_load_gpu_limit": 90}, id="per cent"),
        pytest.param({"model_load_gpu_limit": 0}, id="no memory"),
        pytest.param({"safe_port_range": (9010, 9000)}, id="a range"),
        pytest.param({"variables": {"SAGEMAKER_TRITON_LOG_INFO": "true"}}, id="a variable with a field"),
        pytest.param({"variables": {"1X": ""}}, id="no name"),
        pytest.param({"variables": ["X=1"]}, id="a list"),
        pytest.param({"safe_port_range": 9000}, id="one port"),
        pytest.param({"default_model_name": 1}, id="no name"),
        pytest.param({"additional_models": {"a": 1}}, id="a dict"),
        pytest.param({"variables": {"X": 1}}, id="no text"),
        pytest.param({"variables": {"X": "a\0b"}}, id="NUL in a variable"),
        pytest.param({"variables": {"X": "\ud800"}}, id="half a surrogate pair in a variable"),
        pytest.param({"variables": {"LD_PRELOAD": "/opt/ml/model/lib.so"}}, id="the loader's variable"),
        pytest.param({"variables": {"PATH": "/opt/bin"}}, id="PATH"),
        pytest.param({"variables": {"SHELLOPTS": "nounset"}}, id="the shell's options"),
        pytest.param({"variables": {"BASH_ENV": "/etc/profile"}}, id="a file that the shell reads"),
        pytest.param({"variables": {"AIP_MODE": "PREDICTION"}}, id="another cloud's mode"),
        pytest.param({"variables": {"num_gpus": "1"}}, id="a variable of the script"),
        pytest.param({"default_model_name": "\ud800"}, id="half a surrogate pair in a name"),
        pytest.param({"default_model_name": "a\0"}, id="NUL in a name"),
        pytest.param({"additional_models": ("\ud800",)}, id="half a surrogate pair in a model"),
        pytest.param({"additional_models": ("a\0",)}, id="NUL in a model"),
        pytest.param({"additional_args": ("--id=\ud800",)}, id="half a surrogate pair in an argument"),
        pytest.param({"additional_args": ("--id=\0",)}, id="NUL in an argument"),
        pytest.param({"additional_args": ("--nope",)}, id="an unknown option"),
        pytest.param({"additional_args": ("--exit-timeout=",)}, id="an abbreviated option without a number"),
        pytest.param({"additional_args": ("--metrics-port=8080", "--allow-metrics=on")}, id="ports in arguments"),
        pytest.param({"additional_args": ("--allow-http=1", "--http-port=8001"), "allow_grpc": True}, id="HTTP's port"),
        pytest.param({"additional_args": ("--allow-vertex-ai=true",)}, id="Vertex AI"),
        pytest.param({"shm_default_byte_size": (1 << 20) - 1}, id="less than the backend takes"),
        pytest.param({"shm_default_byte_size": 2**63}, id="more shared memory than a number holds"),
        pytest.param({"shm_growth_byte_size": 2**63}, id="more growth than a number holds"),
        pytest.param({"thread_count": 1025}, id="too many threads"),
        pytest.param({"buffer_manager_thread_count": 2**31}, id="too many threads that copy"),
        pytest.param({"log_verbose": 2**31}, id="a level beyond its number"),
        pytest.param({"safe_port_range": (True, 9000)}, id="a flag in a range"),
        pytest.param({"model_load_gpu_limit": 5e-324}, id="too small a fraction"),
        pytest.param({"model_load_gpu_limit": float("nan")}, id="no fraction"),
        pytest.param({"tensorflow_version": 2.0}, id="TensorFlow as a fraction"),
    ],
)
def test_a_value_that_cannot_work_is_rejected(messages: Messages, arguments: dict[str, object]) -> None:
    with messages.raises(ConfigurationError):
        ContainerEnvironment(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"default_model_name": "m"},
        {"additional_models": ("m",)},
        {"inference_type": "generate"},
        {"additional_args": ("--load-model=m",)},
    ],
)
def test_a_multi_model_container_rejects_what_it_would_ignore(messages: Messages, arguments: dict[str, object]) -> None:
    environment = ContainerEnvironment(**arguments)  # type: ignore[arg-type]
    with messages.raises(ConfigurationError):
        container_variables(environment, multi_model=True)


@pytest.mark.parametrize("name", ["PYTHONPATH", "HOME", "LANG", "MALLOC_ARENA_MAX", "HF_HOME", "NVIDIA_TF32_OVERRIDE"])
def test_what_models_need_is_passed_on(name: str) -> None:
    environment = ContainerEnvironment(variables={name: "x"})
    assert container_variables(environment, multi_model=True)[name] == "x"


@given(st.dictionaries(st.sampled_from(["A", "B"]), st.text(max_size=6)), st.text(max_size=6))
def test_any_text_is_taken_as_it_is_or_rejected(variables: dict[str, str], name: str) -> None:
    try:
        environment = ContainerEnvironment(default_model_name=name, variables=variables)
        written = container_variables(environment, multi_model=False)
    except ConfigurationError:
        return
    for key, value in {**variables, "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": name}.items():
        assert written[key].encode() == value.encode()
        assert b"\0" not in value.encode()


class Mode(str, Enum):  # noqa: UP042 StrEnum would print its value
    """A user's own names of the modes."""

    READY = "ready"


class Size(IntEnum):
    """A user's own names of numbers."""

    LARGE = 1 << 25


def test_an_enumeration_stands_for_its_value() -> None:
    environment = ContainerEnvironment(
        ping_mode=Mode.READY,  # type: ignore[arg-type]
        shm_default_byte_size=Size.LARGE,
        additional_models=(Mode.READY,),
        variables={"A": Mode.READY},
    )
    written = container_variables(environment, multi_model=False, default_model="m")
    assert written["SAGEMAKER_TRITON_PING_MODE"] == "ready"
    assert written["SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE"] == "33554432"
    assert written["SAGEMAKER_TRITON_ADDITIONAL_ARGS"] == "--load-model=ready"
    assert type(written["A"]) is str


class TestLimits:
    def test_number_of_variables(self, messages: Messages) -> None:
        many = {f"V{i}": "" for i in range(96)}
        assert len(container_variables(ContainerEnvironment(variables=many), multi_model=True)) == 100
        with messages.raises(ConfigurationError):
            container_variables(ContainerEnvironment(variables=many | {"W": ""}), multi_model=True)

    @pytest.mark.parametrize(
        ("name", "value"), [pytest.param("V", "x" * 1025, id="value"), pytest.param("V" * 1025, "x", id="name")]
    )
    def test_length(self, messages: Messages, name: str, value: str) -> None:
        container_variables(ContainerEnvironment(variables={name[:1024]: value[:1024]}), multi_model=True)
        with messages.raises(ConfigurationError):
            container_variables(ContainerEnvironment(variables={name: value}), multi_model=True)

    def test_length_is_counted_in_bytes(self, messages: Messages) -> None:
        with messages.raises(ConfigurationError):
            container_variables(ContainerEnvironment(variables={"V": "é" * 513}), multi_model=True)

    def test_length_of_all_together(self, messages: Messages) -> None:
        many = {f"V{i:02}": "x" * 1000 for i in range(32)}
        rest = 32 * 1024 - sum(
            len(k) + len(v)
            for k, v in container_variables(ContainerEnvironment(variables=many), multi_model=True).items()
        )
        container_variables(ContainerEnvironment(variables=many | {"W": "x" * (rest - 1)}), multi_model=True)
        with messages.raises(ConfigurationError):
            container_variables(ContainerEnvironment(variables=many | {"W": "x" * rest}), multi_model=True)


def test_it_is_a_value() -> None:
    first, second = ContainerEnvironment(variables={"A": "1"}), ContainerEnvironment(variables={"A": "1"})
    assert first == second
    assert hash(first) == hash(second)
    with pytest.raises(TypeError):
        first.variables["A"] = "2"  # type: ignore[index]


def test_a_port_that_is_not_opened_collides_with_none() -> None:
    ContainerEnvironment(metrics_port=8080, grpc_port=8080, safe_port_range=(9000, 9010))
