"""The published systems: as published the checks name their defects, corrected they are clean.

README.md beside this file says where each system comes from, which defects it has, and which of them no check finds.
"""

from __future__ import annotations

import argparse
import io
import re
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx.parser
import pytest

from cdk_triton.checks.documentation import Example
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import Finding, ModelRepository
from sample_repositories.files import SERIALIZED_PIPELINE
from sample_repositories.torch_models import torchscript

HERE = Path(__file__).parent
SYSTEMS = HERE / "systems"

TODAY = "25.09"
"""The release that a user would choose for a published system today, on the instance type that was published."""

Found = tuple[tuple[str, str], ...]
"""Code and path of each finding, in the order of the report."""

AS_PUBLISHED: Mapping[str, Found] = {
    "0_image_ensemble": (),
    "1_image_ensemble": (("CT509", "."),),
    "1_text_ensemble": (("CT509", "."), ("CT151", "bert-trt/1/model.plan")),
    "2a_resnet_onnx": (),
    "2a_resnet_pytorch": (),
    "2a_resnet_tensorrt": (("CT151", "resnet/1/model.plan"),),
    "2b_resnet_onnx_tensorrt": (),
    "2c_roberta": (("CT650", "roberta-large/config.pbtxt"),),
    "3_bert": (("CT151", "bert_0/1/model.plan"),),
    "4_t5": (),
    "5_fil_ensemble_cpu": (("CT509", "."),),
    "5_fil_ensemble_gpu": (("CT601", "filgpu/config.pbtxt"), ("CT509", ".")),
    "6_stable_diffusion_environment": (),
    "6_stable_diffusion_on_demand": (("CT158", "sd_base/config.pbtxt"),),
    "6_stable_diffusion_pipeline": (("CT406", "text_encoder"), ("CT406", "vae"), ("CT151", "vae/1/model.plan")),
}

WITH_TODAYS_RELEASE: Mapping[str, Found] = {
    "0_image_ensemble": (("CT601", "inception_graphdef/config.pbtxt"),),
    "1_image_ensemble": (("CT601", "inception_graphdef/config.pbtxt"),),
    "1_text_ensemble": (
        ("CT156", "postprocess/processing_env.tar.gz"),
        ("CT156", "preprocess/processing_env.tar.gz"),
        ("CT151", "bert-trt/1/model.plan"),
    ),
    "2a_resnet_onnx": (),
    "2a_resnet_pytorch": (),
    "2a_resnet_tensorrt": (("CT151", "resnet/1/model.plan"),),
    "2b_resnet_onnx_tensorrt": (),
    "2c_roberta": (("CT650", "roberta-large/config.pbtxt"),),
    "3_bert": (("CT151", "bert_0/1/model.plan"),),
    "4_t5": (("CT156", "t5_pytorch/hf_env.tar.gz"),),
    "5_fil_ensemble_cpu": (("CT156", "preprocessing/preprocessing_env.tar.gz"),),
    "5_fil_ensemble_gpu": (
        ("CT601", "filgpu/config.pbtxt"),
        ("CT156", "preprocessinggpu/preprocessing_env.tar.gz"),
    ),
    "6_stable_diffusion_environment": (),
    "6_stable_diffusion_on_demand": (("CT158", "sd_base/config.pbtxt"),),
    "6_stable_diffusion_pipeline": (("CT156", "pipeline/sd_env.tar.gz"), ("CT151", "vae/1/model.plan")),
}

CORRECTED = (
    "0_image_ensemble",
    "1_image_ensemble",
    "1_text_ensemble",
    "2a_resnet_onnx",
    "2a_resnet_pytorch",
    "2a_resnet_tensorrt",
    "2b_resnet_onnx_tensorrt",
    "2c_roberta",
    "3_bert",
    "4_t5",
    "5_fil_ensemble_cpu",
    "5_fil_ensemble_gpu",
    "6_stable_diffusion_on_demand",
    "6_stable_diffusion_pipeline",
)


def test_every_fixture_is_looked_at() -> None:
    published = {f"{name}.published.txt" for name in AS_PUBLISHED}
    assert {path.name for path in SYSTEMS.iterdir()} == published | {f"{name}.corrected.txt" for name in CORRECTED}
    assert AS_PUBLISHED.keys() == WITH_TODAYS_RELEASE.keys()


