"""The rules CT110 to CT114: whether the server finds a version of a model to load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param({"bert/1/model.onnx": None}, [("CT110", "bert", "")], id="CT110 no version directory"),
        pytest.param(
            {"bert/1/model.onnx": None, "bert/v2/model.onnx": ""},
            [("CT110", "bert", "")],
            id="CT110 a version directory of another name",
        ),
        pytest.param(
            {"ensemble/1/.gitkeep": None}, [("CT110", "ensemble", "")], id="CT110 an ensemble, as git leaves it"
        ),
        pytest.param(
            {"bert/config.pbtxt": ('name: "bert"', 'name: "bert" version_policy { specific { versions: 3 } }')},
            [("CT110", "bert/config.pbtxt", "version_policy")],
            id="CT110 the policy picks none",
        ),
        pytest.param(
            {"ensemble/1/.gitkeep": None, "ensemble/1/": ""},
            [("CT111", "ensemble/1", "")],
            id="CT111 an empty one of an ensemble",
        ),
        pytest.param({"bert/02/model.onnx": ""}, [("CT112", "bert/02", "")], id="CT112 leading zeros"),
        pytest.param({"bert/2_old/model.onnx": ""}, [("CT113", "bert/2_old", "")], id="CT113 a number and more"),
        pytest.param({"bert/-1/model.onnx": ""}, [], id="a negative number that is not served"),
        pytest.param(
            {
                "bert/config.pbtxt": ('name: "bert"', 'name: "bert" version_policy { all { } }'),
                "bert/-1/model.onnx": "",
            },
            [("CT113", "bert/-1", "")],
            id="CT113 a negative number",
        ),
        pytest.param(
            {
                "bert/config.pbtxt": ('name: "bert"', "version_policy { specific { versions: 1 } }"),
                "bert/2_old/model.onnx": "",
            },
            [],
            id="a number and more, not picked by the policy",
        ),
        pytest.param(
            {"bert/1_old/model.onnx": "", "bert/0x/y": ""},
            [],
            id="a number and more, not picked",
        ),
        pytest.param(
            {"bert/9223372036854775808/model.onnx": ""},
            [("CT113", "bert/9223372036854775808", "")],
            id="CT113 too large",
        ),
        pytest.param(
            {"bert/config.pbtxt": ('name: "bert"', 'name: "bert" version_policy { specific { versions: [ 1, 3 ] } }')},
            [("CT114", "bert/config.pbtxt", "version_policy.specific.versions[1]")],
            id="CT114 one of the versions is missing",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_versions(
    messages: Messages,
    write: Write,
    change: Mapping[str, Change],
    findings: list[Place],
    mode: Literal["single", "multi"],
) -> None:
    repository = write(change)
    assert messages.of(repository.check(mode)) == findings


def test_a_plan_that_is_not_there_may_be_meant_to_be_built(messages: Messages, write: Write) -> None:
    config = 'platform: "tensorrt_plan" input { name: "X" data_type: TYPE_FP32 dims: 1 }'
    repository = write({"bert/config.pbtxt": config, "bert/bert.onnx": "x"}, base={})
    found = [finding for finding in repository.check() if finding.code == "CT110"]
    assert messages.of(found) == [("CT110", "bert", "")]
    assert "recipe" in found[0].fix


def test_repositories_in_a_directory_are_no_models(messages: Messages, write: Write) -> None:
    """Somebody named the directory above."""
    files = {"bert/config.pbtxt": 'backend: "python"', "bert/1/model.py": "class TritonPythonModel: ..."}
    repository = write({f"{name}/{path}": text for name in ("text", "image") for path, text in files.items()}, base={})
    found = messages.of(finding for finding in repository.check() if finding.path != ".")
    assert found == [("CT110", name, "") for name in ("image", "text")]
