"""Findings as text: what a person reads, on a terminal and in a file."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import PROGRAM

from cdk_triton.checks import Report
from cdk_triton.tensorrt_models.reader.parser import is_installed
from cdk_triton.triton import Finding, ModelRepository, Severity

if TYPE_CHECKING:
    from golden_messages import Messages


CONFIG = """\
backend: "python"
max_batch_siz: 8
"""
ENSEMBLE = """\
platform: "ensemble"
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
\tstep { model_name: "ecco" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }
}
"""
HEAD = re.compile(r"(?P<path>\S+?)(:(?P<line>\d+):(?P<column>\d+))?: (?P<severity>error|warning) (?P<code>CT\d{3}): .+")


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def odd(repository: Path) -> Path:
    """Two models with findings and one without, one of them acknowledged."""
    write(
        repository,
        {
            "pipeline/config.pbtxt": ENSEMBLE,
            "pipeline/1/.gitkeep": "",
            "echo/02/model.py": "",
            "misspelt/config.pbtxt": CONFIG,
            "misspelt/1/model.py": "",
            "cdk-triton.toml": '[acknowledge]\nCT112 = "kept for the record"\n',
        },
    )
    return repository


def said(run: Any, monkeypatch: pytest.MonkeyPatch, repository: Path, *findings: Finding) -> list[str]:
    """What is printed of findings that stand for those of the rules."""
    monkeypatch.setattr(ModelRepository, "report", lambda *_, **__: Report(findings, (), ()))
    return list(run("validate", repository).out.splitlines())


def test_findings_stand_below_their_model_with_the_line_of_the_file(
    messages: Messages, run: Any, monkeypatch: pytest.MonkeyPatch, odd: Path
) -> None:
    field = "ensemble_scheduling.step[0].model_name"
    lines = said(
        run,
        monkeypatch,
        odd,
        Finding("CT901", Severity.ERROR, "pipeline/config.pbtxt", field, "there is no 'ecco'", "write 'echo'"),
        Finding("CT902", Severity.ERROR, "echo/config.pbtxt", "instance_group", "there is none", "add one"),
        Finding("CT903", Severity.WARNING, ".", "", "it is odd", "make it even"),
        Finding("CT904", Severity.WARNING, "pipeline/1", "", "it is empty", "fill it"),
    )
    assert lines[:-2] == [
        "the repository",
        f"{odd}: warning CT903: it is odd",
        "    make it even",
        "",
        "echo",
        f"{odd}/echo/config.pbtxt: error CT902: instance_group: there is none",
        "    add one",
        "",
        "pipeline",
        f"{odd}/pipeline/config.pbtxt:5:9: error CT901: {field}: there is no 'ecco'",
        '    5 |  step { model_name: "ecco" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" '
        'value: "y"…',
        "      |         ^^^^^^^^^^",
        "    write 'echo'",
        "",
        f"{odd}/pipeline/1: warning CT904: it is empty",
        "    fill it",
        "",
    ]
    assert lines[-1].endswith("cdk-triton explain CT901")
    messages.record("cdk-triton validate", "\n".join(lines[-2:]))


def test_a_file_that_cannot_be_read_is_shown_where_the_parser_stopped(run: Any, repository: Path) -> None:
    write(repository, {"echo/config.pbtxt": CONFIG})
    lines = run("validate", repository).out.splitlines()
    assert lines[1].startswith(f"{repository}/echo/config.pbtxt:2:1: error CT101: ")
    assert lines[2:4] == ["    2 | max_batch_siz: 8", "      | ^^^^^^^^^^^^^"]


def test_the_summary_tells_what_is_acknowledged_and_what_was_not_looked_at(
    messages: Messages, run: Any, odd: Path
) -> None:
    lines = run("validate", odd, "--default-model", "echo").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{odd}: 3 models"))
    summary = lines[start : start + 3]  # the warnings: two models are not loaded
    assert summary[1].endswith("kept for the record")
    assert summary[2].endswith("--platform 26.05/ml.g5.xlarge")
    messages.record("cdk-triton validate", re.sub(r"\d+ rules", "N rules", "\n".join(summary)))
    with_platform = run("validate", odd, "--default-model", "echo", "--platform", "25.09/ml.g5.xlarge").out
    assert "--platform" not in with_platform


PLAN = """
platform: "tensorrt_plan"
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
"""


def test_what_no_rule_read_is_named(messages: Messages, run: Any, tmp_path: Path) -> None:
    write(tmp_path, {"network/config.pbtxt": PLAN, "cdk-triton.toml": 'produced = ["network/1/model.plan"]'})
    options = ["--platform", "25.09/ml.g5.xlarge"]
    for preflight in ([], ["--preflight"] if is_installed() else []):
        lines = run("validate", tmp_path, *options, *preflight).out.splitlines()
        assert lines[1:] == ["    not read: network/1/model.plan (the network of the plan is not in the repository)"]
    messages.record("cdk-triton validate", lines[1])


def test_what_this_machine_cannot_run_is_named(messages: Messages, run: Any, tmp_path: Path) -> None:
    write(tmp_path, {"network/config.pbtxt": PLAN.replace("tensorrt_plan", "onnxruntime_onnx")})
    assert "not runnable here" not in run("validate", tmp_path).out
    write(tmp_path, {"network/config.pbtxt": PLAN.replace('platform: "tensorrt_plan"', 'backend: "openvino"')})
    (line,) = (line for line in run("validate", tmp_path).out.splitlines() if "not runnable here" in line)
    messages.record("cdk-triton validate", line)


def test_a_long_line_is_cut_around_the_place(run: Any, monkeypatch: pytest.MonkeyPatch, odd: Path) -> None:
    inputs = "".join(f'input {{ name: "{i:03}" data_type: TYPE_FP32 dims: 4 }} ' for i in range(100))
    write(odd, {"echo/config.pbtxt": f'backend: "python" {inputs}'})
    finding = Finding("CT901", Severity.ERROR, "echo/config.pbtxt", "input[50].name", "it is odd", "make it even")
    _, _, line, mark, *_ = said(run, monkeypatch, odd, finding)
    assert len(line) <= 120
    assert line.startswith("    1 | …")
    assert line.endswith("…")
    assert line[mark.index("^") : mark.index("^") + 11] == 'name: "050"'


def test_the_mark_stands_below_wide_characters(run: Any, monkeypatch: pytest.MonkeyPatch, odd: Path) -> None:
    write(odd, {"echo/config.pbtxt": 'name: "模型" backend: "python"'})
    finding = Finding("CT901", Severity.ERROR, "echo/config.pbtxt", "backend", "it is odd", "make it even")
    _, _, line, mark, *_ = said(run, monkeypatch, odd, finding)
    assert line == '    1 | name: "模型" backend: "python"'
    assert mark == "      | " + " " * len('name: "...." ') + "^" * len("backend")


def test_each_finding_begins_with_its_place_for_other_programs(run: Any, odd: Path) -> None:
    lines = run("validate", odd).out.splitlines()
    heads = [match for line in lines if (match := HEAD.fullmatch(line))]
    places = {match["code"]: (match["path"], match["line"], match["column"], match["severity"]) for match in heads}
    assert places["CT301"] == (f"{odd}/pipeline/config.pbtxt", "5", "9", "error")
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("x\\n::error file=app.py,line=1::owned", "x\\n::error", id="a line of its own"),
        pytest.param("x\\033[2Jy", "x\\x1b[2Jy", id="an escape sequence"),
        pytest.param("##[error]owned", "\\x23[error]owned", id="a command of GitHub's"),
    ],
)
def test_names_give_no_commands_to_a_terminal_or_a_ci(run: Any, repository: Path, name: str, shown: str) -> None:
    config = repository / "echo" / "config.pbtxt"
    config.write_text(f'name: "{name}"\n{config.read_text()}')
    out = run("validate", repository).out
    assert shown in out
    assert not any(line.lstrip().startswith("::") for line in out.splitlines())
    assert "##[" not in out
    assert "\x1b" not in out


def test_a_model_that_is_called_like_a_command_is_no_command(run: Any, repository: Path) -> None:
    (repository / "echo").rename(repository / "::error::owned")
    (repository / "::error::owned" / "02").mkdir()
    assert run("validate", repository).out.startswith("\\x3a:error::owned\n")


def test_a_fault_in_a_python_file_is_shown_with_its_line(run: Any, repository: Path) -> None:
    file = repository / "echo" / "1" / "model.py"
    file.write_text("class TritonPythonModel:\n    def execute(self, requests)\n        return []\n")
    lines = run("validate", repository).out.splitlines()
    assert lines[1].startswith(f"{file}:2:5: error CT140: ")
    assert lines[2:4] == ["    2 |     def execute(self, requests)", "      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^"]


def test_many_findings_are_counted_by_rule(run: Any, repository: Path) -> None:
    for number in range(21):
        (repository / "echo" / f"0{number}").mkdir()
    assert "    CT112 21" in run("validate", repository).out.splitlines()


class TestTerminal:
    """On a terminal lines are folded, and severities have colours."""

    def show(self, *arguments: str | Path, columns: int, environment: dict[str, str] | None = None) -> list[str]:
        """What appears on a terminal of that width."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        with subprocess.Popen(
            [PROGRAM, *map(str, arguments)], stdout=theirs, stderr=theirs, env={**variables, **(environment or {})}
        ) as child:
            os.close(theirs)
            shown = b""
            try:
                while part := os.read(ours, 65536):
                    shown += part
            except OSError:  # the other end is closed: that is how a terminal ends
                pass
            child.wait()
        os.close(ours)
        return shown.decode().replace("\r\n", "\n").splitlines()

    def test_nothing_is_wider_than_the_terminal(self, odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(odd.parent)
        shown = self.show("validate", odd.name, columns=72)
        plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown]
        assert max(len(line) for line in plain) <= 72
        assert any("\x1b[31m" in line and "error" in line for line in shown)
        assert any(line.strip() for line in plain if "^" in line)

    def test_no_color_is_heard(self, odd: Path) -> None:
        shown = self.show("validate", odd, columns=100, environment={"NO_COLOR": "1"})
        assert shown
        assert not any("\x1b" in line for line in shown)

    def test_an_explanation_is_folded_too(self) -> None:
        shown = self.show("explain", "CT104", columns=60, environment={"NO_COLOR": "1"})
        assert max(len(line) for line in shown if not line.startswith(("Source: ", "Defined in: "))) <= 60
