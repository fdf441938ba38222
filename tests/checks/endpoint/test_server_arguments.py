"""The rules CT425 to CT428: arguments of tritonserver without the effect that they were written for.

`tests/integration/test_container_settings_against_server.py` shows that the server takes such numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

PYTHON = {"model/config.pbtxt": 'backend: "python"', "model/1/model.py": PYTHON_MODEL}


def found(code: str) -> list[Place]:
    return [(code, ".", "")]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        pytest.param("--pinned-memory-pool-byte-size=256MB", found("CT425"), id="MB"),
        pytest.param("--pinned-memory-pool-byte-size=1g", found("CT425"), id="g"),
        pytest.param("--pinned-memory-pool-byte-size=1e9", found("CT425"), id="an exponent"),
        pytest.param("--pinned-memory-pool-byte-size=256_000_000", found("CT425"), id="underscores"),
        pytest.param("--pinned-memory-pool-byte-size=0x10", found("CT425"), id="hexadecimal"),
        pytest.param("--pinned-memory-pool-byte-size=268435456", [], id="bytes"),
        pytest.param("--pinned-memory-pool-byte-size=-1", [], id="negative"),
        pytest.param("--exit-timeout-secs=30s", found("CT425"), id="seconds"),
        pytest.param("--exit-timeout-secs=1.5", found("CT425"), id="a fraction"),
        pytest.param("--cuda-memory-pool-byte-size=0:64MB", found("CT425"), id="a pair"),
        pytest.param("--cuda-memory-pool-byte-size=0:67108864", [], id="a pair of numbers"),
        pytest.param("--model-load-gpu-limit=0:0.5%", found("CT425"), id="percent"),
        pytest.param("--model-load-gpu-limit=0:0.5", [], id="a fraction of memory"),
        pytest.param("--min-supported-compute-capability=7.5x", found("CT425"), id="a real number"),
        pytest.param("--min-supported-compute-capability=7.5", [], id="a sound real number"),
        pytest.param("--log-verbose=2x", found("CT425"), id="a level"),
        pytest.param("--log-verbose=true", [], id="a flag"),
        pytest.param("--cache-config=local,size=1MiB", found("CT425"), id="a cache"),
        pytest.param("--cache-config=local,size=1048576", [], id="a cache in bytes"),
        pytest.param("--backend-config=python,shm-default-byte-size=16777216b", found("CT425"), id="a backend"),
        pytest.param("--backend-config=python,shm-default-byte-size=16777216", [], id="a backend in bytes"),
        pytest.param("--id=5abc", [], id="a text"),
        pytest.param(
            "--backend-config=python,shm_default_byte_size=16777216", found("CT426"), id="underscores for dashes"
        ),
        pytest.param("--backend-config=onnxruntime,typo=1", found("CT426"), id="unknown"),
        pytest.param("--backend-config=onnxruntime,enable-global-threadpool=1", [], id="known"),
        pytest.param("--backend-config=onnxruntime,default-max-batch-size=8", [], id="of every backend"),
        pytest.param("--backend-config=tensorrt,plugins=/opt/ml/model/lib.so", [], id="plugins"),
        pytest.param("--backend-config=vllm,typo=1", [], id="another backend"),
        pytest.param("--backend-config=default-max-batch-size=8", [], id="no backend"),
        pytest.param("--cuda-memory-pool-byte-size=1:67108864", found("CT427"), id="a second GPU"),
        pytest.param("--cuda-virtual-address-size=7:67108864", found("CT427"), id="virtual addresses"),
        pytest.param("--model-load-gpu-limit=4:0.5", found("CT427"), id="a limit of a fifth GPU"),
        pytest.param("--backend-directory=/opt/tritonserver/backends/", found("CT428"), id="a slash"),
        pytest.param("--backend-directory=/opt/tritonserver/backends", [], id="no slash"),
    ],
)
def test_arguments(messages: Messages, write: Write, argument: str, expected: list[Place]) -> None:
    repository = write(PYTHON, base={})
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    environment = ContainerEnvironment(additional_args=(argument,))
    assert messages.of(repository.check(platform=platform, environment=environment)) == expected


@pytest.mark.parametrize(("instance", "expected"), [("ml.g5.12xlarge", []), ("ml.g5.xlarge", found("CT427"))])
def test_the_instance_decides(write: Write, instance: str, expected: list[Place]) -> None:
    platform = ServingPlatform(release="25.09", instance_type=instance)
    environment = ContainerEnvironment(additional_args=("--model-load-gpu-limit=3:0.5",))
    findings = write(PYTHON, base={}).check(platform=platform, environment=environment)
    assert [(each.code, str(each.path), each.field or "") for each in findings] == expected


SLASH = "--backend-directory=/opt/tritonserver/backends/"


@pytest.mark.parametrize(
    ("release", "arguments", "expected"),
    [
        pytest.param("23.09", (SLASH,), [], id="a release that does not compare paths"),
        pytest.param("23.10", (SLASH,), found("CT428"), id="the first that does"),
        pytest.param("25.09", (SLASH, SLASH.removesuffix("/")), [], id="the last one counts"),
        pytest.param(None, (SLASH,), [], id="no release"),
    ],
)
def test_a_slash_after_the_backend_directory(
    write: Write, release: str | None, arguments: tuple[str, ...], expected: list[Place]
) -> None:
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = write(PYTHON, base={}).check(
        platform=platform, environment=ContainerEnvironment(additional_args=arguments)
    )
    assert [(each.code, str(each.path), each.field or "") for each in findings] == expected


def test_a_slash_matters_to_python_models_only(write: Write) -> None:
    repository = write({"model/config.pbtxt": 'backend: "onnxruntime"', "model/1/model.onnx": ""}, base={})
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    assert repository.check(platform=platform, environment=ContainerEnvironment(additional_args=(SLASH,))) == ()


def test_without_a_platform_a_number_is_judged(write: Write) -> None:
    environment = ContainerEnvironment(additional_args=("--pinned-memory-pool-byte-size=256MB",))
    assert [each.code for each in write(PYTHON, base={}).check(environment=environment)] == ["CT425"]
