"""The rules CT610 to CT621: whether the models fit the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
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


MANY = (
    ".: warning CT621: {total} instances of Python models (model {total}) start with 16,777,216 bytes of shared memory"
    " each, and the container has 67,108,864 bytes of it, so that the last of them would not start: Unable to"
    " initialize shared memory key; run fewer instances, or lower shm_default_byte_size in the container's environment"
    " to {share}"
)


@pytest.mark.parametrize(
    ("files", "instance_type", "findings"),
    [
        pytest.param(
            python_model("instance_group { gpus: [ 0, 4 ] kind: KIND_GPU }"),
            "ml.g5.12xlarge",
            [
                "model/config.pbtxt instance_group[0].gpus[1]: error CT610: ml.g5.12xlarge has 4 GPUs, numbered from 0,"
                " and the server would not load 'model': instance group model_0 of model model specifies invalid or"
                " unsupported gpu id 4; leave gpus out for one instance on each GPU, or list GPUs of the instance",
            ],
            id="CT610 a GPU too many",
        ),
        pytest.param(
            python_model('instance_group { name: "own" gpus: 1 }'),
            "ml.g5.xlarge",
            [
                "model/config.pbtxt instance_group[0].gpus[0]: error CT610: ml.g5.xlarge has one GPU, numbered from 0,"
                " and the server would not load 'model': instance group own of model model has kind KIND_CPU but"
                " specifies one or more GPUs; leave gpus out for one instance on each GPU, or list GPUs of the"
                " instance",
            ],
            id="CT610 a group that leaves its kind to the server",
        ),
        pytest.param(python_model("instance_group { gpus: 3 }"), "ml.g5.12xlarge", [], id="the last GPU"),
        pytest.param(
            python_model("instance_group { gpus: 9 }"), "ml.g7.12xlarge", [], id="a count that no source says"
        ),
        pytest.param(
            plans({"7.5": "t4.plan", "8.6": "a10g.plan"}),
            "ml.g6.xlarge",
            [
                "model/config.pbtxt cc_model_filenames: warning CT611: ml.g6.xlarge has the GPU NVIDIA L4 of compute"
                " capability 8.9, and files are named for 7.5, 8.6 only, so that the server would take the default"
                " file; a TensorRT plan of another GPU ends with: unable to load plan file to auto complete config; add"
                ' the key "8.9" with a file for this GPU',
            ],
            id="CT611 files for other GPUs",
        ),
        pytest.param(
            {
                "model/config.pbtxt": 'platform: "tensorrt_plan" cc_model_filenames { key: "7.5" value: "t4.plan" }',
                "model/1/t4.plan": "plan",
            },
            "ml.g6.xlarge",
            [
                "model/1/model.plan: error CT120: the file is missing, and the server would not load 'model': unable to"
                " load plan file to auto complete config: model/1/model.plan; rename model/1/t4.plan, or write"
                ' default_model_filename: "t4.plan"',
            ],
            id="no file at all",
        ),
        pytest.param(plans({"8.9": "l4.plan"}), "ml.g6e.xlarge", [], id="a file for this GPU"),
        pytest.param(
            dali_model(),
            "ml.g5.12xlarge",
            [
                "model/config.pbtxt instance_group: warning CT612: 'model' would run on 4 GPUs of ml.g5.12xlarge, and"
                " servers that ran DALI on several GPUs have been reported to end under load with: Signal (11); try it"
                " under load, or give the model one GPU: instance_group { kind: KIND_GPU gpus: 0 }",
            ],
            id="CT612 DALI on four GPUs",
        ),
        pytest.param(dali_model("instance_group { gpus: 2 }"), "ml.g5.12xlarge", [], id="DALI on one of four"),
        pytest.param(dali_model("instance_group { kind: KIND_CPU }"), "ml.g5.12xlarge", [], id="DALI on the CPU"),
        pytest.param(dali_model(), "ml.g5.xlarge", [], id="an instance with one GPU"),
        pytest.param(
            python_model("instance_group { count: 2 }"),
            "ml.g5.12xlarge",
            [MANY.format(total=8, share="8,388,608")],
            id="CT621 an instance group per GPU",
        ),
        pytest.param(python_model(), "ml.g5.48xlarge", [MANY.format(total=8, share="8,388,608")], id="CT621 no group"),
        pytest.param(
            python_model("instance_group { kind: KIND_CPU count: 5 }"),
            "ml.g5.xlarge",
            [MANY.format(total=5, share="12,582,912")],
            id="CT621 on the CPU",
        ),
        pytest.param(python_model("instance_group { kind: KIND_CPU count: 4 }"), "ml.g5.xlarge", [], id="just enough"),
        pytest.param(python_model(), "ml.g5.12xlarge", [], id="one per GPU"),
    ],
)
def test_instances(write: Write, files: Mapping[str, Change], instance_type: str, findings: list[str]) -> None:
    repository = write(files, base={})
    found = [finding for finding in repository.check(platform=platform(instance_type)) if finding.code != "CT151"]
    assert [str(finding) for finding in found] == findings


def test_shared_memory_of_a_known_environment(write: Write) -> None:
    repository = write(python_model("instance_group { kind: KIND_CPU count: 16 }"), base={})
    assert [finding.code for finding in repository.check()] == ["CT621"]
    assert [finding.code for finding in repository.check(environment=ContainerEnvironment())] == ["CT621"]
    assert repository.check(environment=ContainerEnvironment(shm_default_byte_size=4 << 20)) == ()
    (finding,) = repository.check(environment=ContainerEnvironment(shm_default_byte_size=16 << 30))
    assert "start with 17,179,869,184 bytes of shared memory each" in finding.message


def test_an_instance_type_outside_the_list_for_multi_model_endpoints(write: Write) -> None:
    repository = write(python_model(), base={})
    (finding,) = repository.check("multi", platform("ml.g6.xlarge"))
    assert str(finding) == (
        ".: warning CT620: AWS's list of instance types for multi-model endpoints with GPUs, as this library read it,"
        " does not name ml.g6.xlarge: it ends at ml.g5 and has types with one GPU only, and SageMaker may refuse the"
        " endpoint; try it in your account, then acknowledge this, or use a listed type such as ml.g5.xlarge"
    )
    assert repository.check("multi", platform("ml.g5.xlarge")) == ()
    assert repository.check("single", platform("ml.g6.xlarge")) == ()
