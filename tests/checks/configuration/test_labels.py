"""The rule CT245: labels outside the model, by the release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

FOUND = {"CT245"}


@pytest.mark.parametrize(
    ("name", "release", "codes"),
    [
        pytest.param("../labels.txt", "25.09", set(), id="an older server"),
        pytest.param("../labels.txt", "26.03", FOUND, id="beside the models"),
        pytest.param("../../labels.txt", "26.03", FOUND, id="beside the repository"),
        pytest.param("../other/labels.txt", "26.05", FOUND, id="in another model"),
        pytest.param("../model2/labels.txt", "26.05", set(), id="where the beginning is the same"),
        pytest.param("../model2/labels.txt", "26.06", FOUND, id="where whole names are compared"),
        pytest.param("../model/labels.txt", "26.05", set(), id="out and in again"),
        pytest.param("1/../labels.txt", "26.05", set(), id="in and out of a version"),
        pytest.param("/labels.txt", "26.05", set(), id="an absolute name"),
        pytest.param("../absent.txt", "26.05", {"CT129", "CT245"}, id="outside, and not there"),
        pytest.param("../absent.txt", "24.09", {"CT129"}, id="not there for an older server"),
    ],
)
def test_labels(messages: Messages, write: Write, name: str, release: str, codes: set[str]) -> None:
    label = f'output {{ name: "OUT" data_type: TYPE_FP32 dims: 4 label_filename: "{name}" }}'
    files = dict.fromkeys(("labels.txt", "model/labels.txt", "model2/labels.txt", "other/labels.txt"), "cat")
    files |= {"model/config.pbtxt": f'backend: "python" {label}', "model/1/model.py": PYTHON_MODEL}
    own = f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton@sha256:{'0' * 64}"
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=own)
    findings = write(files, base={}).check(platform=platform, default_model="model")
    found = [each for each in findings if each.field == "output[0].label_filename"]
    assert {place[0] for place in messages.of(found)} == codes
