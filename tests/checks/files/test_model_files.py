"""The rules CT120 to CT129: whether the files are there that a model's backend loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages
    from sample_repositories import Change, Write

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
ONNX_TEXT = '<ir_version: 8, opset_import: ["" : 17]> model (float[N] IN) => (float[N] OUT) %s'
ONNX = ONNX_TEXT % "{ OUT = Identity(IN) }"
EXTERNAL = ONNX_TEXT % '<float[400] W = ["location": "weights.bin"]> { OUT = Add(IN, W) }'


@dataclass(frozen=True)
class Build:
    produces: tuple[str, ...]


def model(text: str, **files: str) -> dict[str, str]:
    """A model with that configuration; the names of files with `/` for `__` and `.` for `_`."""
    named = {name.replace("__", "/").replace("_", "."): content for name, content in files.items()}
    return {"model/config.pbtxt": text, **{f"model/1/{name}": content for name, content in named.items()}}


def of_module(repository: ModelRepository, platform: ServingPlatform | None = None) -> list[Finding]:
    return [finding for finding in repository.check(platform=platform) if "CT120" <= finding.code <= "CT129"]


@pytest.mark.parametrize(
    ("backend", "path"),
    [
        ('backend: "onnxruntime"', "model/1/model.onnx"),
        ('platform: "onnxruntime_onnx"', "model/1/model.onnx"),
        ('platform: "tensorrt_plan"', "model/1/model.plan"),
        ('backend: "pytorch"', "model/1/model.pt"),
        ('backend: "pytorch" platform: "torch_aoti"', "model/1/model.pt2"),
        ('platform: "torch_aoti"', "model/1/model.pt2"),
        ('backend: "openvino"', "model/1/model.xml"),
        ('platform: "tensorflow_graphdef"', "model/1/model.graphdef"),
        ('platform: "tensorflow_savedmodel"', "model/1/model.savedmodel"),
        ('backend: "python"', "model/1/model.py"),
        ('backend: "dali"', "model/1/model.dali"),
        ('backend: "fil"', "model/1/xgboost.model"),
        ('backend: "onnxruntime" default_model_filename: "a.onnx"', "model/1/a.onnx"),
    ],
)
def test_every_backend_asks_for_a_file_of_its_own_name(
    messages: Messages, write: Write, backend: str, path: str
) -> None:
    found = write(model(backend, other=""), base={}).check()[:1]
    assert messages.of(found) == [("CT120", path, "")]


@pytest.mark.parametrize(
    ("backend", "files"),
    [
        ('backend: "onnxruntime"', ("model.onnx",)),
        ('backend: "onnxruntime"', ("model.onnx/model.onnx", "model.onnx/weights")),
        ('backend: "onnxruntime" default_model_filename: "big"', ("big/model.onnx",)),
        ('platform: "tensorflow_savedmodel"', ("model.savedmodel/saved_model.pb",)),
        ('backend: "tensorflow" ', ("model.graphdef",)),
        ('backend: "dali"', ("model.dali",)),
        ('backend: "dali"', ("dali.py",)),
        ('backend: "dali" default_model_filename: "a.py"', ("a.py",)),
        ('backend: "openvino"', ("model.xml", "model.bin")),
        ('backend: "openvino" default_model_filename: "a.onnx"', ("a.onnx",)),
        ('backend: "fil"', ("xgboost.model",)),
        ('backend: "fil" default_model_filename: "big"', ("big/xgboost.model",)),
        ('backend: "fil" parameters { key: "model_type" value { string_value: "lightgbm" } }', ("model.txt",)),
        ('backend: "fil" parameters { key: "model_type" value { string_value: "new" } }', ("any",)),
        ('backend: "python" default_model_filename: "sub/model.py"', ("sub/model.py",)),
        ('backend: "pytorch" runtime: "model.py"', ("model.pt",)),
        ('backend: "pytorch" default_model_filename: "../shared.pt"', ("../shared.pt",)),
        ('backend: "custom"', ("any",)),
        ('backend: "onnxruntime"', ("libtriton_onnxruntime.so",)),
    ],
)
def test_what_a_backend_finds_is_not_missing(write: Write, backend: str, files: tuple[str, ...]) -> None:
    repository = write({"model/config.pbtxt": backend, **{f"model/1/{name}": "" for name in files}}, base={})
    assert of_module(repository) == []


@pytest.mark.parametrize("name", ["resnet.onnx", "weights"])
def test_a_file_of_another_name_is_pointed_at(messages: Messages, write: Write, name: str) -> None:
    found = write({"model/config.pbtxt": 'backend: "onnxruntime"', f"model/1/{name}": ""}, base={}).check()
    assert messages.of(found) == [("CT120", "model/1/model.onnx", "")]
    assert (name in found[0].fix) == name.endswith(".onnx")


@pytest.mark.parametrize(("name", "kind"), [("xgboost.json", "xgboost_json"), ("model.txt", "lightgbm")])
def test_the_file_of_another_model_type_is_pointed_at(messages: Messages, write: Write, name: str, kind: str) -> None:
    found = write({"model/config.pbtxt": 'backend: "fil"', f"model/1/{name}": ""}, base={}).check()
    missing = [finding for finding in found if finding.code == "CT120"]
    assert messages.of(missing) == [("CT120", "model/1/xgboost.model", "")]
    assert kind in missing[0].fix
    assert name in missing[0].fix


def test_every_served_version_is_looked_at_and_no_other(write: Write) -> None:
    policy = 'backend: "python" version_policy { specific { versions: [ 1, 3 ] } }'
    files = {"model/config.pbtxt": policy, "model/1/a": "", "model/2/a": "", "model/3/model.py": ""}
    assert [str(finding.path) for finding in write(files, base={}).check()] == ["model/1/model.py"]


def test_a_file_that_a_recipe_will_write_is_there(write: Write) -> None:
    root = write({"model/config.pbtxt": 'platform: "tensorrt_plan"'}, base={}).root
    recipe = Build(("model/1/model.plan",))
    assert ModelRepository.from_directory(root, recipes=[recipe]).check() == ()


CC = 'platform: "tensorrt_plan" cc_model_filenames { key: "8.6" value: "a10g.plan" }'


@pytest.mark.parametrize(
    ("instance", "files", "found"),
    [
        (None, {"model/1/x": ""}, [("warning CT122", "model/config.pbtxt")]),
        (None, {"model/1/a10g.plan": "plan"}, []),
        ("ml.g5.xlarge", {"model/1/a10g.plan": "plan"}, []),
        ("ml.g5.xlarge", {"model/1/model.plan": "plan"}, [("error CT120", "model/1/a10g.plan")]),
        (
            "ml.g6.xlarge",
            {"model/1/x": ""},
            [("error CT120", "model/1/model.plan"), ("warning CT122", "model/config.pbtxt")],
        ),
    ],
)
def test_files_for_compute_capabilities(
    write: Write, instance: str | None, files: Mapping[str, Change], found: list[tuple[str, str]]
) -> None:
    platform = None if instance is None else ServingPlatform(release="25.09", instance_type=instance)
    findings = write({"model/config.pbtxt": CC, **files}, base={}).check(platform=platform)
    own = [finding for finding in findings if finding.code in ("CT120", "CT122")]
    assert [(f"{finding.severity} {finding.code}", str(finding.path)) for finding in own] == found


@pytest.mark.parametrize("content", [POINTER, POINTER + b"x" * 100])
def test_a_pointer_of_git_lfs_is_reported_once(messages: Messages, write: Write, content: bytes) -> None:
    findings = write({"bert/1/model.onnx": content}).check()
    assert messages.of(findings) == [("CT127", "bert/1/model.onnx", "")]


@pytest.mark.parametrize(
    ("config", "files", "pointer"),
    [
        pytest.param(
            'backend: "onnxruntime"',
            {"1/model.onnx": EXTERNAL, "1/weights.bin": POINTER},
            "1/weights.bin",
            id="weights of an ONNX file",
        ),
        pytest.param(
            'backend: "openvino"', {"1/model.xml": "<net/>", "1/model.bin": POINTER}, "1/model.bin", id="of OpenVINO"
        ),
        pytest.param(
            'platform: "tensorflow_savedmodel"',
            {"1/model.savedmodel/saved_model.pb": POINTER},
            "1/model.savedmodel/saved_model.pb",
            id="a saved model",
        ),
        pytest.param(
            'backend: "python" parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/opt/ml/model/e.tgz" } }',
            {"1/model.py": "", "../e.tgz": POINTER},
            "../e.tgz",
            id="an environment",
        ),
        pytest.param('backend: "python"', {"1/model.py": "", "2/x": POINTER, "a.png": POINTER}, "", id="not needed"),
    ],
)
def test_pointers_of_other_files(write: Write, config: str, files: Mapping[str, Change], pointer: str) -> None:
    named = {normpath(f"model/{name}"): content for name, content in files.items()}
    policy = "version_policy { specific { versions: 1 } }"
    findings = write({"model/config.pbtxt": f"{config} {policy}", **named}, base={}).check()
    own = [(finding.code, str(finding.path)) for finding in findings if finding.severity == "error"]
    assert own == [("CT127", normpath(f"model/{pointer}"))] * bool(pointer)


@pytest.mark.parametrize(
    ("tensors", "files", "found"),
    [
        ("", {"a10g.onnx": ONNX}, ["model/1/model.onnx"]),
        ("", {"a10g.onnx": ONNX, "model.onnx": ONNX}, []),
        ("", {"a10g.onnx": ONNX, "model.onnx/model.onnx": ONNX}, []),
        ('default_model_filename: "b.onnx"', {"a10g.onnx": ONNX, "model.onnx": ONNX}, ["model/1/b.onnx"]),
        (
            'input { name: "IN" data_type: TYPE_FP32 dims: -1 } output { name: "OUT" data_type: TYPE_FP32 dims: -1 }',
            {"a10g.onnx": ONNX},
            [],
        ),
    ],
)
@pytest.mark.parametrize("instance", ["ml.g5.xlarge", None])
def test_inputs_and_outputs_are_completed_from_one_file(
    write: Write, instance: str | None, tensors: str, files: Mapping[str, Change], found: list[str]
) -> None:
    config = f'backend: "onnxruntime" cc_model_filenames {{ key: "8.6" value: "a10g.onnx" }} {tensors}'
    platform = None if instance is None else ServingPlatform(release="25.09", instance_type=instance)
    named = {f"model/1/{name}": content for name, content in files.items()}
    findings = write({"model/config.pbtxt": config, **named}, base={}).check(platform=platform)
    assert [(finding.code, str(finding.path)) for finding in findings] == [("CT120", path) for path in found]


@pytest.mark.parametrize("release", ["24.09", "25.09"])
def test_a_file_that_no_backend_would_load_is_not_missing(write: Write, release: str) -> None:
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    config = {"model/config.pbtxt": 'platform: "tensorflow_savedmodel"', "model/1/x": ""}
    codes = [finding.code for finding in write(config, base={}).check(platform=platform)]
    assert codes == (["CT120"] if release == "24.09" else ["CT601"])


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        pytest.param({}, ["CT129"], id="no file"),
        pytest.param({"bert/labels.txt/x": ""}, ["CT129"], id="a directory"),
        pytest.param({"bert/labels.txt": "a\n" * 384}, [], id="a file"),
    ],
)
def test_labels(messages: Messages, write: Write, files: Mapping[str, Change], codes: list[str]) -> None:
    change = ("dims: 384", 'dims: 384 label_filename: "labels.txt"')
    found = write({"bert/config.pbtxt": change, **files}).check()
    assert messages.of(found) == [(code, "bert/config.pbtxt", "output[0].label_filename") for code in codes]


@pytest.mark.parametrize(("release", "codes"), [("25.04", []), ("25.09", ["CT128"])])
def test_names_that_dali_rejects_from_a_release_on(write: Write, release: str, codes: list[str]) -> None:
    repository = write({"déc/config.pbtxt": 'backend: "dali" max_batch_size: 8', "déc/1/dali.py": ""}, base={})
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    assert [finding.code for finding in repository.check(platform=platform) if finding.code[:4] == "CT12"] == codes


def test_a_repository_that_is_one_model(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "config.pbtxt").write_text('backend: "python"')
    (tmp_path / "1" / "main.py").write_text("")
    (found,) = ModelRepository.from_directory(tmp_path).check("multi")
    assert (found.code, str(found.path)) == ("CT120", "1/model.py")
