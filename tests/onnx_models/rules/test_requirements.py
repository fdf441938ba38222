"""The rules CT125, CT126, CT137 and CT139: what an ONNX file needs of its server, and of other files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.onnx_models import external, onnx_model, written

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write


@pytest.mark.parametrize(
    ("release", "opset", "ir", "codes"),
    [
        ("24.09", 21, 10, []),
        ("24.09", 22, 10, ["CT137"]),
        ("24.09", 21, 11, ["CT137"]),
        ("25.09", 23, 11, []),
        ("26.05", 25, 13, []),
        ("26.05", 26, 13, ["CT137"]),
    ],
)
def test_what_the_releases_onnx_runtime_reads(
    messages: Messages, write: Write, release: str, opset: int, ir: int, codes: list[str]
) -> None:
    repository = written(write, "", onnx_model(opset=opset, ir=ir))
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    found = [f for f in repository.check(platform=platform) if f.code == "CT137"]
    assert messages.of(found) == [(code, "model/1/model.onnx", "") for code in codes]


@pytest.mark.parametrize(("version", "codes"), [(1, []), (2, ["CT137"])])
def test_a_domain_of_onnx_runtime_has_one_version(
    messages: Messages, write: Write, version: int, codes: list[str]
) -> None:
    file = onnx_model().replace('"com.microsoft" : 1', f'"com.microsoft" : {version}')
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    found = [f for f in written(write, "", file).check(platform=platform) if f.code == "CT137"]
    assert messages.of(found) == [(code, "model/1/model.onnx", "") for code in codes]


@pytest.mark.parametrize(("release", "codes"), [("26.08", ["CT137"]), ("26.09", []), ("27.01", [])])
def test_an_onnx_runtime_that_nobody_has_read_is_not_judged(write: Write, release: str, codes: list[str]) -> None:
    repository = written(write, "", onnx_model(opset=27, ir=13))
    image = f"example.com/triton@sha256:{'0' * 64}"
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=image)
    assert [f.code for f in repository.check(platform=platform) if f.code == "CT137"] == codes


@pytest.mark.parametrize(
    ("location", "files", "release", "codes"),
    [
        ("w.bin", {}, None, ["CT139"]),
        ("w.bin", {"model/1/w.bin": "0123456789abcdef"}, None, []),
        ("w.bin", {"model/1/w.bin": "0123456789abcde"}, None, ["CT139"]),
        ("data/w.bin", {"model/1/data/w.bin": "0123456789abcdef"}, "26.03", []),
        ("../w.bin", {"model/w.bin": "0123456789abcdef"}, None, ["CT126"]),
        ("../w.bin", {"model/w.bin": "0123456789abcdef"}, "25.09", ["CT126"]),
        ("../w.bin", {"model/w.bin": "0123456789abcdef"}, "26.03", ["CT125"]),
        ("../w.bin", {}, "25.09", ["CT139"]),
        ("../../shared/w.bin", {"shared/w.bin": "0123456789abcdef"}, None, ["CT126"]),
        ("/opt/w.bin", {}, None, ["CT126"]),
    ],
)
def test_weights_in_other_files(
    write: Write, location: str, files: dict[str, str], release: str | None, codes: list[str]
) -> None:
    repository = write(
        {"model/config.pbtxt": 'backend: "onnxruntime"', "model/1/model.onnx": external(location), **files}, base={}
    )
    platform = None if release is None else ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    findings = repository.check(platform=platform, default_model="model")
    assert [finding.code for finding in findings if finding.code in ("CT125", "CT126", "CT139")] == codes
