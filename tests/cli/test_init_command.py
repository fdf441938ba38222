"""`cdk-triton init`: the files of the project, and what is in their way."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import onnx.parser
import pytest

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.cli.init.requirement import requirement
from cdk_triton.client import TritonClient

if TYPE_CHECKING:
    from golden_messages import Messages

ROOT = Path(__file__).parents[2]
PLATFORM = ServingPlatform(release="26.05", instance_type="ml.g5.xlarge")
STRENGTH = "@aws-cdk/core:defaultCrossStackReferences"


PYTHON = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "{read}").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("{made}", values)])
"""
NETWORK = (
    '<ir_version: 8, opset_import: ["" : 17]> network (float[N,2] x) => (float[N,4] y) { y = Concat<axis=1>(x, x) }'
)
TYPED = """
backend: "python"
max_batch_size: 4
input [
  { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "WORDS" data_type: TYPE_STRING dims: [ 2, -1 ] },
  { name: "FLAG" data_type: TYPE_BOOL dims: [ 1 ] },
  { name: "HALF" data_type: TYPE_FP16 dims: [ 3, -1 ] },
  { name: "IDS" data_type: TYPE_INT64 dims: [ -1 ] }
]
output [ { name: "LABEL" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


def write_models(directory: Path) -> None:
    """A network, and the Python models around it."""
    onnx.save(onnx.parser.parse_model(NETWORK), directory / "net.onnx")
    (directory / "typed" / "1").mkdir(parents=True)
    (directory / "typed" / "config.pbtxt").write_text(TYPED)
    (directory / "typed" / "1" / "model.py").write_text(PYTHON.format(read="TEXT", made="LABEL"))
    (directory / "pre.py").write_text(PYTHON.format(read="TEXT", made="features"))
    (directory / "post.py").write_text(PYTHON.format(read="SCORES", made="LABEL"))


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
    assert not any(re.search("@[A-Z]+@", path.read_text()) for path in texts)
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

    write_models(tmp_path)
    monkeypatch.setattr("shutil.copyfileobj", fails)  # the network is the last of the files
    outcome = run("init", tmp_path / "project", "--from", tmp_path / "net.onnx")
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
    monkeypatch.setenv("PATH", "/usr/bin")  # no environment is active

    steps = run("init", name).out.splitlines()[2:]

    assert shlex.split(steps[0]) == ["cd", name]
    readme = (tmp_path / name / "README.md").read_text()
    assert "\n".join(steps[1:-1]) in readme
    assert steps[1] == "python3 -m venv .venv"


def test_the_next_steps_are_those_that_are_not_done_yet(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    (programs / "cdk").touch()
    monkeypatch.setenv("PATH", f"{Path(sys.prefix, 'bin')}:{programs}:/usr/bin")
    assert run("init").out.splitlines()[2:] == ["pytest"]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--single", "--multi"])
@pytest.mark.parametrize(
    "models",
    [
        ["net.onnx"],
        ["net.onnx", "pre.py", "post.py"],
        ["pre.py"],
        ["--from", "pre.py", "--from", "net.onnx"],
        ["typed"],
    ],
)
def test_a_project_around_models_of_the_users_has_no_findings(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, models: list[str]
) -> None:
    write_models(tmp_path)
    monkeypatch.chdir(tmp_path)

    outcome = run("init", "my-endpoint", *([] if "--from" in models else ["--from"]), *models, option)

    assert outcome.status == 0
    project = tmp_path / "my-endpoint"
    repository = ModelRepository.from_directory(project / "models")
    assert {each.name for each in repository.models} == {Path(each).stem for each in models if "--" not in each} | {
        "my-endpoint"
    }
    assert repository.check("multi" if option == "--multi" else "single", PLATFORM) == ()
    sent: dict[str, Any] = {"__file__": str(project / "ask.py")}
    exec((project / "ask.py").read_text().partition("\nstacks = ")[0], sent)
    unused: Any = object()
    TritonClient("endpoint", runtime=unused).for_repository(project / "models").contract.complete(sent["INPUTS"])
    assert not any(re.search("@[A-Z]+@", (project / name).read_text()) for name in files(project) if "." in name[1:3])
    assert "my-endpoint" in (project / "README.md").read_text()


@pytest.mark.parametrize(
    "case", ["missing", "not a network", "another backend's", "no model", "twice", "an example's name", "no value"]
)
def test_models_that_cannot_be_used_are_a_sentence_and_nothing_is_written(
    run: Any, tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(tmp_path)
    write_models(tmp_path)
    (tmp_path / "broken.onnx").write_text("not a network")
    (tmp_path / "checkpoint.tl").write_bytes(b"\x04\x00\x00\x00")
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    given = {
        "missing": ["net.onnx", "nowhere.py"],
        "not a network": ["pre.py", "broken.onnx"],
        "another backend's": ["pre.py", "checkpoint.tl"],
        "no model": ["net.onnx", "helper.py"],
        "twice": ["net.onnx", "./net.onnx"],
        "an example's name": ["net.onnx", "my-endpoint"],
        "no value": [],
    }[case]
    before = files(tmp_path)

    outcome = run("init", "my-project", "--from", *given)

    assert (outcome.status, outcome.out, files(tmp_path)) == (2, "", before)
    messages.record("cdk-triton init", outcome.said)


@pytest.mark.slow
def test_the_tests_of_a_vendored_package_are_not_run(run: Any, tmp_path: Path) -> None:
    run("init", tmp_path)
    for place in ("models/letters/1/vendor/package", "search/clean/1/package", "search/clean/vendor/package"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "test_package.py").write_text("import no_such_module\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_mine.py").write_text("def test_mine(): ...\n")

    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    assert {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line} == {
        "test_stack.py",
        "tests/test_mine.py",
    }


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
