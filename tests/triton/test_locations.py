"""Where the field of a finding stands in its `config.pbtxt`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.triton.locations import Location, Locations, locate

if TYPE_CHECKING:
    from sample_repositories import Write

TEXT = """\
# platform: "nothing"
name: "model" platform: "ensemble"
max_batch_size : 8  # comment
input [
  { name: "A" data_type: TYPE_FP32 dims: [ -1, 4 ] },
  { name: "B"
    data_type: TYPE_INT32 dims: 3 dims: 5 }
]
input { name: "C" dims: [ ] }
ensemble_scheduling <
  step {
    model_name: "one"
    input_map { key: "X" value: "A" }
    input_map { key: "Y" value: 'B' };
  }
  step { model_name: "two" }
>
parameters { key: "EXECUTION_ENV_PATH" value { string_value: "env" ".tar.gz" } }
version_policy: { specific { versions: [1,\t22] } }
"""


def at(text: str, path: str) -> str | None:
    """Line, column, and what stands there."""
    location = locate(text, path)
    if location is None:
        return None
    line = text.split("\n")[location.line - 1]
    return f"{location.line}:{location.column} {line[location.column - 1 :][: location.length]}"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("platform", "2:15 platform"),
        ("max_batch_size", "3:1 max_batch_size"),
        ("input", "4:1 input"),
        ("input[0]", "5:3 {"),
        ("input[1]", "6:3 {"),
        ("input[2]", "9:1 input"),
        ("input[1].data_type", "7:5 data_type"),
        ("input[0].dims", "5:36 dims"),
        ("input[0].dims[1]", "5:48 4"),
        ("input[1].dims[1]", "7:35 dims"),
        ("input[2].dims", "9:19 dims"),
        ('input["B"].dims', "7:27 dims"),
        ("ensemble_scheduling", "10:1 ensemble_scheduling"),
        ("ensemble_scheduling.step", "11:3 step"),
        ("ensemble_scheduling.step[1].model_name", "16:10 model_name"),
        ("ensemble_scheduling.step[0].input_map", "13:5 input_map"),
        ('ensemble_scheduling.step[0].input_map["Y"]', "14:5 input_map"),
        ("ensemble_scheduling.step[0].input_map['Y'].value", "14:26 value"),
        ("ensemble_scheduling.step[0].input_map[Y]", "14:5 input_map"),
        ("parameters[EXECUTION_ENV_PATH]", "18:1 parameters"),
        ('parameters["EXECUTION_ENV_PATH"].string_value', "18:48 string_value"),
        ("version_policy.specific.versions[1]", "19:44 22"),
    ],
)
def test_a_field_is_where_it_is_written(path: str, place: str) -> None:
    assert at(TEXT, path) == place


def test_strings_without_a_comma_between_them_are_one_value() -> None:
    assert at('instance_group { profile: [ "a" "b", "c" ] }', "instance_group[0].profile[1]") == '1:38 "c"'


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("backend", None),
        ("instance_group[0].count", None),
        ("", None),
        ("ensemble_scheduling.step[1].input_map", "16:3 step"),
        ("ensemble_scheduling.step[7]", "11:3 step"),
        ("input[0].reshape.shape", "5:3 {"),
        ('ensemble_scheduling.step[0].output_map["Z"]', "11:3 step"),
        ('ensemble_scheduling.step[0].input_map["Z"]', "13:5 input_map"),
    ],
)
def test_what_is_not_written_is_where_it_would_be(path: str, place: str | None) -> None:
    assert at(TEXT, path) == place


@pytest.mark.parametrize(
    "text",
    [
        "input { dims: ",
        "input {{{{ dims",
        "}}}} ]] input { dims: 3",
        "input: ] dims",
        "input [[{ dims 3",
        'a: "x\n input {}',
    ],
)
def test_a_broken_text_has_places_as_far_as_it_makes_sense(text: str) -> None:
    assert text.startswith("a") or at(text, "input[0].dims[0]") is not None


def test_a_stray_bracket_hides_nothing_below_it() -> None:
    assert at("}}> ]]\ninput { dims: 3", "input[0].dims[0]") == "2:9 dims"


def test_deep_nesting_is_no_problem() -> None:
    assert at("a { " * 20_000, "a.a") == "1:5 a"


@given(st.text(alphabet="input dims:{}[]<>,;\"'#\n\t\r1é\\") | st.text())
def test_no_text_is_too_strange(text: str) -> None:
    location = locate(text, "input[0].dims[0]")
    assert location is None or 1 <= location.line <= text.count("\n") + 1


def test_what_the_parser_complains_about_is_where_it_stopped(write: Write) -> None:
    repository = write({"bert/config.pbtxt": ('platform: "onnx', 'platfrom: "onnx')})
    (finding,) = (finding for finding in repository.check() if finding.code == "CT101")
    locations = Locations(repository)
    assert locations.of(finding) == Location(3, 1, len("platfrom"))
    assert locations.line(finding.path, Location(3, 1)) == 'platfrom: "onnxruntime_onnx"'


def test_a_finding_about_a_directory_has_no_place_in_a_text(write: Write) -> None:
    repository = write({"bert/02/model.onnx": ""})
    (finding,) = repository.check()
    assert Locations(repository).of(finding) is None


def test_the_text_that_the_loader_finds_is_where_it_finds_it(write: Write) -> None:
    text = '# no\n  # platform: "ensemble" it is not\nbackend: "python"'
    repository = write({"extra/config.pbtxt": text, "extra/1/model.py": ""})
    (finding,) = (finding for finding in repository.check("multi") if finding.code == "CT504")
    assert Locations(repository).of(finding) == Location(2, 3, len('# platform: "ensemble" it is not'))
