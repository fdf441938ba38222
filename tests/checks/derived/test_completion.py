"""What a backend fills in where a configuration leaves something out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.checks.derived.completion import SOURCES
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.releases import backends_in
from sample_repositories.one_step import ensemble, python, step

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

IN = 'input { name: "IN" data_type: TYPE_FP32 dims: 4 } '
OUT = 'output { name: "OUT" data_type: TYPE_FP32 dims: 4 } '
COMPLETION = {"CT202", "CT203", "CT205", "CT239"}

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


# A tensor without a type, one without dims, a reshape to nothing, and dynamic batching without max_batch_size.
OPEN = {
    "CT202": 'input { name: "IN" dims: 4 } ' + OUT,
    "CT203": IN + 'output { name: "OUT" data_type: TYPE_FP32 } ',
    "CT205": IN + 'output { name: "OUT" data_type: TYPE_FP32 dims: 1 reshape { } } ',
    "CT239": IN + OUT + "dynamic_batching { max_queue_delay_microseconds: 500 } ",
}


@pytest.mark.parametrize("code", sorted(OPEN))
@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ('backend: "fil"', COMPLETION),
        ('backend: "identity"', COMPLETION),
        ('backend: "repeat"', COMPLETION),
        ('backend: "square"', COMPLETION),
        ('backend: "pytorch"', COMPLETION),
        ('platform: "tensorflow_graphdef"', COMPLETION),
        ('platform: "tensorflow_savedmodel"', set()),
        ('backend: "onnxruntime"', COMPLETION),
        ('backend: "openvino"', {"CT202", "CT203"}),
        ('backend: "tensorrt"', set()),
        ('backend: "dali"', set()),
        ('backend: "mine"', set()),
    ],
)
def test_each_backend_completes_what_its_source_does(write: Write, backend: str, expected: set[str], code: str) -> None:
    findings = write({"model/config.pbtxt": f"{backend} {OPEN[code]}", "model/1/data": ""}, base={}).check()
    assert {code} & {finding.code for finding in findings} == {code} & expected


def test_the_source_of_every_backend_of_the_images_is_read() -> None:
    others = {"python", "tensorflow1", "tensorflow2"}  # read elsewhere; names of tensorflow before 23.04
    assert backends_in(None) - others <= SOURCES.keys()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"x.identity/1/data": ""}, [("CT243", "x.identity/config.pbtxt", "")], id="identity"),
        pytest.param({"x.fil/1/xgboost.model": ""}, [("CT243", "x.fil/config.pbtxt", "")], id="fil"),
        pytest.param({"m/1/model.graphdef": ""}, [("CT243", "m/config.pbtxt", "")], id="a graph definition"),
        pytest.param({"x.identity/1/libtriton_identity.so": ""}, [], id="a backend of one's own"),
        pytest.param({"x.mine/1/data": ""}, [], id="a backend that nobody here knows"),
        pytest.param({"m/1/model.py": NEW_SYNTAX}, [], id="python"),
        pytest.param({"x.identity/1/data": "", "x.identity/config.pbtxt": ""}, [], id="an empty configuration"),
    ],
)
def test_who_makes_no_configuration(
    messages: Messages, write: Write, files: dict[str, str], expected: list[Place]
) -> None:
    assert messages.of(each for each in write(files, base={}).check() if each.code == "CT243") == expected
