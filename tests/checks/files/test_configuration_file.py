"""The rules CT101 to CT105 and CT107: whether the server can read a model's config.pbtxt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import pytest

from sample_repositories import platform_with

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"bert/config.pbtxt": ("max_batch_size", "max_batchsize")},
            [("CT101", "bert/config.pbtxt", "")],
            id="CT101 unknown field",
        ),
        pytest.param({"bert/config.pbtxt": b"\xff"}, [("CT101", "bert/config.pbtxt", "")], id="CT101 not UTF-8"),
        pytest.param(
            {"bert/config.pbtxt": None, "bert/config.pbtxt/x": ""},
            [("CT101", "bert/config.pbtxt", "")],
            id="CT101 a directory",
        ),
        pytest.param(
            {"bert/config.pbtxt": ('"bert"', '"brt"')},
            [("CT104", "bert/config.pbtxt", "name")],
            id="CT104 name of another model",
        ),
        pytest.param(
            {
                "bert/config.pbtxt": ('platform: "onnxruntime_onnx"', ""),
                "bert/1/model.onnx": None,
                "bert/1/weights": "",
            },
            [("CT105", "bert/config.pbtxt", "backend")],
            id="CT105 no backend",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ("ensemble_scheduling {", "dynamic_batching { } ensemble_scheduling {")},
            [("CT101", "ensemble/config.pbtxt", "")],
            id="CT101 a scheduler in an ensemble",
        ),
        pytest.param(
            {"bert/config.pbtxt": ("TYPE_INT32", "INT32")}, [("CT101", "bert/config.pbtxt", "")], id="CT101 no prefix"
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_configuration(
    messages: Messages,
    write: Write,
    change: Mapping[str, Change],
    findings: list[Place],
    mode: Literal["single", "multi"],
) -> None:
    repository = write(change)
    assert messages.of(repository.check(mode)) == findings


@pytest.mark.parametrize(
    ("change", "release", "findings"),
    [
        pytest.param(
            {"bert/config.pbtxt": ("max_batch_size: 8", "max_batch_size: 8\nmax_batchsize: 8")},
            "26.10",
            [("CT102", "bert/config.pbtxt", "")],
            id="CT102 the release is newer than the schema",
        ),
        pytest.param(
            {"bert/config.pbtxt": ("max_batch_size", "max_batchsize")},
            "26.09",
            [("CT101", "bert/config.pbtxt", "")],
            id="CT101 the release has the schema",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ("ensemble_scheduling {", "ensemble_scheduling { max_inflight_requests: 4")},
            "25.09",
            [("CT103", "ensemble/config.pbtxt", "ensemble_scheduling.max_inflight_requests")],
            id="CT103 newer than the release",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ("ensemble_scheduling {", "ensemble_scheduling { max_inflight_requests: 4")},
            "26.04",
            [],
            id="the release knows the field",
        ),
        pytest.param(
            {"bert/config.pbtxt": ("input {", "input { is_non_linear_format_io: true")},
            "24.05",
            [("CT103", "bert/config.pbtxt", "input[0].is_non_linear_format_io")],
            id="CT103 in a list",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_configuration_for_a_release(
    messages: Messages,
    write: Write,
    change: Mapping[str, Change],
    release: str,
    findings: list[Place],
    mode: Literal["single", "multi"],
) -> None:
    repository = write(change)
    found = repository.check(mode, platform_with(release))
    # What the field means to the server that knows it is another matter.
    assert messages.of(finding for finding in found if finding.code < "CT110") == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"ensemble/config.pbtxt": ('name: "ensemble"', 'name: "text"')},
            [("CT104", "ensemble/config.pbtxt", "name")],
            id="a container of one repository",
        ),
    ],
)
def test_name_of_the_model_that_callers_name(
    messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]
) -> None:
    repository = write(change)
    assert messages.of(repository.check("single")) == findings


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
    messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]
) -> None:
    repository = write(change)
    assert messages.of(repository.check("multi")) == findings


def test_bytes_that_are_no_text_are_an_error_for_every_release(write: Write) -> None:
    repository = write({"bert/config.pbtxt": b"caf\xe9: 1\nfuture: 1"})
    assert [finding.code for finding in repository.check(platform=platform_with("26.10"))] == ["CT101"]


@pytest.mark.parametrize("name", ["config.pbtx", "Config.pbtxt", "config.pbtxt.txt", "1/config.pbtxt"])
def test_a_file_that_is_taken_for_the_configuration(messages: Messages, write: Write, name: str) -> None:
    assert messages.of(write({f"m/{name}": 'backend: "python"', "m/1/model.py": ""}, base={}).check()) == [
        ("CT106", f"m/{name}", "")
    ]


def test_a_copy_beside_the_configuration(write: Write) -> None:
    assert write({"bert/config.pbtxt.txt": "old", "bert/1/config.pbtxt": "old"}).check() == ()


@pytest.mark.parametrize(
    ("config", "fix"),
    [
        pytest.param(
            'platform: "ensemble" dynamic_batching { }', "dynamic_batching into the models of its", id="alone"
        ),
        pytest.param(
            'platform: "ensemble" ensemble_scheduling { } sequence_batching { }',
            "sequence_batching into the models of its steps",
            id="the later of two",
        ),
        pytest.param(
            'platform: "ensemble" dynamic_batching { } ensemble_scheduling { }',
            "dynamic_batching into the models of its steps",
            id="the earlier of two",
        ),
        pytest.param("dynamic_batching { } sequence_batching { }", "keep one of them", id="no ensemble"),
        pytest.param("input { data_type: FP32 }", "TYPE_FP32", id="a type without its prefix"),
        pytest.param("input { data_type: float32 }", "TYPE_FP32", id="a type of NumPy"),
        pytest.param("instance_group { kind: GPU }", "KIND_GPU", id="a kind without its prefix"),
        pytest.param("max_batchsize: 8", "max_batch_size", id="a field"),
    ],
)
def test_the_fix_is_the_one_for_this_fault(write: Write, config: str, fix: str) -> None:
    findings = write({"model/config.pbtxt": config, "model/1/model.py": ""}, base={}).check()
    (found,) = [each.fix for each in findings if each.code in ("CT101", "CT310")]
    assert fix in found
    assert "model_config.proto" not in found


def test_the_name_of_a_model_that_ends_in_a_dot(messages: Messages, write: Write) -> None:
    repository = write({"model./config.pbtxt": "max_batch_size: 8", "model./1/weights": ""}, base={})
    assert messages.of(repository.check()) == [("CT105", "model./config.pbtxt", "backend")]


TWICE = """
parameters { key: "a" value { string_value: "1" } }
parameters [ { key: 'a' value: { string_value: "1" } } ]
"""
WARM_UP = 'inputs { key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }'


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param(TWICE, ['parameters["a"]'], id="in a list, and with other quotes"),
        pytest.param(f'{TWICE} parameters {{ value {{ string_value: "2" }} }}', ['parameters["a"]'], id="beside none"),
        pytest.param(
            f"{TWICE} dynamic_batching {{ priority_queue_policy {{ key: 1 value {{ max_queue_size: 2 }} }} }}",
            ['parameters["a"]'],
            id="beside a number",
        ),
        pytest.param(TWICE.replace("'a'", "'A'"), [], id="another key"),
        pytest.param(TWICE.replace("'a'", "'a' 'b'"), [], id="a key of two strings"),
        pytest.param("#".join(TWICE.splitlines(keepends=True)), [], id="in a comment"),
        pytest.param(
            f'model_warmup {{ name: "1" {WARM_UP} }} model_warmup {{ name: "2" {WARM_UP * 2} }}',
            ['model_warmup[1].inputs["IN"]'],
            id="in the second of two",
        ),
        pytest.param(f'model_warmup [ {{ name: "1" {WARM_UP} }}, {{ name: "2" {WARM_UP} }} ]', [], id="once in each"),
    ],
)
def test_a_key_of_a_map_twice(messages: Messages, write: Write, text: str, fields: list[str]) -> None:
    repository = write({"model/config.pbtxt": f'backend: "python" {text}', "model/1/model.py": ""}, base={})
    found = messages.of(each for each in repository.check() if each.code == "CT107")
    assert found == [("CT107", "model/config.pbtxt", field) for field in fields]


def test_an_entry_of_an_ensemble_twice(write: Write) -> None:
    entry = 'input_map { key: "IN" value: "a" }'
    step = f'step [ {{ model_name: "b" {entry} }}, {{ model_name: "b" {entry} {entry} }} ]'
    repository = write({"model/config.pbtxt": f'platform: "ensemble" ensemble_scheduling {{ {step} }}'}, base={})
    fields = [each.field for each in repository.check() if each.code == "CT107"]
    assert fields == ['ensemble_scheduling.step[1].input_map["IN"]']
