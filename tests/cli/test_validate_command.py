"""`cdk-triton validate`: findings as text and JSON, and the exit status that a script branches on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def broken(repository: Path) -> Path:
    """The same repository, with a typo in a configuration."""
    config = repository / "echo" / "config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size", "max_batch_siz"))
    return repository


def test_a_clean_repository_ends_with_0_and_one_line(run: Any, repository: Path) -> None:
    outcome = run("validate", repository)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"{repository}: 1 model, no findings\n"


def test_json_of_a_clean_repository_is_an_empty_list(run: Any, repository: Path) -> None:
    outcome = run("validate", repository, "--format", "json")
    assert (outcome.status, json.loads(outcome.out)) == (0, {"findings": []})


def test_an_error_ends_with_1_and_says_file_code_reason_and_mend(run: Any, broken: Path) -> None:
    outcome = run("validate", broken)

    finding, mend, summary = outcome.out.splitlines()
    assert outcome.status == 1
    assert finding.startswith(f"{broken}/echo/config.pbtxt")
    assert ": error CT" in finding
    assert "max_batch_siz" in finding
    assert mend.startswith("    ")
    assert summary == f"{broken}: 1 model, 1 error"


def test_json_has_the_six_fields_of_the_contract(run: Any, broken: Path) -> None:
    outcome = run("validate", broken, "--format", "json")

    (finding,) = json.loads(outcome.out)["findings"]
    assert outcome.status == 1
    assert set(finding) == {"code", "severity", "path", "field", "message", "mend"}
    assert (finding["severity"], finding["path"]) == ("error", "echo/config.pbtxt")


def test_a_warning_alone_ends_with_0(run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdk_triton.triton import Finding, ModelRepository, Severity

    warning = Finding("CT999", Severity.WARNING, "echo", "", "is odd", "make it even")
    monkeypatch.setattr(ModelRepository, "check", lambda *_, **__: (warning, warning))

    outcome = run("validate", repository)

    assert outcome.status == 0
    assert outcome.out.splitlines()[0] == f"{repository}/echo: warning CT999: is odd"
    assert outcome.out.splitlines()[-1] == f"{repository}: 1 model, 2 warnings"


def test_mode_and_platform_reach_the_checks(run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdk_triton.triton import ModelRepository

    seen: list[Any] = []

    def check(_: ModelRepository, **arguments: Any) -> tuple[()]:
        seen.append(arguments)
        return ()

    monkeypatch.setattr(ModelRepository, "check", check)
    run("validate", repository, "--mode", "multi", "--platform", "25.09/ml.g5.2xlarge")
    run("validate", repository)

    assert seen[0]["mode"] == "multi"
    assert (seen[0]["platform"].release, seen[0]["platform"].instance_type) == ("25.09", "ml.g5.2xlarge")
    assert seen[1] == {"mode": "single", "platform": None}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["{missing}"], 1, "error: the model repository '{missing}' does not exist"),
        (["{empty}"], 1, "error: "),
        (["{good}", "--platform", "99.99/ml.g5.xlarge"], 1, "error: '99.99' is "),
        (["{good}", "--platform", "25.09/ml.g99.xlarge"], 1, "error: 'ml.g99.xlarge' is "),
        (["{good}", "--platform", "25.09"], 2, "'25.09' is not RELEASE/INSTANCE"),
        (["{good}", "--platform", "/ml.g5.xlarge"], 2, "is not RELEASE/INSTANCE"),
        (["{good}", "--mode", "several"], 2, "'several' is not one of 'single', 'multi'"),
        (["{good}", "--format", "yaml"], 2, "'yaml' is not one of 'text', 'json'"),
        (["{good}", "--strict"], 2, "No such option: --strict"),
        ([], 2, "Missing argument 'DIR'"),
    ],
    ids=[
        "missing directory",
        "empty directory",
        "unknown release",
        "unknown instance type",
        "no instance type",
        "no release",
        "unknown mode",
        "unknown format",
        "unknown option",
        "no directory",
    ],
)
def test_bad_input_is_one_sentence_on_stderr(
    run: Any, repository: Path, tmp_path: Path, arguments: list[str], status: int, message: str
) -> None:
    places = {"good": repository, "missing": tmp_path / "missing", "empty": tmp_path / "empty"}
    places["empty"].mkdir()

    outcome = run("validate", *(argument.format(**places) for argument in arguments))

    assert (outcome.status, outcome.out) == (status, "")
    assert message.format(**places) in outcome.said
    assert "Traceback" not in outcome.err
    if status == 1:
        assert len(outcome.err.splitlines()) == 1


def test_through_the_installed_program(program: Any, repository: Path, tmp_path: Path) -> None:
    assert program("validate", "models", "--format", "json", cwd=tmp_path).status == 0
    assert program("validate", "no-such-directory", cwd=tmp_path).status == 1
    assert program("validate", "models", "--format", "yaml", cwd=tmp_path).status == 2
