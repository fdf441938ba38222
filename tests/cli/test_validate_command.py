"""`cdk-triton validate`: what it is asked, and the exit status that a script branches on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages


@pytest.fixture
def broken(repository: Path) -> Path:
    """The same repository, with a typo in a configuration."""
    config = repository / "echo" / "config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size", "max_batch_siz"))
    return repository


@pytest.fixture
def warned(repository: Path) -> Path:
    """The same repository, with a warning (CT112)."""
    (repository / "echo" / "02").mkdir()
    return repository


@pytest.fixture
def unread(repository: Path) -> Path:
    """The same repository, with a model whose file no rule reads."""
    config = repository / "echo" / "config.pbtxt"
    config.write_text(config.read_text().replace('"python"', '"openvino"'))
    for name in ("model.xml", "model.bin"):
        (repository / "echo" / "1" / name).touch()
    return repository


def test_a_clean_repository_ends_with_0(messages: Messages, run: Any, repository: Path) -> None:
    outcome = run("validate", repository)
    assert (outcome.status, outcome.err) == (0, "")
    messages.record("cdk-triton validate", outcome.out.splitlines()[0])


def test_an_error_ends_with_1(run: Any, broken: Path) -> None:
    assert run("validate", broken).status == 1


def test_a_warning_alone_ends_with_0(run: Any, warned: Path) -> None:
    outcome = run("validate", warned)
    assert outcome.status == 0
    assert f"{warned}/echo/02: warning CT112: " in outcome.out


def test_json_of_a_clean_repository_is_an_empty_list(run: Any, repository: Path) -> None:
    outcome = run("validate", repository, "--format", "json")
    assert (outcome.status, json.loads(outcome.out)) == (0, {"findings": [], "not_read": []})


def test_json_has_the_fields_of_the_contract(run: Any, broken: Path) -> None:
    outcome = run("validate", broken, "--format", "json")

    (finding,) = json.loads(outcome.out)["findings"]
    assert outcome.status == 1
    assert set(finding) == {"repository", "code", "severity", "path", "field", "message", "fix"}
    assert (finding["severity"], finding["path"]) == ("error", "echo/config.pbtxt")


def test_json_lists_what_no_rule_read(run: Any, unread: Path) -> None:
    outcome = run("validate", unread, "--strict", "--format", "json")
    reason = "the checks do not open files of the backend 'openvino'"
    part = {"repository": str(unread), "path": "echo/1/model.xml", "model": "echo", "reason": reason}
    assert (outcome.status, json.loads(outcome.out)) == (0, {"findings": [], "not_read": [part]})


def test_what_is_acknowledged_is_no_finding(run: Any, warned: Path) -> None:
    (warned / "cdk-triton.toml").write_text('[acknowledge]\nCT112 = "kept for the record"\n')
    outcome = run("validate", warned, "--format", "json")
    assert (outcome.status, json.loads(outcome.out)) == (0, {"findings": [], "not_read": []})


def test_mode_platform_and_models_reach_the_checks(run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdk_triton.triton import ModelRepository

    report = ModelRepository.report
    seen: list[Any] = []

    def remember(self: ModelRepository, *given: Any, **named: Any) -> Any:
        seen.append((*given, named))
        return report(self, *given, **named)

    monkeypatch.setattr(ModelRepository, "report", remember)
    run("validate", repository, "--mode", "multi", "--platform", "25.09/ml.g5.2xlarge")
    run("validate", repository, "--default-model", "a", "--additional-model", "b", "--additional-model", "c")
    run("validate", repository)

    assert [(mode, platform and platform.label) for mode, platform, _ in seen] == [
        ("multi", "25.09-a10g"),
        ("single", None),
        ("single", None),
    ]
    assert [(named["default_model"], named["additional_models"]) for _, _, named in seen] == [
        (None, ()),
        ("a", ["b", "c"]),
        (None, ()),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["{missing}"], id="missing directory"),
        pytest.param(["{empty}"], id="empty directory"),
        pytest.param(["{good}/echo/config.pbtxt"], id="a file"),
        pytest.param(["{untabled}"], id="settings that are no TOML"),
        pytest.param(["{unknown}"], id="acknowledgement"),
        pytest.param(["{good}", "--platform", "25.90/ml.g5.xlarge"], id="unknown release"),
        pytest.param(["{good}", "--platform", "99.99/ml.g5.xlarge"], id="release of the future"),
        pytest.param(["{good}", "--platform", "25.09/ml.g5.xlrage"], id="unknown instance type"),
        pytest.param(["{good}", "--image", "triton"], id="an image without a platform"),
        pytest.param(["{good}", "--platform", "26.09/ml.g5.xlarge", "--image", "triton:26.09"], id="an image by tag"),
        pytest.param(["{good}", "--platform", "25.09"], id="no instance type"),
        pytest.param(["{good}", "--platform", "ml.g5.xlarge/25.09"], id="instance type first"),
        pytest.param(["{good}", "--platform", "/ml.g5.xlarge"], id="no release"),
        pytest.param(["{good}", "--mode", "several"], id="unknown mode"),
        pytest.param(["{good}", "--format", "yaml"], id="unknown format"),
        pytest.param(["{good}", "--mode", "multi", "--default-model", "echo"], id="a default model of many"),
        pytest.param(["{good}", "--mode", "multi", "--additional-model", "echo"], id="an additional model of many"),
        pytest.param(["{good}", "--stritcly"], id="unknown option"),
        pytest.param([], id="no directory"),
    ],
)
def test_bad_input_is_one_sentence_on_stderr(
    messages: Messages, run: Any, repository: Path, tmp_path: Path, arguments: list[str]
) -> None:
    places = {"good": repository, **{name: tmp_path / name for name in ("missing", "empty", "unknown", "untabled")}}
    places["empty"].mkdir()
    for name, settings in (("unknown", '[acknowledge]\nCT999 = "why not"\n'), ("untabled", "acknowledge {")):
        places[name].mkdir()
        (places[name] / "model").touch()
        (places[name] / "cdk-triton.toml").write_text(settings)

    outcome = run("validate", *(argument.format(**places) for argument in arguments))

    assert (outcome.status, outcome.out) == (2, "")
    assert "Traceback" not in outcome.err
    if not outcome.err.startswith("Usage: "):
        assert len(outcome.err.splitlines()) == 1
    messages.record("cdk-triton validate", outcome.said)


UNREADABLE = ["absent", "empty", "dangling", "outside", "litter", "settings"]


@pytest.fixture
def unreadable(tmp_path: Path) -> Path:
    """A directory with repositories that cannot be read."""
    for name in UNREADABLE[1:]:
        (tmp_path / name / "model" / "1").mkdir(parents=True)
    (tmp_path / "dangling" / "model" / "config.pbtxt").symlink_to("nowhere")
    (tmp_path / "outside" / "model" / "config.pbtxt").symlink_to("/etc/hostname")
    (tmp_path / "litter" / ".DS_Store").touch()
    (tmp_path / "settings" / "model" / "config.pbtxt").touch()
    (tmp_path / "settings" / "cdk-triton.toml").write_text("acknowledge {")
    return tmp_path


@pytest.mark.parametrize("name", UNREADABLE)
def test_json_is_printed_for_a_repository_that_cannot_be_read(run: Any, unreadable: Path, name: str) -> None:
    outcome = run("validate", str(unreadable / name), "--format", "json")
    (finding,) = json.loads(outcome.out)["findings"]
    assert (outcome.status, finding["code"], finding["severity"], finding["path"]) == (2, "CT002", "error", ".")
    assert finding["message"] in outcome.err
    assert finding["fix"] in outcome.err


@pytest.mark.parametrize("name", UNREADABLE)
def test_sarif_says_that_the_run_failed(run: Any, unreadable: Path, name: str) -> None:
    outcome = run("validate", str(unreadable / name), "--format", "sarif")
    (sarif_run,) = json.loads(outcome.out)["runs"]
    (invocation,) = sarif_run["invocations"]
    assert (outcome.status, invocation["executionSuccessful"], sarif_run["results"]) == (2, False, [])
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] in outcome.err


@pytest.mark.slow
def test_through_the_installed_program(program: Any, repository: Path, tmp_path: Path) -> None:
    assert program("validate", "models", "--format", "json", cwd=tmp_path).status == 0
    assert program("validate", "no-such-directory", cwd=tmp_path).status == 2
    assert program("validate", "models", "--format", "yaml", cwd=tmp_path).status == 2


def test_a_preflight_without_the_extra_says_what_to_install(
    messages: Messages, run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdk_triton.tensorrt_models.reader.parser.is_installed", lambda: False)
    outcome = run("validate", repository, "--preflight")
    assert (outcome.status, outcome.out) == (2, "")
    messages.record("cdk-triton validate", outcome.said)


def test_a_preflight_leaves_no_rule_out_for_it(run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdk_triton.tensorrt_models.reader.parser.is_installed", lambda: True)
    assert "--preflight" not in run("validate", repository).out  # there is no model of TensorRT
    (repository / "plan").mkdir()
    (repository / "plan" / "config.pbtxt").write_text('backend: "tensorrt"')
    (repository / "plan" / "1").mkdir()
    (repository / "plan" / "1" / "model.onnx").write_bytes(b"")  # the network of the plan
    assert "--preflight" in run("validate", repository).out
    assert "--preflight" not in run("validate", repository, "--preflight").out


@pytest.mark.parametrize("has_models", [True, False], ids=["with models", "without models"])
def test_a_project_with_links_out_of_it_is_not_a_repository(
    messages: Messages, run: Any, repository: Path, tmp_path: Path, has_models: bool
) -> None:
    project = tmp_path if has_models else tmp_path / "other"
    (project / ".cdk-triton").mkdir(parents=True)
    (project / ".cdk-triton" / "link").symlink_to("/usr/lib")

    outcome = run("validate", project)

    assert (outcome.status, outcome.out) == (2, "")
    assert (f"run: cdk-triton validate {repository}" in outcome.err) is has_models
    messages.record("cdk-triton validate", outcome.said)
