"""What a backend fills in where a configuration leaves something out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.one_step import ensemble, python, step

if TYPE_CHECKING:
    from sample_repositories import Write

NEW_SYNTAX = """
class TritonPythonModel:
    def execute(self, requests):
        match requests:
            case _:
                return [None for request in requests]
"""


@pytest.mark.parametrize(
    ("release", "codes"),
    [
        pytest.param("24.01", {"CT332"}, id="Python 3.10 understands the file"),
        pytest.param("23.02", {"CT333"}, id="Python 3.8 does not"),
    ],
)
def test_whether_a_python_model_completes_itself_is_read_with_the_python_of_the_release(
    write: Write, release: str, codes: set[str]
) -> None:
    change = ensemble(steps=step("model", {"OTHER": "IN"}, {"OUT": "OUT"})) | python(source=NEW_SYNTAX)
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = write(change, base={}).check(platform=platform, default_model="pipeline")
    assert {finding.code for finding in findings if finding.code.startswith("CT33")} == codes
