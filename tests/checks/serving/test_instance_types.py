"""The rules CT610 to CT621: whether the models fit the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


def python_model(instance_group: str = "") -> Mapping[str, Change]:
    return {"model/config.pbtxt": f'backend: "python" {instance_group}', "model/1/model.py": PYTHON_MODEL}


def dali_model(instance_group: str = "") -> Mapping[str, Change]:
    return {"model/config.pbtxt": f'backend: "dali" {instance_group}', "model/1/dali.py": "pipeline"}


def plans(keys: Mapping[str, str]) -> Mapping[str, Change]:
    named = " ".join(f'cc_model_filenames {{ key: "{key}" value: "{name}" }}' for key, name in keys.items())
    return {
        "model/config.pbtxt": f'platform: "tensorrt_plan" {named}',
        "model/1/model.plan": "plan",
        **{f"model/1/{name}": "plan" for name in keys.values()},
    }


def platform(instance_type: str) -> ServingPlatform:
    return ServingPlatform(release="25.09", instance_type=instance_type)


@pytest.mark.parametrize(
    ("files", "instance_type", "findings"),
    [
        pytest.param(
            python_model("instance_group { gpus: [ 0, 4 ] kind: KIND_GPU }"),
            "ml.g5.12xlarge",
            [("CT610", "model/config.pbtxt", "instance_group[0].gpus[1]")],
            id="CT610 a GPU too many",
        ),
        pytest.param(
            python_model('instance_group { name: "own" gpus: 1 }'),
            "ml.g5.xlarge",
            [("CT610", "model/config.pbtxt", "instance_group[0].gpus[0]")],
            id="CT610 a group that leaves its kind to the server",
        ),
        pytest.param(python_model("instance_group { gpus: 3 }"), "ml.g5.12xlarge", [], id="the last GPU"),
        pytest.param(python_model("instance_group { gpus: 1 }"), "ml.g7.12xlarge", [], id="the second of two GPUs"),
        pytest.param(
            plans({"7.5": "t4.plan", "8.6": "a10g.plan"}),
            "ml.g6.xlarge",
            [("CT611", "model/config.pbtxt", "cc_model_filenames")],
            id="CT611 files for other GPUs",
        ),
        pytest.param(
            {
                "model/config.pbtxt": 'platform: "tensorrt_plan" cc_model_filenames { key: "7.5" value: "t4.plan" }',
                "model/1/t4.plan": "plan",
            },
            "ml.g6.xlarge",
            [("CT120", "model/1/model.plan", "")],
            id="no file at all",
        ),
        pytest.param(plans({"8.9": "l4.plan"}), "ml.g6e.xlarge", [], id="a file for this GPU"),
        pytest.param(
            dali_model(),
            "ml.g5.12xlarge",
            [("CT612", "model/config.pbtxt", "instance_group")],
            id="CT612 DALI on four GPUs",
        ),
        pytest.param(dali_model("instance_group { gpus: 2 }"), "ml.g5.12xlarge", [], id="DALI on one of four"),
        pytest.param(dali_model("instance_group { kind: KIND_CPU }"), "ml.g5.12xlarge", [], id="DALI on the CPU"),
        pytest.param(dali_model(), "ml.g5.xlarge", [], id="an instance with one GPU"),
        pytest.param(
            python_model("instance_group { count: 2 }"),
            "ml.g5.12xlarge",
            [("CT621", ".", "")],
            id="CT621 an instance group per GPU",
        ),
        pytest.param(python_model(), "ml.g5.48xlarge", [("CT621", ".", "")], id="CT621 no group"),
        pytest.param(
            python_model("instance_group { kind: KIND_CPU count: 5 }"),
            "ml.g5.xlarge",
            [("CT621", ".", "")],
            id="CT621 on the CPU",
        ),
        pytest.param(python_model("instance_group { kind: KIND_CPU count: 4 }"), "ml.g5.xlarge", [], id="just enough"),
        pytest.param(python_model(), "ml.g5.12xlarge", [], id="one per GPU"),
    ],
)
def test_instances(
    messages: Messages, write: Write, files: Mapping[str, Change], instance_type: str, findings: list[Place]
) -> None:
    repository = write(files, base={})
    found = [finding for finding in repository.check(platform=platform(instance_type)) if finding.code != "CT151"]
    assert messages.of(found) == findings


def test_shared_memory_of_a_known_environment(messages: Messages, write: Write) -> None:
    repository = write(python_model("instance_group { kind: KIND_CPU count: 16 }"), base={})
    assert [finding.code for finding in repository.check()] == ["CT621"]
    assert [finding.code for finding in repository.check(environment=ContainerEnvironment())] == ["CT621"]
    assert repository.check(environment=ContainerEnvironment(shm_default_byte_size=4 << 20)) == ()
    large = ContainerEnvironment(shm_default_byte_size=16 << 30)
    assert messages.of(repository.check(environment=large)) == [("CT621", ".", "")]


def test_an_instance_type_outside_the_list_for_multi_model_endpoints(messages: Messages, write: Write) -> None:
    repository = write(python_model(), base={})
    assert messages.of(repository.check("multi", platform("ml.g6.xlarge"))) == [("CT620", ".", "")]
    assert repository.check("multi", platform("ml.g5.xlarge")) == ()
    assert repository.check("single", platform("ml.g6.xlarge")) == ()
