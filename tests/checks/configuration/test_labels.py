"""The rules CT245 and CT298: labels outside the model, by the release, and labels of other elements."""

from __future__ import annotations

from pathlib import Path
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
    label = f'output {{ name: "OUT" data_type: TYPE_FP32 dims: 1 label_filename: "{name}" }}'
    files = dict.fromkeys(("labels.txt", "model/labels.txt", "model2/labels.txt", "other/labels.txt"), "cat")
    files |= {"model/config.pbtxt": f'backend: "python" {label}', "model/1/model.py": PYTHON_MODEL}
    own = f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton@sha256:{'0' * 64}"
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=own)
    findings = write(files, base={}).check(platform=platform, default_model="model")
    found = [each for each in findings if each.field == "output[0].label_filename"]
    assert {place[0] for place in messages.of(found)} == codes


NAMES = "cat\ndog\nbird\nfish"


@pytest.mark.parametrize(
    ("output", "labels", "expected"),
    [
        pytest.param("FP32 dims: 4", NAMES, False, id="a line for each element"),
        pytest.param("FP32 dims: 4", f"{NAMES}\r\n\n", False, id="empty lines at the end"),
        pytest.param("FP32 dims: [ 4, 1, 1 ]", NAMES, False, id="more dimensions"),
        pytest.param("FP32 dims: [ -1, 4 ]", NAMES, False, id="a number of elements that is not known"),
        pytest.param("INT32 dims: 3", NAMES, True, id="a line more"),
        pytest.param("FP32 dims: 5", NAMES, True, id="a line less"),
        pytest.param("FP32 dims: [ 2, 4 ]", NAMES, True, id="scores for two"),
        pytest.param("FP32 dims: 4", "", True, id="an empty file"),
        pytest.param("FP32 dims: 4", "version https://git-lfs.github.com/spec/v1\n", False, id="not fetched"),
        pytest.param("FP16 dims: 4", NAMES, True, id="a type without classes"),
        pytest.param("STRING dims: [ -1 ]", NAMES, True, id="texts"),
    ],
)
def test_labels_of_other_elements(messages: Messages, write: Write, output: str, labels: str, expected: bool) -> None:
    if labels.startswith("version"):
        labels += f"oid sha256:{'0' * 64}\nsize 12345\n"
    config = f'backend: "python" output {{ name: "OUT" data_type: TYPE_{output} label_filename: "labels.txt" }}'
    files = {"model/config.pbtxt": config, "model/labels.txt": labels, "model/1/model.py": PYTHON_MODEL}
    found = messages.of(each for each in write(files, base={}).check() if each.code == "CT298")
    assert found == [("CT298", "model/config.pbtxt", "output[0].label_filename")] * expected


def test_labels_that_cannot_be_read(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    config = 'backend: "python" output { name: "OUT" data_type: TYPE_FP32 dims: 5 label_filename: "labels.txt" }'
    files = {"model/config.pbtxt": config, "model/labels.txt": NAMES, "model/1/model.py": PYTHON_MODEL}
    repository = write(files, base={})
    read = Path.read_bytes

    def unreadable(path: Path) -> bytes:
        if path.name == "labels.txt":
            raise PermissionError(path)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", unreadable)
    assert {each.code for each in repository.check()}.isdisjoint({"CT001", "CT298"})