def test_the_table_of_defects_names_every_code_that_is_found() -> None:
    codes = {code for findings in (*AS_PUBLISHED.values(), *WITH_TODAYS_RELEASE.values()) for code, _ in findings}
    assert codes <= set(re.findall(r"CT\d{3}", (HERE / "README.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", AS_PUBLISHED)
def test_the_checks_name_the_defects_of_a_published_system(name: str, tmp_path: Path) -> None:
    assert found(check(read(f"{name}.published.txt"), tmp_path)) == AS_PUBLISHED[name]


@pytest.mark.parametrize("name", WITH_TODAYS_RELEASE)
def test_the_checks_say_what_breaks_with_todays_release(name: str, tmp_path: Path) -> None:
    published = read(f"{name}.published.txt")
    arguments = tuple(re.sub(r"^\d\d\.\d\d/", f"{TODAY}/", argument) for argument in published.arguments)
    assert found(check(replace(published, arguments=arguments), tmp_path)) == WITH_TODAYS_RELEASE[name]


@pytest.mark.parametrize(
    ("name", "arguments", "changes", "expected"),
    [
        pytest.param("1_text_ensemble", "22.10/ml.g4dn.xlarge", {}, ["CT151 bert-trt/1/model.plan"], id="1b"),
        pytest.param(
            "2a_resnet_onnx", "22.07/ml.g4dn.4xlarge", {}, ["CT104 resnet/config.pbtxt"], id="2a: alone, by that name"
        ),
        pytest.param(
            "2c_roberta",
            "22.10/ml.g4dn.4xlarge --mode multi",
            {"[ -1, 768 ]": "[ 512, 768 ]", "[batch, sequence, 768] last": "[batch, 512, 768] last"},
            ["CT650 roberta-large/config.pbtxt"],
            id="2c: its answer written out",
        ),
        pytest.param(
            "2c_roberta",
            "22.10/ml.g4dn.4xlarge --mode multi",
            {"[batch, sequence, 768] last": "[batch, sequence, 1024] last"},
            ["CT134 roberta-large/config.pbtxt", "CT650 roberta-large/config.pbtxt"],
            id="2c: the large network",
        ),
        pytest.param(
            "2c_roberta",
            "22.10/ml.g4dn.4xlarge --mode multi",
            {'[batch, 768] "1550"': '[batch, 768] "1634"', '"1550" = ReduceMean': '"1634" = ReduceMean'},
            ["CT131 roberta-large/config.pbtxt", "CT650 roberta-large/config.pbtxt"],
            id="2c: another exporter",
        ),
        pytest.param(
            "2c_roberta",
            "22.10/ml.g4dn.4xlarge --mode multi",
            {"kind: KIND_GPU": "variety: KIND_GPU"},
            ["CT101 roberta-large/config.pbtxt"],
            id="2c: a field as the text garbles it",
        ),
        pytest.param(
            "2c_roberta",
            "22.10/ml.g4dn.4xlarge --mode multi",
            {"1/model.onnx": "1/mannequin.onnx"},
            ["CT120 roberta-large/1/model.onnx"],
            id="2c: a file as the text garbles it",
        ),
        pytest.param(
            "4_t5",
            "23.02/ml.g5.2xlarge --mode multi",
            {'  key: "EXECUTION_ENV_PATH",\n': ""},
            ["CT166 t5_pytorch/1/model.py"] * 2,
            id="4: without the key that the text lost",
        ),
    ],
)
def test_a_system_served_or_made_otherwise(
    name: str, arguments: str, changes: Mapping[str, str], expected: list[str], tmp_path: Path
) -> None:
    """What README.md says of variants that were not published."""
    files = dict(read(f"{name}.published.txt").files)
    for old, new in changes.items():
        files = {path.replace(old, new): text.replace(old, new) for path, text in files.items()}
    findings = check(Example(("--platform", *arguments.split()), files), tmp_path)
    assert [f"{code} {path}" for code, path in found(findings)] == expected


@pytest.mark.parametrize("name", CORRECTED)
def test_the_corrected_system_is_clean(name: str, tmp_path: Path) -> None:
    corrected = read(f"{name}.corrected.txt")
    assert any(argument.startswith(f"{TODAY}/") for argument in corrected.arguments)
    assert check(corrected, tmp_path) == ()


def read(name: str) -> Example:
    """A system: its files in one text, as the examples of the rules are written."""
    return Example.from_text((SYSTEMS / name).read_text(encoding="utf-8"))


def check(system: Example, directory: Path) -> tuple[Finding, ...]:
    """Write a system's files and check them as its command line says."""
    root = directory / "repository"
    for name, text in system.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(name, text))
    command = argparse.ArgumentParser(exit_on_error=False)
    command.add_argument("--mode", default="single")
    command.add_argument("--platform", required=True)
    command.add_argument("--default-model")
    command.add_argument("--additional-model", action="append", default=[])
    options = command.parse_args(system.arguments)
    release, _, instance_type = options.platform.partition("/")
    return ModelRepository.from_directory(root).check(
        options.mode,
        ServingPlatform(release=release, instance_type=instance_type),
        default_model=options.default_model,
        additional_models=options.additional_model,
    )


def content(name: str, text: str) -> bytes:
    """What a text stands for: an ONNX file in ONNX's text form, TorchScript as a signature, a .tar.gz as a list.

    The first lines of Inception's labels stand for all of them.
    """
    if name.endswith("inception_labels.txt"):
        return text.encode() + b"class\n" * (1001 - len(text.splitlines()))
    if name.endswith(".pt"):
        return torchscript(text.strip())
    if name.endswith(".dali"):
        return SERIALIZED_PIPELINE
    if name.endswith(".onnx"):
        return bytes(onnx.parser.parse_model(text).SerializeToString())
    if name.endswith(".tar.gz"):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for member in text.split():
                archive.addfile(tarfile.TarInfo(member))
        return buffer.getvalue()
    return text.encode()


def found(findings: tuple[Finding, ...]) -> Found:
    """What the tables above compare."""
    return tuple((finding.code, finding.path) for finding in findings)
