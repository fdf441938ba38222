"""The rules CT270 to CT279: the instances of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import ContainerEnvironment
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from sample_repositories import Write


def found(write: Write, config: str) -> list[str]:
    """What the rules CT270 to CT279 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [str(each) for each in repository.check() if "CT270" <= each.code <= "CT279"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            "instance_group { kind: KIND_CPU gpus: 0 }",
            [
                "model/config.pbtxt instance_group[0].gpus: error CT270: gpus is [0], and the server would "
                "not load 'model': instance group model_0 of model model has kind KIND_CPU but specifies one "
                "or more GPUs; leave gpus out, or write kind: KIND_GPU and ids from 0 on",
            ],
            id="CT270 CPU",
        ),
        pytest.param(
            'instance_group { name: "g" kind: KIND_MODEL gpus: 0 }',
            [
                "model/config.pbtxt instance_group[0].gpus: error CT270: gpus is [0], and the server would "
                "not load 'model': instance group g of model model has kind KIND_MODEL but specifies one or "
                "more GPUs; leave gpus out, or write kind: KIND_GPU and ids from 0 on",
            ],
            id="CT270 model",
        ),
        pytest.param(
            "instance_group { gpus: -1 }",
            [
                "model/config.pbtxt instance_group[0].gpus: error CT270: gpus is [-1], and the server would "
                "not load 'model': instance group model_0 of model model has kind KIND_CPU but specifies one "
                "or more GPUs; leave gpus out, or write kind: KIND_GPU and ids from 0 on",
            ],
            id="CT270 negative",
        ),
        pytest.param(
            "instance_group { kind: KIND_GPU gpus: [ 0, -1 ] }",
            [
                "model/config.pbtxt instance_group[0].gpus[1]: error CT271: the GPU -1 does not exist, and "
                "the server would not load 'model': instance group model_0 of model model specifies invalid "
                "or unsupported gpu id -1; write ids from 0 on, or leave gpus out for all GPUs",
            ],
            id="CT271",
        ),
        pytest.param(
            "instance_group { } instance_group { count: -1 }",
            [
                "model/config.pbtxt instance_group[1].count: warning CT272: count is -1, and the server "
                "would make as many instances of 'model' as if it were left out: at least one; write the "
                "number of instances",
            ],
            id="CT272",
        ),
        pytest.param(
            'instance_group { profile: "0" }',
            [
                "model/config.pbtxt instance_group[0].profile: error CT273: profile is ['0'] and the backend "
                "is 'python', and the server would not load 'model': instance group model_0 of model model "
                "and platform specifies profile field which is only supported for TensorRT models; leave "
                "profile out",
            ],
            id="CT273",
        ),
        pytest.param(
            "instance_group { passive: true } instance_group { passive: true }",
            [
                "model/config.pbtxt instance_group: error CT276: no instance of 'model' would take requests, "
                "and the server would crash at the first one; leave passive out, or add a group that is not "
                "passive",
            ],
            id="CT276",
        ),
        pytest.param(
            "instance_group { rate_limiter { priority: 2 } }",
            [
                "model/config.pbtxt instance_group[0].rate_limiter: warning CT277: the server that SageMaker "
                "starts limits no rate (--rate-limit=off), so that rate_limiter would have no effect on "
                "'model'; leave it out, or switch it on with --rate-limit=execution_count in additional_args",
            ],
            id="CT277",
        ),
        pytest.param(
            "instance_group { secondary_devices { device_id: 0 } }",
            [
                "model/config.pbtxt instance_group[0].secondary_devices: warning CT278: the instances of "
                "'model' ask for a deep learning accelerator (KIND_NVDLA), which no SageMaker instance has; "
                "leave secondary_devices out",
            ],
            id="CT278",
        ),
        pytest.param(
            'instance_group { host_policy: "near" }',
            [
                "model/config.pbtxt instance_group[0].host_policy: warning CT279: the server that SageMaker "
                "starts knows no host policy 'near', so that the instances of 'model' would run without one; "
                "leave it out, or define it with --host-policy=near,<setting>=<value> in additional_args",
            ],
            id="CT279",
        ),
    ],
)
def test_it_is_found(write: Write, config: str, findings: list[str]) -> None:
    assert found(write, 'backend: "python" ' + config) == findings


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


@pytest.mark.parametrize(
    ("profile", "consequence"),
    [
        ("large", "would not load 'model': unable to parse 'large': stoi"),
        ("", "would not load 'model': profile name must not be empty"),
        ("-1", "would not load 'model': specifies invalid profile -1"),
        ("2147483648", "would crash: std::out_of_range"),
        ("-99999999999", "would crash: std::out_of_range"),
    ],
)
def test_profiles_are_named_by_their_index(write: Write, profile: str, consequence: str) -> None:
    config = f'platform: "tensorrt_plan" instance_group {{ kind: KIND_GPU profile: [ "0", "{profile}" ] }}'
    assert found(write, config) == [
        f"model/config.pbtxt instance_group[0].profile[1]: error CT274: the profile {profile!r} is no index, and the "
        f'server {consequence}; write the index of a profile of the plan, for example "0"'
    ]


@pytest.mark.parametrize(
    ("backend", "kind", "words"),
    [
        ("tensorrt", "KIND_CPU", "TensorRT backend supports only GPU device; write kind: KIND_GPU"),
        ("tensorrt", "KIND_MODEL", "TensorRT backend supports only GPU device; write kind: KIND_GPU"),
        ("openvino", "KIND_GPU", "Triton OpenVINO backend supports only Kind CPU and AUTO; write kind: KIND_CPU"),
        ("openvino", "KIND_MODEL", "Triton OpenVINO backend supports only Kind CPU and AUTO; write kind: KIND_CPU"),
    ],
)
def test_kinds_that_a_backend_does_not_run_on(write: Write, backend: str, kind: str, words: str) -> None:
    assert found(write, f'backend: "{backend}" instance_group {{ kind: {kind} }}') == [
        f"model/config.pbtxt instance_group[0].kind: error CT275: the kind is {kind} and the backend is "
        f"{backend!r}, and "
        f"the server would not load 'model': unable to load model 'model', {words}"
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
