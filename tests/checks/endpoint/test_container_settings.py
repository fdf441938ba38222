"""The rules CT420 to CT424: settings of the container that its release does not take, or does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from cdk_triton.triton import ContainerEnvironment
from sample_repositories import platform_with
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

PYTHON = {"model/config.pbtxt": 'backend: "python"', "model/1/model.py": PYTHON_MODEL}
CLOSED = "--http-restricted-api={}:key=value"


def found(code: str) -> list[Place]:
    return [(code, ".", "")]


@pytest.mark.parametrize(
    ("release", "fields", "mode", "findings"),
    [
        pytest.param("25.09", {"additional_args": ["--allow-client-shm=1"]}, "single", found("CT420"), id="too new"),
        pytest.param("25.09", {"additional_args": ["--allow-client-shm=1"]}, "multi", found("CT420"), id="in a fleet"),
        pytest.param("26.05", {"additional_args": ["--allow-client-shm=1"]}, "single", [], id="new enough"),
        pytest.param("26.11", {"additional_args": ["--allow-client-shm=1"]}, "single", [], id="newer than the table"),
        pytest.param("23.12", {"additional_args": ["--reuse-http-port=2"]}, "single", found("CT420"), id="a flag now"),
        pytest.param("23.07", {"additional_args": ["--reuse-http-port=2"]}, "single", [], id="a number then"),
        pytest.param("25.09", {"additional_args": ["--log-verbose", "1"]}, "single", [], id="in two items"),
        pytest.param(
            "23.07",
            {"additional_args": ["--backend-config=python,shm-default-byte-size=2000000"]},
            "single",
            found("CT420"),
            id="shared memory in arguments",
        ),
        pytest.param("25.02", {"inference_type": "infer"}, "single", found("CT421"), id="inference type"),
        pytest.param("25.03", {"inference_type": "infer"}, "single", [], id="inference type is read"),
        pytest.param("23.06", {"additional_args": ["--id=a"]}, "single", found("CT421"), id="arguments"),
        pytest.param("23.06", {"additional_args": ["--allow-client-shm=1"]}, "multi", found("CT421"), id="unread"),
        pytest.param("23.07", {"additional_args": ["--id=a"]}, "single", [], id="arguments are read"),
        pytest.param("23.06", {"ping_mode": "live"}, "multi", found("CT421"), id="ping mode"),
        pytest.param("23.06", {"ping_mode": "ready"}, "multi", [], id="the only ping mode"),
        pytest.param("23.06", {"allow_metrics": True}, "single", found("CT421"), id="metrics"),
        pytest.param("23.03", {"model_namespacing": False}, "multi", [], id="no namespaces"),
        pytest.param("22.11", {"model_load_gpu_limit": 0.5}, "single", found("CT421"), id="limit of memory"),
        pytest.param("22.12", {"model_load_gpu_limit": 0.5}, "single", [], id="limit of memory is read"),
        pytest.param("25.03", {"tensorflow_version": 2}, "single", found("CT421"), id="no TensorFlow"),
        pytest.param("24.09", {"tensorflow_version": 2}, "single", [], id="TensorFlow"),
        pytest.param("22.10", {}, "single", [], id="nothing"),
        pytest.param("23.08", {"shm_default_byte_size": (4 << 20) - 1}, "single", found("CT422"), id="below 4 MiB"),
        pytest.param("23.08", {"shm_default_byte_size": 4 << 20}, "single", [], id="4 MiB"),
        pytest.param("23.09", {"shm_default_byte_size": 1 << 20}, "single", [], id="1 MiB"),
        pytest.param("24.09", {"tensorflow_version": 1}, "single", [], id="TensorFlow 1 without a model of it"),
        pytest.param("26.05", {"additional_args": [CLOSED.format("inference")]}, "single", found("CT424"), id="invoke"),
        pytest.param("26.05", {"additional_args": [CLOSED.format("inference")]}, "multi", [], id="not in a fleet yet"),
        pytest.param("26.07", {"additional_args": [CLOSED.format("inference")]}, "multi", found("CT424"), id="in both"),
        pytest.param("26.05", {"additional_args": [CLOSED.format("model-repository")]}, "single", [], id="no loads"),
        pytest.param(
            "26.05", {"additional_args": [CLOSED.format("trace,model-repository")]}, "multi", found("CT424"), id="loads"
        ),
        pytest.param("26.02", {"additional_args": [CLOSED.format("health")]}, "single", [], id="another port only"),
    ],
)
def test_what_is_found(
    messages: Messages,
    write: Write,
    release: str,
    fields: dict[str, Any],
    mode: Literal["single", "multi"],
    findings: list[Place],
) -> None:
    environment = ContainerEnvironment(**fields)
    repository = write(PYTHON, base={})
    assert messages.of(repository.check(mode, platform_with(release), environment=environment)) == findings


def test_models_of_other_backends_need_no_shared_memory(write: Write) -> None:
    repository = write({"model/config.pbtxt": 'backend: "dali"', "model/1/model.dali": ""}, base={})
    environment = ContainerEnvironment(shm_default_byte_size=1 << 20)
    codes = {finding.code for finding in repository.check(platform=platform_with("23.07"), environment=environment)}
    assert "CT422" not in codes


def test_without_an_environment_nothing_is_found(write: Write) -> None:
    assert write(PYTHON, base={}).check(platform=platform_with("23.06")) == ()
