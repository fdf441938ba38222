"""The options of tritonserver, and the arguments with which a release starts; `tests/integration` asks the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.server_options import (
    argument_fault,
    given_options,
    loaded_models,
    reads_variable,
)

if TYPE_CHECKING:
    from golden_messages import Messages


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--log-verbose=1"], id="a value behind ="),
        pytest.param(["--log-verbose", "1"], id="a value of its own"),
        pytest.param(["--trace-count", "-1"], id="a number below zero"),
        pytest.param(["--exit-timeout=5"], id="an abbreviation"),
        pytest.param(["--disable-auto-complete-config"], id="no value"),
        pytest.param(["--exit-timeout-secs=5s"], id="a number and a unit"),
        pytest.param(["--allow-sagemaker=true", "--model-control-mode=explicit"], id="what the script sets"),
        pytest.param(["--backend-config=python,shm-default-byte-size=1048576"], id="the least shared memory"),
        pytest.param(["--backend-config=onnxruntime,anything=a,b=c"], id="a setting of another backend"),
        pytest.param(["--cache-config=local,size=1048576"], id="a cache"),
        pytest.param(["--allow-client-shm=true"], id="an option of newer releases"),
        pytest.param(["--reuse-http-port=2"], id="a value of older releases"),
        pytest.param([], id="nothing"),
    ],
)
def test_what_a_release_takes_is_taken(arguments: list[str]) -> None:
    assert argument_fault(arguments) is None
    assert ContainerEnvironment(additional_args=tuple(arguments)).additional_args == tuple(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--nope"], id="unknown"),
        pytest.param(["--log-verbos=1", "--exit-timeout-sec5=1"], id="misspelt"),
        pytest.param(["-"], id="a dash"),
        pytest.param(["--"], id="two dashes"),
        pytest.param(["-x"], id="one letter"),
        pytest.param(["--help"], id="help"),
        pytest.param(["--trace-l=OFF"], id="ambiguous"),
        pytest.param(["--exit-timeout-secs"], id="no value"),
        pytest.param(["--id", "--log-info=true"], id="an option for a value"),
        pytest.param(["--log-info=true", "1"], id="a value too many"),
        pytest.param(["--disable-auto-complete-config=true"], id="a value of a flag"),
        pytest.param(["--strict-readiness=maybe"], id="no flag"),
        pytest.param(["--exit-timeout-secs=2147483648"], id="beyond int32"),
        pytest.param(["--log-format=iso8601"], id="another spelling"),
        pytest.param(["--allow-sage=false"], id="no SageMaker, abbreviated"),
        pytest.param(["--sagemaker-port=9000"], id="another port"),
        pytest.param(["--model-control-mode=poll"], id="another mode"),
        pytest.param(["--model-repository=/opt/models"], id="another repository"),
        pytest.param(["--model-store", "/opt/models"], id="another repository by its other name"),
        pytest.param(["--backend-config=python,shm-default-byte-size=5"], id="little shared memory"),
        pytest.param(["--backend-config=python,stub-timeout-seconds=0"], id="no time"),
        pytest.param(["--backend-config=python"], id="no setting"),
        pytest.param(["--cache-config=local,size=many"], id="no size"),
        pytest.param(["--cache-config=local,policy=x"], id="a cache without a size"),
        pytest.param(["--cache-config=local,size=1", "--response-cache-byte-size=1"], id="two caches"),
        pytest.param(["--model-load-thread-count=-1"], id="fewer than no threads"),
        pytest.param(["--sagemaker-thread-count=0"], id="nobody answers"),
        pytest.param(["--buffer-manager-thread-count=200000"], id="more threads than a system has"),
        pytest.param(["--allow-vertex-ai=true"], id="another service"),
        pytest.param(["--grpc-infer-thread-count=1"], id="below the parser's own bound"),
        pytest.param(["--model-load-gpu-limit=0:1.5"], id="more than all memory"),
        pytest.param(["--http-restricted-api=everything:a=b"], id="no API"),
        pytest.param(["--host-policy=gpu_0,cores=1"], id="no policy"),
        pytest.param(["--rate-limit-resource=R:many"], id="no count"),
        pytest.param(["--metrics-config=a"], id="no setting of metrics"),
        pytest.param(["--trace-config=level=LOUD"], id="no level"),
    ],
)
def test_what_no_release_takes_is_rejected(messages: Messages, arguments: list[str]) -> None:
    assert argument_fault(arguments) is not None
    with messages.raises(ConfigurationError):
        ContainerEnvironment(additional_args=tuple(arguments))


@pytest.mark.parametrize(
    ("argument", "taken", "rejected"),
    [
        pytest.param("--allow-client-shm=true", ["26.04", "26.08", "26.12"], ["26.03", "24.10", "23.07"], id="since"),
        pytest.param("--reuse-grpc-port=2", ["23.07", "23.10"], ["23.11", "26.05"], id="another kind"),
        pytest.param("--grpc-infer-thread-count=4", ["25.04"], ["25.03"], id="a neighbour"),
        pytest.param("--enable=1", ["24.06"], ["24.05"], id="abbreviated"),
        pytest.param("--grpc-infer-t=4", ["25.04"], ["25.03"], id="abbreviated, of a newer release"),
        pytest.param("--grpc-max=9", [], ["23.12", "24.01", "25.03"], id="ambiguous or unknown"),
        pytest.param("--http-m=9", ["25.06"], ["25.05"], id="abbreviated, the only one"),
        pytest.param("--backend-config=python,shm-default-byte-size=1048576", ["23.09"], ["23.08"], id="a bound"),
    ],
)
def test_each_release_has_its_own_options(argument: str, taken: list[str], rejected: list[str]) -> None:
    assert [release for release in taken if argument_fault([argument], release) is not None] == []
    assert [release for release in rejected if argument_fault([argument], release) is None] == []


def test_a_flag_is_written_in_several_ways() -> None:
    assert argument_fault(["--allow-vertex-ai=off", "--allow-sagemaker=1"], "25.09") is None


def test_a_release_that_gets_no_arguments_finds_no_fault() -> None:
    assert argument_fault(["--nope"], "23.06") is None


def test_options_are_read_as_the_server_reads_them() -> None:
    arguments = ["--log-v=1", "--id", "a", "--disable-auto", "--load-model=b", "--load-m", "c"]
    assert given_options(arguments) == (
        ("log-verbose", "1"),
        ("id", "a"),
        ("disable-auto-complete-config", ""),
        ("load-model", "b"),
        ("load-model", "c"),
    )
    assert loaded_models(arguments) == ("b", "c")


@pytest.mark.parametrize(
    ("release", "is_read"), [("25.02", False), ("25.03", True), ("26.12", True), ("20.01", True)], ids=str
)
def test_variables_are_read_from_some_release_on(release: str, is_read: bool) -> None:
    """Of a release before the table nothing is known."""
    assert reads_variable(release, "SAGEMAKER_TRITON_INFERENCE_TYPE") is is_read


@given(
    st.lists(
        st.text("-=,:az019.", max_size=8) | st.sampled_from(["--id", "--log-info=", "--trace-config=a"]), max_size=4
    )
)
def test_no_text_makes_it_crash(arguments: list[str]) -> None:
    fault = argument_fault(arguments)
    assert fault is None or fault.reason
