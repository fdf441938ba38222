"""The rules CT270 to CT279: the instances of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import ContainerEnvironment
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Write


def found(write: Write, config: str) -> list[Finding]:
    """What the rules CT270 to CT279 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [each for each in repository.check() if "CT270" <= each.code <= "CT279"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            "instance_group { kind: KIND_CPU gpus: 0 }",
            [("CT270", "model/config.pbtxt", "instance_group[0].gpus")],
            id="CT270 CPU",
        ),
        pytest.param(
            'instance_group { name: "g" kind: KIND_MODEL gpus: 0 }',
            [("CT270", "model/config.pbtxt", "instance_group[0].gpus")],
            id="CT270 model",
        ),
        pytest.param(
            "instance_group { gpus: -1 }",
            [("CT270", "model/config.pbtxt", "instance_group[0].gpus")],
            id="CT270 negative",
        ),
        pytest.param(
            "instance_group { kind: KIND_GPU gpus: [ 0, -1 ] }",
            [("CT271", "model/config.pbtxt", "instance_group[0].gpus[1]")],
            id="CT271",
        ),
        pytest.param(
            "instance_group { } instance_group { count: -1 }",
            [("CT272", "model/config.pbtxt", "instance_group[1].count")],
            id="CT272",
        ),
        pytest.param(
            'instance_group { profile: "0" }',
            [("CT273", "model/config.pbtxt", "instance_group[0].profile")],
            id="CT273",
        ),
        pytest.param(
            "instance_group { passive: true } instance_group { passive: true }",
            [("CT276", "model/config.pbtxt", "instance_group")],
            id="CT276",
        ),
        pytest.param(
            "instance_group { rate_limiter { priority: 2 } }",
            [("CT277", "model/config.pbtxt", "instance_group[0].rate_limiter")],
            id="CT277",
        ),
        pytest.param(
            "instance_group { secondary_devices { device_id: 0 } }",
            [("CT278", "model/config.pbtxt", "instance_group[0].secondary_devices")],
            id="CT278",
        ),
        pytest.param(
            'instance_group { host_policy: "near" }',
            [("CT279", "model/config.pbtxt", "instance_group[0].host_policy")],
            id="CT279",
        ),
    ],
)
def test_it_is_found(messages: Messages, write: Write, config: str, findings: list[Place]) -> None:
    assert messages.of(found(write, 'backend: "python" ' + config)) == findings


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            "",
            id="nothing said",
        ),
        pytest.param(
            "instance_group { kind: KIND_CPU count: 4 }",
            id="on the CPU",
        ),
        pytest.param(
            "instance_group { kind: KIND_GPU gpus: 0 }",
            id="on one GPU",
        ),
        pytest.param(
            "instance_group { gpus: 1 }",
            id="left to the server",
        ),
        pytest.param(
            'instance_group { name: "g" } instance_group { name: "g" }',
            id="two groups of one name",
        ),
        pytest.param(
            "instance_group { passive: true } instance_group { }",
            id="one group for requests",
        ),
        pytest.param(
            'instance_group { host_policy: "cpu" } instance_group { kind: KIND_GPU host_policy: "gpu_0" }',
            id="policies of the server",
        ),
    ],
)
def test_it_is_no_fault(write: Write, config: str) -> None:
    assert found(write, 'backend: "python" ' + config) == []


@pytest.mark.parametrize("profile", ["large", "", "-1", "2147483648", "-99999999999"])
def test_profiles_are_named_by_their_index(messages: Messages, write: Write, profile: str) -> None:
    config = f'platform: "tensorrt_plan" instance_group {{ kind: KIND_GPU profile: [ "0", "{profile}" ] }}'
    assert messages.of(found(write, config)) == [("CT274", "model/config.pbtxt", "instance_group[0].profile[1]")]


@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("tensorrt", "KIND_CPU"),
        ("tensorrt", "KIND_MODEL"),
        ("openvino", "KIND_GPU"),
        ("openvino", "KIND_MODEL"),
    ],
)
def test_kinds_that_a_backend_does_not_run_on(messages: Messages, write: Write, backend: str, kind: str) -> None:
    assert messages.of(found(write, f'backend: "{backend}" instance_group {{ kind: {kind} }}')) == [
        ("CT275", "model/config.pbtxt", "instance_group[0].kind")
    ]


def test_several_gpus_are_no_reason_for_a_cpu(messages: Messages, write: Write) -> None:
    config = 'backend: "tensorrt" parameters { key: "enable_multi_device" value { string_value: "true" } }'
    assert messages.of(found(write, f"{config} instance_group {{ kind: KIND_CPU }}")) == [
        ("CT275", "model/config.pbtxt", "instance_group[0].kind")
    ]


@pytest.mark.parametrize(
    "config",
    [
        'backend: "tensorrt" instance_group { kind: KIND_GPU }',
        'backend: "tensorrt" instance_group { }',
        'backend: "tensorrt" parameters { key: "enable_multi_device" value { string_value: "true" } } '
        "instance_group { kind: KIND_MODEL }",
        'backend: "openvino" instance_group { kind: KIND_CPU }',
        'backend: "onnxruntime" instance_group { kind: KIND_CPU } instance_group { kind: KIND_GPU }',
    ],
)
def test_kinds_that_a_backend_runs_on(write: Write, config: str) -> None:
    assert found(write, config) == []


@pytest.mark.parametrize(
    ("argument", "codes"),
    [
        ("--rate-limit=execution_count", {"CT279"}),
        ("--host-policy=near,numa-node=0", {"CT277"}),
        ("--host-policy=nearer,numa-node=0", {"CT277", "CT279"}),
    ],
)
def test_arguments_of_the_server_answer_a_warning(write: Write, argument: str, codes: set[str]) -> None:
    config = 'backend: "python" instance_group { host_policy: "near" rate_limiter { priority: 2 } }'
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    environment = ContainerEnvironment(default_model_name="model", additional_args=(argument,))
    findings = repository.check(environment=environment)
    assert {each.code for each in findings if each.code.startswith("CT27")} == codes
