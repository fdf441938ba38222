"""The rules CT280 to CT282: the response cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Write


def found(write: Write, config: str) -> list[Finding]:
    """What the rules CT280 to CT289 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [each for each in repository.check() if "CT280" <= each.code <= "CT289"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            "response_cache { enable: true } model_transaction_policy { decoupled: true }",
            [("CT280", "model/config.pbtxt", "response_cache.enable")],
            id="CT280",
        ),
        pytest.param(
            "response_cache { enable: true } sequence_batching { }",
            [("CT281", "model/config.pbtxt", "response_cache.enable")],
            id="CT281",
        ),
        pytest.param(
            "response_cache { enable: true }", [("CT282", "model/config.pbtxt", "response_cache.enable")], id="CT282"
        ),
    ],
)
def test_it_is_found(messages: Messages, write: Write, config: str, findings: list[Place]) -> None:
    assert messages.of(found(write, 'backend: "python" ' + config)) == findings


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            "model_transaction_policy { decoupled: true }",
            id="decoupled",
        ),
        pytest.param(
            "response_cache { enable: false }",
            id="a cache that is off",
        ),
    ],
)
def test_it_is_no_fault(write: Write, config: str) -> None:
    assert found(write, 'backend: "python" ' + config) == []


ENSEMBLE = """
platform: "ensemble"
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step {
    model_name: "STEP" model_version: -1
    input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
  }
}
"""


@pytest.mark.parametrize("cached", ["inner", "outer"])
def test_an_ensemble_is_decoupled_by_any_of_its_parts(messages: Messages, write: Write, cached: str) -> None:
    tensors = "\n".join(ENSEMBLE.splitlines()[2:4])
    files = {
        "part/config.pbtxt": 'backend: "python" model_transaction_policy { decoupled: true }' + tensors,
        "part/1/model.py": PYTHON_MODEL,
        "inner/config.pbtxt": ENSEMBLE.replace("STEP", "part"),
        "inner/1/.gitkeep": "",
        "outer/config.pbtxt": ENSEMBLE.replace("STEP", "inner"),
        "outer/1/.gitkeep": "",
    }
    files[f"{cached}/config.pbtxt"] += "response_cache { enable: true }"
    findings = write(files, base={}).check()
    assert messages.of(each for each in findings if each.code.startswith("CT28")) == [
        ("CT280", f"{cached}/config.pbtxt", "response_cache.enable")
    ]


def test_a_server_with_a_cache_answers_the_warning(write: Write) -> None:
    config = 'backend: "python" response_cache { enable: true }'
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    arguments = ("--cache-config=local,size=1048576",)
    environment = ContainerEnvironment(default_model_name="model", additional_args=arguments)
    assert "CT282" in {each.code for each in repository.check()}
    assert "CT282" not in {each.code for each in repository.check(environment=environment)}


@pytest.mark.parametrize(("release", "count"), [("24.03", 1), ("24.05", 0)])
def test_older_releases_cache_no_ensembles(messages: Messages, write: Write, release: str, count: int) -> None:
    tensors = "\n".join(ENSEMBLE.splitlines()[2:4])
    files = {
        "part/config.pbtxt": 'backend: "python" response_cache { enable: true }' + tensors,
        "part/1/model.py": PYTHON_MODEL,
        "whole/config.pbtxt": ENSEMBLE.replace("STEP", "part") + "response_cache { enable: true }",
        "whole/1/.gitkeep": "",
    }
    environment = ContainerEnvironment(additional_args=("--cache-config=local,size=1048576",))
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = write(files, base={}).check(platform=platform, environment=environment)
    found = messages.of(each for each in findings if each.code == "CT282")
    assert found == [("CT282", "whole/config.pbtxt", "response_cache.enable")] * count
