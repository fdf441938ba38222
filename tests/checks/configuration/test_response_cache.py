"""The rules CT280 to CT282: the response cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import ContainerEnvironment
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from sample_repositories import Write


def found(write: Write, config: str) -> list[str]:
    """What the rules CT280 to CT289 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [str(each) for each in repository.check() if "CT280" <= each.code <= "CT289"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            "response_cache { enable: true } model_transaction_policy { decoupled: true }",
            [
                "model/config.pbtxt response_cache.enable: error CT280: response_cache is on and 'model' is "
                "decoupled, and the server would not load 'model': Response Cache does not currently support "
                "model model with 'decoupled' transaction policy. Please disable the response cache; leave "
                "response_cache out",
            ],
            id="CT280",
        ),
        pytest.param(
            "response_cache { enable: true } sequence_batching { }",
            [
                "model/config.pbtxt response_cache.enable: error CT281: response_cache is on beside "
                "sequence_batching, and the server would not load 'model': Response Cache does not currently "
                "support model model with sequence batching scheduler. Please disable the response cache; "
                "leave response_cache out",
            ],
            id="CT281",
        ),
        pytest.param(
            "response_cache { enable: true }",
            [
                "model/config.pbtxt response_cache.enable: warning CT282: the server that SageMaker starts "
                "has no cache, so that it would cache no response of 'model'; leave response_cache out, or "
                "add --cache-config=local,size=104857600 to additional_args",
            ],
            id="CT282",
        ),
    ],
)
def test_it_is_found(write: Write, config: str, findings: list[str]) -> None:
    assert found(write, 'backend: "python" ' + config) == findings


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
def test_an_ensemble_is_decoupled_by_any_of_its_parts(write: Write, cached: str) -> None:
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
    assert [str(each) for each in findings if each.code.startswith("CT28")] == [
        f"{cached}/config.pbtxt response_cache.enable: error CT280: response_cache is on and 'part' is "
        f"decoupled, and the "
        f"server would not load '{cached}': Response Cache does not currently support model {cached} with 'decoupled' "
        "transaction policy. Please disable the response cache; leave response_cache out"
    ]


def test_a_server_with_a_cache_answers_the_warning(write: Write) -> None:
    config = 'backend: "python" response_cache { enable: true }'
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    arguments = ("--cache-config=local,size=1048576",)
    environment = ContainerEnvironment(default_model_name="model", additional_args=arguments)
    assert "CT282" in {each.code for each in repository.check()}
    assert "CT282" not in {each.code for each in repository.check(environment=environment)}
