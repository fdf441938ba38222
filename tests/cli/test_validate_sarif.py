"""Findings as SARIF, as code scanning reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.checks import rule_of

if TYPE_CHECKING:
    from golden_messages import Messages


ENSEMBLE = """\
platform: "ensemble"
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step { model_name: "ecco" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }
}
"""


@pytest.fixture
def checkout(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout as in CI: the repository lies below the working directory, and has an error and a warning."""
    (repository / "echo" / "02").mkdir()
    (repository / "pipe line" / "1").mkdir(parents=True)
    (repository / "pipe line" / "1" / ".gitkeep").touch()
    (repository / "pipe line" / "config.pbtxt").write_text(ENSEMBLE)
    monkeypatch.chdir(repository.parent)
    return repository


def sarif(run: Any, *arguments: str | Path) -> dict[str, Any]:
    """The one run of the log."""
    outcome = run("validate", *arguments, "--format", "sarif")
    assert outcome.err == ""
    log = json.loads(outcome.out)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (one,) = log["runs"]
    return dict(one)


def result_of(run: dict[str, Any], code: str) -> dict[str, Any]:
    (result,) = (result for result in run["results"] if result["ruleId"] == code)
    return dict(result)


def test_a_clean_repository_has_a_run_without_results(run: Any, repository: Path) -> None:
    one = sarif(run, repository)
    assert (one["results"], one["tool"]["driver"]["rules"]) == ([], [])


def test_what_no_rule_read_is_a_note_of_the_run_and_no_result(run: Any, repository: Path) -> None:
    config = repository / "echo" / "config.pbtxt"
    config.write_text(config.read_text().replace('"python"', '"openvino"'))
    for name in ("model.xml", "model.bin"):
        (repository / "echo" / "1" / name).touch()
    one = sarif(run, repository)
    (note,) = one["invocations"][0]["toolExecutionNotifications"]
    assert (note["level"], one["results"]) == ("note", [])
    assert note["message"]["text"].startswith("echo/1/model.xml was not read: ")
    (location,) = note["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "echo/1/model.xml"


def test_a_finding_points_at_the_file_as_the_checkout_knows_it(messages: Messages, run: Any, checkout: Path) -> None:
    result = result_of(sarif(run, checkout), "CT301")
    assert result["level"] == "error"
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "models/pipe%20line/config.pbtxt", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 5, "startColumn": 10, "endColumn": 20},
            }
        }
    ]
    messages.record("cdk-triton validate", result["message"]["text"])


def test_a_directory_is_shown_at_its_models_configuration(run: Any, checkout: Path) -> None:
    (location,) = result_of(sarif(run, checkout, "--default-model", "echo"), "CT112")["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "models/echo/config.pbtxt", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1},
    }


def test_outside_the_checkout_addresses_are_relative_to_the_repository(
    run: Any, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    one = sarif(run, checkout)
    assert one["originalUriBaseIds"] == {"REPOSITORY": {"uri": f"{checkout.as_uri()}/"}}
    (location,) = result_of(one, "CT301")["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {
        "uri": "pipe%20line/config.pbtxt",
        "uriBaseId": "REPOSITORY",
    }


def test_every_result_refers_to_its_rule(run: Any, checkout: Path) -> None:
    one = sarif(run, checkout)
    rules = one["tool"]["driver"]["rules"]
    assert one["tool"]["driver"]["name"] == "cdk-triton"
    assert {rule["id"] for rule in rules} == {result["ruleId"] for result in one["results"]}
    for result in one["results"]:
        rule, described = rule_of(result["ruleId"]), rules[result["ruleIndex"]]
        assert described["id"] == rule.code
        assert described["shortDescription"]["text"] == rule.title
        assert described["fullDescription"]["text"] == rule.documentation.summary
        assert described["help"]["markdown"] == rule.documentation.markdown()
        assert described["helpUri"] == rule.source
        assert described["defaultConfiguration"]["level"] == result["level"] == rule.severity


def test_a_fingerprint_stays_when_the_file_grows_above_the_place(run: Any, checkout: Path) -> None:
    before = result_of(sarif(run, checkout), "CT301")
    config = checkout / "pipe line" / "config.pbtxt"
    config.write_text(f"# a comment\n{config.read_text()}")
    after = result_of(sarif(run, checkout), "CT301")
    assert before["locations"] != after["locations"]
    assert before["partialFingerprints"] == after["partialFingerprints"]


def test_fingerprints_are_told_apart(run: Any, checkout: Path) -> None:
    (checkout / "echo" / "03").mkdir()
    results = sarif(run, checkout, "--default-model", "echo")["results"]
    fingerprints = [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]
    assert len(set(fingerprints)) == len(fingerprints) >= 2


def test_below_the_top_of_the_checkout_addresses_are_those_of_the_checkout(
    run: Any, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout.parent / ".git").mkdir()
    monkeypatch.chdir(checkout)
    one = sarif(run, ".")
    (location,) = result_of(one, "CT301")["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "models/pipe%20line/config.pbtxt"
    assert one["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{checkout.parent.as_uri()}/"}}


def test_repositories_of_one_checkout_are_told_apart(run: Any, checkout: Path) -> None:
    assert sarif(run, checkout)["automationDetails"] == {"id": "cdk-triton/models/"}


def test_what_is_about_the_whole_repository_is_shown_at_a_file(run: Any, checkout: Path) -> None:
    (checkout / "pipe line" / "config.pbtxt").write_text('backend: "python"\n')
    (location,) = result_of(sarif(run, checkout), "CT403")["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "models/echo/config.pbtxt"


def test_rules_that_were_left_out_are_named(run: Any, checkout: Path) -> None:
    def left_out(*arguments: str) -> set[str]:
        (invocation,) = sarif(run, checkout, *arguments)["invocations"]
        return {each["associatedRule"]["id"] for each in invocation["toolConfigurationNotifications"]}

    assert "CT601" in left_out()
    assert "CT601" not in left_out("--platform", "25.09/ml.g5.xlarge")


def test_what_is_acknowledged_is_left_out(run: Any, checkout: Path) -> None:
    (checkout / "cdk-triton.toml").write_text('[acknowledge]\nCT112 = "kept for the record"\n')
    one = sarif(run, checkout, "--default-model", "echo")
    assert "CT112" not in {result["ruleId"] for result in one["results"]}
