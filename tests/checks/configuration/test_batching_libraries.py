"""The rules CT240 and CT241: the library with a batching strategy that a model names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Write


def found(write: Write, config: str) -> list[Finding]:
    """What the rules CT240 and CT241 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [each for each in repository.check() if each.code in ("CT240", "CT241")]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            'sequence_batching { } parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/x.so" } }',
            [("CT240", "model/config.pbtxt", 'parameters["TRITON_BATCH_STRATEGY_PATH"]')],
            id="CT240",
        ),
        pytest.param(
            'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/ml/model/model/2/x.so" } }',
            [("CT241", "model/config.pbtxt", 'parameters["TRITON_BATCH_STRATEGY_PATH"]')],
            id="CT241",
        ),
    ],
)
def test_it_is_found(messages: Messages, write: Write, config: str, findings: list[Place]) -> None:
    assert messages.of(found(write, 'backend: "python" ' + config)) == findings


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/custom/batch.so" } }',
            id="a library of the image",
        ),
        pytest.param(
            'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/ml/model/model/1/model.py" } }',
            id="a library of the model",
        ),
    ],
)
def test_it_is_no_fault(write: Write, config: str) -> None:
    assert found(write, 'backend: "python" ' + config) == []


def test_a_multi_model_endpoint_has_no_place_for_a_batching_library(write: Write) -> None:
    config = 'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/ml/model/model/1/model.py" } }'
    repository = write({"model/config.pbtxt": 'backend: "python" ' + config, "model/1/model.py": PYTHON_MODEL}, base={})
    assert "CT241" not in {each.code for each in repository.check("single")}
    assert "CT241" in {each.code for each in repository.check("multi")}


@pytest.mark.parametrize("batching", ["", "sequence_batching { }"])
def test_an_ensemble_looks_for_no_batching_library(write: Write, batching: str) -> None:
    config = f'parameters {{ key: "TRITON_BATCH_STRATEGY_PATH" value {{ string_value: "x.so" }} }} {batching}'
    codes = {each.code for each in write({"model/config.pbtxt": 'platform: "ensemble" ' + config}, base={}).check()}
    assert not codes & {"CT240", "CT241"}


@pytest.mark.parametrize(
    ("path", "release", "is_found"),
    [
        ("/opt/ml/model/model/1/model.py", "26.06", False),
        ("/opt/ml/model/model/x/../1/model.py", "26.06", False),
        ("/opt/ml/model/other/1/model.py", "26.05", False),
        ("/opt/ml/model/other/1/model.py", "26.06", True),
        ("/usr/lib/batch.so", "26.05", False),
        ("/usr/lib/batch.so", "26.06", True),
        ("/opt/ml/model/model/1/none.so", "26.06", True),
    ],
)
def test_a_batching_library_of_newer_servers_is_in_its_model(
    messages: Messages, write: Write, path: str, release: str, is_found: bool
) -> None:
    config = f'backend: "python" parameters {{ key: "TRITON_BATCH_STRATEGY_PATH" value {{ string_value: "{path}" }} }}'
    files = dict.fromkeys(("model/1/model.py", "other/1/model.py"), PYTHON_MODEL)
    files |= {"model/config.pbtxt": config, "other/config.pbtxt": 'backend: "python"'}
    image = f"example.com/triton@sha256:{'0' * 64}"
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=image)
    found = [each for each in write(files, base={}).check("single", platform=platform) if each.code == "CT241"]
    place = ("CT241", "model/config.pbtxt", 'parameters["TRITON_BATCH_STRATEGY_PATH"]')
    assert messages.of(found) == [place] * is_found
