"""`cdk-triton init`: the files of the project, and what is in their way."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import Distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.cli.init.requirement import requirement

if TYPE_CHECKING:
    from golden_messages import Messages

ROOT = Path(__file__).parents[2]
PLATFORM = ServingPlatform(release="26.05", instance_type="ml.g5.xlarge")
STRENGTH = "@aws-cdk/core:defaultCrossStackReferences"


def files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize(("option", "construct"), [("--single", "TritonModel"), ("--multi", "TritonMultiModel")])
def test_the_models_have_no_findings_and_every_placeholder_is_filled(
    run: Any, tmp_path: Path, option: str, construct: str
) -> None:
    project = tmp_path / "my-endpoint"
    assert run("init", project, option).status == 0

    assert ModelRepository.from_directory(project / "models").check("single", PLATFORM) == ()
    assert ModelRepository.from_directory(project / "models").check("multi", PLATFORM) == ()
    assert f"{construct}(" in (project / "stack.py").read_text()
    assert '"MyEndpoint"' in (project / "app.py").read_text()
    texts = [project / name for name in files(project) if not name.endswith((".onnx", ".json"))]
    assert not any(
        f"@{word}@" in path.read_text() for path in texts for word in ("PROJECT", "STACK", "MODE", "ASK", "NAMES")
    )
    assert ("--target-model" in (project / "README.md").read_text()) == (option == "--multi")


def test_the_context_is_that_of_the_cdks_own_init_with_strong_references(run: Any, tmp_path: Path) -> None:
    run("init", tmp_path)
    flags = ROOT / "node_modules/aws-cdk/lib/init-templates/.recommended-feature-flags.json"
    expected = {**json.loads(flags.read_text()), STRENGTH: "strong"}
    assert json.loads((tmp_path / "cdk.json").read_text())["context"] == expected


def test_the_cdk_command_is_the_one_that_is_pinned_here(run: Any, tmp_path: Path) -> None:
    run("init", tmp_path)
    for name in ("package.json", "package-lock.json"):
        written, pinned = (json.loads((where / name).read_text()) for where in (tmp_path, ROOT))
        for each in (written, pinned):
            each.pop("packages", {}).pop("", None)
        assert written.get("devDependencies") == pinned.get("devDependencies")
    lock = json.loads((tmp_path / "package-lock.json").read_text())["packages"]
    assert (
        lock["node_modules/aws-cdk"]
        == json.loads((ROOT / "package-lock.json").read_text())["packages"]["node_modules/aws-cdk"]
    )


@pytest.mark.parametrize("taken", ["app.py", "models/network/1/model.onnx", "models"])
def test_nothing_is_overwritten_and_what_is_in_the_way_is_named(
    run: Any, tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / taken).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / taken).write_text("mine")

    outcome = run("init", tmp_path)

    assert (outcome.status, outcome.out, files(tmp_path)) == (2, "", [taken])
    assert (tmp_path / taken).read_text() == "mine"
    messages.record("cdk-triton init", outcome.said)


def test_a_directory_that_cannot_be_written_is_a_sentence_and_leaves_nothing(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("shutil.copyfileobj", fails)  # the network is the last of the files
    outcome = run("init", tmp_path / "project")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == (
        f"error: the project cannot be written to {tmp_path / 'project'}: Permission denied; name another directory\n"
    )
    assert not (tmp_path / "project").exists()


@pytest.mark.parametrize("name", ["weird dir é", "plain"])
def test_a_shell_understands_the_next_steps(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)

    steps = run("init", name).out.splitlines()[2:]

    assert shlex.split(steps[0]) == ["cd", name]
    readme = (tmp_path / name / "README.md").read_text()
    assert "\n".join(steps[1:-1]) in readme
    assert steps[1] == "python3 -m venv .venv"


class Installed(Distribution):
    """A distribution that pip recorded so."""

    def __init__(self, url: str) -> None:
        self._url = url

    def read_text(self, filename: str) -> str | None:
        return self._url if filename == "direct_url.json" and self._url else "Version: 0.2.0\n"

    def locate_file(self, path: Any) -> Any:
        return path


@pytest.mark.parametrize(
    ("recorded", "line"),
    [
        ("{}", "cdk-triton[local]==0.2.0"),
        (
            '{"url": "https://git.example.com/t", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "cdk-triton[local] @ git+https://git.example.com/t@abc",
        ),
        ('{"url": "file:///w/t.whl", "archive_info": {}}', "cdk-triton[local] @ file:///w/t.whl"),
    ],
    ids=["an index", "a Git server", "a wheel"],
)
def test_the_requirement_is_the_place_of_the_installation(recorded: str, line: str) -> None:
    assert requirement(Installed(recorded)).lines.splitlines()[-1] == line
