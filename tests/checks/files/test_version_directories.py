"""The rules CT110 to CT114: whether the server finds a version of a model to load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"bert/1/model.onnx": None},
            [
                "bert: error CT110: the model 'bert' has no version directory, and the server would not load"
                " it: at least one version must be available under the version policy of model 'bert'; put"
                " its files into a directory 1 in the directory of 'bert'",
            ],
            id="CT110 no version directory",
        ),
        pytest.param(
            {"bert/1/model.onnx": None, "bert/v2/model.onnx": ""},
            [
                "bert: error CT110: the model 'bert' has no version directory, and the server would not load"
                " it: at least one version must be available under the version policy of model 'bert';"
                " rename its directory v2 to 2",
            ],
            id="CT110 a version directory of another name",
        ),
        pytest.param(
            {"ensemble/1/.gitkeep": None},
            [
                "ensemble: error CT110: the ensemble 'ensemble' has no version directory (git does not keep"
                " an empty one), and the server would not load it: at least one version must be available"
                " under the version policy of model 'ensemble'; create the empty file 1/.gitkeep in the"
                " directory of 'ensemble'",
            ],
            id="CT110 an ensemble, as git leaves it",
        ),
        pytest.param(
            {"bert/config.pbtxt": ('name: "bert"', 'name: "bert" version_policy { specific { versions: 3 } }')},
            [
                "bert/config.pbtxt version_policy: error CT110: the policy picks none of the versions 1 of"
                " 'bert', and the server would not load it: at least one version must be available under the"
                " version policy of model 'bert'; correct the policy, or add the version that it asks for",
            ],
            id="CT110 the policy picks none",
        ),
        pytest.param(
            {"ensemble/1/.gitkeep": None, "ensemble/1/": ""},
            [
                "ensemble/1: warning CT111: the version directory of the ensemble 'ensemble' is empty; it"
                " works here, and is missing in a fresh clone, because git keeps no empty directory: at least"
                " one version must be available under the version policy of model 'ensemble'; create the"
                " empty file 1/.gitkeep in the directory of 'ensemble'",
            ],
            id="CT111 an empty one of an ensemble",
        ),
        pytest.param(
            {"bert/02/model.onnx": ""},
            [
                "bert/02: warning CT112: the server would ignore version directory '02' which contains"
                " leading zeros in its directory name; rename it to 2",
            ],
            id="CT112 leading zeros",
        ),
        pytest.param(
            {"bert/2_old/model.onnx": ""},
            [
                "bert/2_old: error CT113: the server takes the directory '2_old' for version 2 of 'bert' and"
                " would look for its files in bert/2, which does not exist; rename it to 2 if it is that"
                " version, or so that it does not begin with a number",
            ],
            id="CT113 a number and more",
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
            [
                "bert/9223372036854775808: error CT113: the number 9223372036854775808 is too large for a"
                " version, and the server would crash: std::out_of_range stoll; give the version a smaller"
                " number",
            ],
            id="CT113 too large",
        ),
        pytest.param(
            {"bert/config.pbtxt": ('name: "bert"', 'name: "bert" version_policy { specific { versions: [ 1, 3 ] } }')},
            [
                "bert/config.pbtxt version_policy.specific.versions[1]: warning CT114: version 3 is specified"
                " for model 'bert', but the version directory is not present; the server would serve without"
                " it; add bert/3, or leave the version out",
            ],
            id="CT114 one of the versions is missing",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_versions(
    write: Write, change: Mapping[str, Change], findings: list[str], mode: Literal["single", "multi"]
) -> None:
    repository = write(change)
    assert [str(finding) for finding in repository.check(mode)] == findings


def test_a_plan_that_is_not_there_may_be_meant_to_be_built(write: Write) -> None:
    config = 'platform: "tensorrt_plan" input { name: "X" data_type: TYPE_FP32 dims: 1 }'
    repository = write({"bert/config.pbtxt": config, "bert/bert.onnx": "x"}, base={})
    fixes = {finding.path: finding.fix for finding in repository.check() if finding.code == "CT110"}
    assert fixes["bert"].startswith(
        "put its files into a directory 1 in the directory of 'bert', or let a recipe build"
    )
    assert "produced of cdk-triton.toml" in fixes["bert"]


def test_repositories_in_a_directory_are_no_models(write: Write) -> None:
    """Somebody named the directory above."""
    files = {"bert/config.pbtxt": 'backend: "python"', "bert/1/model.py": "class TritonPythonModel: ..."}
    repository = write({f"{name}/{path}": text for name in ("text", "image") for path, text in files.items()}, base={})
    found = {finding.path: (finding.code, finding.fix) for finding in repository.check() if finding.path != "."}
    assert found == {
        name: ("CT110", f"name the directory {name} itself as the repository, or move its models up")
        for name in ("text", "image")
    }
