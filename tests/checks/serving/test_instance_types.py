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
    return {"model/config.pbtxt": f'backend: "dali" {instance_group}', "model/1/dali.py": ""}


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
            python_model("instance_group { count: 17 }"),
            "ml.g5.12xlarge",
            [("CT621", ".", "")],
            id="CT621 an instance group per GPU",
        ),
        pytest.param(
            python_model("instance_group { kind: KIND_CPU count: 65 }"),
            "ml.g5.xlarge",
            [("CT621", ".", "")],
            id="CT621 on the CPU",
        ),
        pytest.param(python_model("instance_group { kind: KIND_CPU count: 64 }"), "ml.g5.xlarge", [], id="just enough"),
        pytest.param(
            {
                **python_model("instance_group { kind: KIND_CPU count: 33 } version_policy { all {} }"),
                "model/2/model.py": PYTHON_MODEL,
            },
            "ml.g5.xlarge",
            [("CT621", ".", "")],
            id="CT621 two versions",
        ),
        pytest.param(
            {**python_model("instance_group { kind: KIND_CPU count: 33 }"), "model/2/model.py": PYTHON_MODEL},
            "ml.g5.xlarge",
            [],
            id="the latest of two versions",
        ),
        pytest.param(python_model(), "ml.g5.12xlarge", [], id="one per GPU"),
    ],
)
def test_instances(
    messages: Messages, write: Write, files: Mapping[str, Change], instance_type: str, findings: list[Place]
) -> None:
    repository = write(files, base={})
    found = [finding for finding in repository.check(platform=platform(instance_type)) if finding.code != "CT151"]
    assert messages.of(found) == findings


@pytest.mark.parametrize(
    ("devices", "gpus", "is_there"),
    [
        pytest.param("2,3", 2, False, id="the number of the machine"),
        pytest.param("2,3", 1, True, id="numbered from 0 again"),
        pytest.param("3,7,0", 1, False, id="behind a GPU that there is not"),
        pytest.param("GPU-8932f937,GPU-a1", 1, True, id="UUIDs"),
        pytest.param("-1", 0, False, id="none"),
        pytest.param("", 0, False, id="an empty list"),
        pytest.param("${Token[TOKEN.1]}", 3, True, id="not known at synth"),
    ],
)
def test_cuda_numbers_the_visible_gpus_from_0(
    messages: Messages, write: Write, devices: str, gpus: int, is_there: bool
) -> None:
    repository = write(python_model(f"instance_group {{ kind: KIND_GPU gpus: {gpus} }}"), base={})
    environment = ContainerEnvironment(variables={"CUDA_VISIBLE_DEVICES": devices})
    found = messages.of(repository.check(platform=platform("ml.g5.12xlarge"), environment=environment))
    assert found == [("CT610", "model/config.pbtxt", "instance_group[0].gpus[0]")] * (not is_there)


def test_only_visible_gpus_have_instances(write: Write) -> None:
    repository = write(python_model("instance_group { kind: KIND_GPU count: 20 }"), base={})
    for devices, codes in (("0", set[str]()), ("0,1,2,3", {"CT621"})):
        environment = ContainerEnvironment(variables={"CUDA_VISIBLE_DEVICES": devices})
        found = repository.check(platform=platform("ml.g5.12xlarge"), environment=environment)
        assert {each.code for each in found} == codes


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(
    ("release", "size", "fit"),
    [
        pytest.param(None, None, 16, id="no release"),
        pytest.param("22.10", None, 16, id="an old release"),
        pytest.param("23.08", None, 16, id="the last with 4 MiB"),
        pytest.param("23.09", None, 64, id="the first with 1 MiB"),
        pytest.param("25.09", 16 << 20, 4, id="a size of one's own"),
        pytest.param("25.09", 64 << 20, 1, id="all there is"),
    ],
)
def test_the_shared_memory_of_a_container(
    messages: Messages, write: Write, release: str | None, size: int | None, fit: int, more: int
) -> None:
    where = None if release is None else ServingPlatform(release=release, instance_type="ml.g4dn.xlarge")
    repository = write(python_model(f"instance_group {{ kind: KIND_CPU count: {fit + more} }}"), base={})
    found = repository.check(platform=where, environment=ContainerEnvironment(shm_default_byte_size=size))
    assert messages.of(each for each in found if each.code == "CT621") == [("CT621", ".", "")] * more


def test_an_instance_type_outside_the_list_for_multi_model_endpoints(messages: Messages, write: Write) -> None:
    repository = write(python_model(), base={})
    assert messages.of(repository.check("multi", platform("ml.g6.xlarge"))) == [("CT620", ".", "")]
    assert repository.check("multi", platform("ml.g5.xlarge")) == ()
    assert repository.check("single", platform("ml.g6.xlarge")) == ()
