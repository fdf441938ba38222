"""The rules CT125, CT126, CT137 and CT139: what an ONNX file needs of its server, and of other files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx.parser
import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository
from sample_repositories.onnx_models import external, onnx_model, written

if TYPE_CHECKING:
    from pathlib import Path

    from golden_messages import Messages
    from sample_repositories import Write

IMAGE = f"example.com/triton@sha256:{'0' * 64}"


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


@pytest.mark.parametrize(
    ("release", "opset", "ir"),
    [
        pytest.param("22.08", 17, 8, id="1.12"),
        pytest.param("22.12", 17, 8, id="1.13"),
        pytest.param("23.03", 18, 8, id="1.14"),
        pytest.param("23.08", 18, 9, id="1.15"),
        pytest.param("23.10", 19, 9, id="1.16"),
        pytest.param("24.03", 20, 9, id="1.17"),
        pytest.param("24.06", 21, 10, id="1.18"),
        pytest.param("24.11", 21, 10, id="1.19"),
        pytest.param("25.02", 21, 10, id="1.20"),
        pytest.param("25.04", 22, 10, id="1.21"),
        pytest.param("25.07", 22, 10, id="1.22"),
        pytest.param("25.09", 23, 11, id="1.23"),
        pytest.param("26.02", 25, 13, id="1.24"),
        pytest.param("26.07", 26, 13, id="1.27"),
    ],
)
def test_the_newest_formats_of_each_onnx_runtime(tmp_path: Path, release: str, opset: int, ir: int) -> None:
    """Its wheels of PyPI were measured; `onnxruntime.__version__` is in the id."""
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=IMAGE)
    for directory, newer in (("read", (0, 0)), ("opset", (1, 0)), ("ir", (0, 1))):
        root = tmp_path / directory
        (root / "model/1").mkdir(parents=True)
        (root / "model/config.pbtxt").write_text('backend: "onnxruntime"')
        network = onnx.parser.parse_model(onnx_model(opset=opset + newer[0], ir=ir + newer[1]))
        (root / "model/1/model.onnx").write_bytes(network.SerializeToString())
        findings = ModelRepository.from_directory(root).check(platform=platform)
        assert ("CT137" in {each.code for each in findings}) is any(newer), directory


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
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=IMAGE)
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
