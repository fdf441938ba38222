"""The rules CT101 to CT105: whether the server can read a model's config.pbtxt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import pytest

from sample_repositories import platform_with

if TYPE_CHECKING:
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"bert/config.pbtxt": ("max_batch_size", "max_batchsize")},
            [
                "bert/config.pbtxt: error CT101: line 4, column 1: ModelConfig has no field 'max_batchsize'"
                " (did you mean 'max_batch_size'?); the server would not load 'bert': failed to read text"
                " proto from bert/config.pbtxt; correct the file; Triton's model_config.proto lists every"
                " field",
            ],
            id="CT101 unknown field",
        ),
        pytest.param(
            {"bert/config.pbtxt": b"\xff"},
            [
                "bert/config.pbtxt: error CT101: line 1, column 1: the byte 0xff, which is not UTF-8, stands"
                " outside quotes, where only ASCII is read; remove it, or quote it;"
                " the server would not load 'bert': failed to read text proto from"
                " bert/config.pbtxt; correct the file; Triton's model_config.proto lists every field",
            ],
            id="CT101 not UTF-8",
        ),
        pytest.param(
            {"bert/config.pbtxt": None, "bert/config.pbtxt/x": ""},
            [
                "bert/config.pbtxt: error CT101: it is a directory, and the server would crash when it reads"
                " it: basic_string::_M_replace_aux; put the configuration into a file of this name",
            ],
            id="CT101 a directory",
        ),
        pytest.param(
            {"bert/config.pbtxt": ('"bert"', '"brt"')},
            [
                "bert/config.pbtxt name: error CT104: the name is 'brt' in the directory 'bert', and the"
                " server would not load it: unexpected directory name 'bert' for model 'brt', directory name"
                " must equal model name; write name: \"bert\", or rename the directory to 'brt'",
            ],
            id="CT104 name of another model",
        ),
        pytest.param(
            {
                "bert/config.pbtxt": ('platform: "onnxruntime_onnx"', ""),
                "bert/1/model.onnx": None,
                "bert/1/weights": "",
            },
            [
                "bert/config.pbtxt backend: error CT105: the configuration names no backend and the files of"
                " 'bert' tell none, so the server would not load it: Could not determine backend for model"
                " 'bert' with no backend in model configuration; name the backend, for example backend:"
                ' "python"',
            ],
            id="CT105 no backend",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_configuration(
    write: Write, change: Mapping[str, Change], findings: list[str], mode: Literal["single", "multi"]
) -> None:
    repository = write(change)
    assert [str(finding) for finding in repository.check(mode)] == findings


@pytest.mark.parametrize(
    ("change", "release", "findings"),
    [
        pytest.param(
            {"bert/config.pbtxt": ("max_batch_size: 8", "max_batch_size: 8\nmax_batchsize: 8")},
            "26.10",
            [
                "bert/config.pbtxt: warning CT102: line 5, column 1: ModelConfig has no field 'max_batchsize'"
                " (did you mean 'max_batch_size'?); this is the schema of 26.09, and the server is 26.10,"
                " which may know more; check the name against the release's model_config.proto, or install a"
                " newer tritonclient",
            ],
            id="CT102 the release is newer than the schema",
        ),
        pytest.param(
            {"bert/config.pbtxt": ("max_batch_size", "max_batchsize")},
            "26.09",
            [
                "bert/config.pbtxt: error CT101: line 4, column 1: ModelConfig has no field 'max_batchsize'"
                " (did you mean 'max_batch_size'?); the server would not load 'bert': failed to read text"
                " proto from bert/config.pbtxt; correct the file; Triton's model_config.proto lists every"
                " field",
            ],
            id="CT101 the release has the schema",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ("ensemble_scheduling {", "ensemble_scheduling { max_inflight_requests: 4")},
            "25.09",
            [
                "ensemble/config.pbtxt ensemble_scheduling.max_inflight_requests: error CT103: the field is"
                " known from 25.11 on, and the server is 25.09, which would not load 'ensemble': Message type"
                ' "inference.ModelEnsembling" has no field named "max_inflight_requests"; leave the field'
                " out, or serve with 25.11 or newer",
            ],
            id="CT103 newer than the release",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ("ensemble_scheduling {", "ensemble_scheduling { max_inflight_requests: 4")},
            "25.11",
            [],
            id="the release knows the field",
        ),
        pytest.param(
            {"bert/config.pbtxt": ("input {", "input { is_non_linear_format_io: true")},
            "24.05",
            [
                "bert/config.pbtxt input[0].is_non_linear_format_io: error CT103: the field is known from"
                " 24.08 on, and the server is 24.05, which would not load 'bert': Message type"
                ' "inference.ModelInput" has no field named "is_non_linear_format_io"; leave the field out,'
                " or serve with 24.08 or newer",
            ],
            id="CT103 in a list",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_configuration_for_a_release(
    write: Write, change: Mapping[str, Change], release: str, findings: list[str], mode: Literal["single", "multi"]
) -> None:
    repository = write(change)
    found = repository.check(mode, platform_with(release))
    # What the field means to the server that knows it is another matter.
    assert [str(finding) for finding in found if finding.code < "CT110"] == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"ensemble/config.pbtxt": ('name: "ensemble"', 'name: "text"')},
            [
                "ensemble/config.pbtxt name: error CT104: the name is 'text' in the directory 'ensemble', and"
                " the server would not load it: unexpected directory name 'ensemble' for model 'text',"
                ' directory name must equal model name; write name: "ensemble", or rename the directory to'
                " 'text'",
            ],
            id="a container of one repository",
        ),
    ],
)
def test_name_of_the_model_that_callers_name(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    repository = write(change)
    assert [str(finding) for finding in repository.check("single")] == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"ensemble/config.pbtxt": ('name: "ensemble"', 'name: "text"')},
            [],
            id="the loader renames it",
        ),
    ],
)
def test_name_of_the_model_that_callers_name_in_a_multi_model_endpoint(
    write: Write, change: Mapping[str, Change], findings: list[str]
) -> None:
    repository = write(change)
    assert [str(finding) for finding in repository.check("multi")] == findings


def test_bytes_that_are_no_text_are_an_error_for_every_release(write: Write) -> None:
    repository = write({"bert/config.pbtxt": b"caf\xe9: 1\nfuture: 1"})
    assert [finding.code for finding in repository.check(platform=platform_with("26.10"))] == ["CT101"]


@pytest.mark.parametrize("name", ["config.pbtx", "Config.pbtxt", "config.pbtxt.txt", "1/config.pbtxt"])
def test_a_file_that_is_taken_for_the_configuration(write: Write, name: str) -> None:
    (finding,) = write({f"m/{name}": 'backend: "python"', "m/1/model.py": ""}, base={}).check()
    assert str(finding) == (
        f"m/{name}: warning CT106: 'm' has no m/config.pbtxt, and the server reads no other file: it would serve the"
        " model with the defaults, or not load it; move it to m/config.pbtxt"
    )


def test_a_copy_beside_the_configuration(write: Write) -> None:
    assert write({"bert/config.pbtxt.txt": "old", "bert/1/config.pbtxt": "old"}).check() == ()
