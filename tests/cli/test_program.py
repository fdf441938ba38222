"""The program around the commands: help, version, and what becomes of an exception."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import PROGRAM
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

import cdk_triton.cli
from cdk_triton import errors
from cdk_triton.cli.program import app
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages


def commands(name: str, command: Any, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command that does something."""
    path = (*above, name) if name else above
    children = getattr(command, "commands", None)
    if children is None:
        return [path]
    return [leaf for child, inner in children.items() for leaf in commands(child, inner, path)]


def test_a_command_of_the_cdk_is_named_with_its_program(run: Any) -> None:
    found = run("deploy", "--all")
    assert (found.status, found.out) == (2, "")
    assert "run `cdk deploy`" in " ".join(found.err.split())
    assert "No such command 'deplo'" in run("deplo").err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["-h"],
        ["local", "logs", "-h"],
        ["local"],
        ["local", "--help"],
        ["validate", "--help"],
        ["explain", "--help"],
        ["doctor", "--help"],
    ],
    ids=str,
)
def test_help_lists_what_there_is(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert "Usage:" in result.output
    # Called without a command it is a usage error, and the help tells the next step.
    assert result.exit_code == (0 if {"--help", "-h"} & {*arguments} else 2)


def test_ctrl_c_while_the_program_is_loaded_has_the_status_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cdk_triton.cli.program.main", interrupted)
    with pytest.raises(SystemExit) as exit_:
        cdk_triton.cli.main()
    assert exit_.value.code == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("path", commands("", get_command(app)), ids=" ".join)
def test_the_help_of_each_command_has_an_example(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*path, "-h"], terminal_width=200)

    assert result.exit_code == 0
    assert f"cdk-triton {' '.join(path)}" in result.output.partition("Example: ")[2]


def test_completion_can_be_installed() -> None:
    result = CliRunner().invoke(app, ["--help"])

    assert "--install-completion" in result.output


@pytest.mark.slow
def test_bash_completes_commands_options_and_values() -> None:
    """The lines of `--install-completion`, in a real bash that asks as it does for the key Tab."""
    asked = """
eval "$(_CDK_TRITON_COMPLETE=source_bash cdk-triton)"
complete -p cdk-triton
tab() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _cdk_triton_completion cdk-triton; echo "${COMPREPLY[@]}"; }
tab cdk-triton be
tab cdk-triton bench --warm
tab cdk-triton graph models --format ""
tab cdk-triton local lo
"""
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"

    done = subprocess.run(
        ["bash", "-c", asked], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "complete -o default -F _cdk_triton_completion cdk-triton",
        "bench",
        "--warm-up",
        "text json mermaid svg",
        "logs",
    ]


def test_the_version_is_the_distributions(program: Any) -> None:
    assert program("--version").out == f"{version('cdk-triton')}\n"


def test_the_package_is_the_command_too() -> None:
    done = subprocess.run([sys.executable, "-m", "cdk_triton", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, version("cdk-triton"))


def test_each_group_of_commands_is_an_imperative_in_the_help() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    said = [command.get_short_help_str(limit=200).split()[0] for command in group.commands.values()]
    assert [each for each in said if each.endswith("s")] == []


def test_help_loads_neither_the_cdk_nor_the_server(tmp_path: Path) -> None:
    program = """
import sys
from cdk_triton.cli import main
sys.argv = ["cdk-triton", "--help"]
try:
    main()
except SystemExit as end:
    print(sorted({"aws_cdk", "boto3", "moto", "numpy", "google.protobuf"} & set(sys.modules)), file=sys.stderr)
    raise
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def leaves() -> list[type[errors.CdkTritonError]]:
    return [kind for name in errors.__all__ if not (kind := getattr(errors, name)).__subclasses__()]


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_an_error_of_the_library_is_a_sentence_and_a_status(
    run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch, kind: type[errors.CdkTritonError]
) -> None:
    error = kind.__new__(kind)
    Exception.__init__(error, "the thing is wrong; fix it")
    _fails_with(monkeypatch, error)

    outcome = run("validate", repository)

    status = (
        2 if issubclass(kind, errors.RepositoryError | errors.RuleError) else 1
    )  # nothing that could be reported about
    assert (outcome.status, outcome.out, outcome.err) == (status, "", "error: the thing is wrong; fix it\n")


def test_a_fault_of_the_machine_is_a_sentence_and_1(
    run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fails_with(monkeypatch, OSError(28, "No space left on device", "/full/disk"))

    outcome = run("validate", repository)

    assert (outcome.status, outcome.err) == (1, "error: [Errno 28] No space left on device: '/full/disk'\n")


def test_a_fault_of_ours_is_70_with_a_short_traceback_and_what_to_do(
    messages: Messages, run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fails_with(monkeypatch, ZeroDivisionError("by zero"))

    outcome = run("validate", repository)

    assert outcome.status == 70
    assert "ZeroDivisionError: by zero" in outcome.err
    assert outcome.err.count("  File ") == 3
    messages.record("cdk-triton", outcome.err.splitlines()[-1])


def test_ctrl_c_is_130_without_a_word(run: Any, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fails_with(monkeypatch, KeyboardInterrupt())

    outcome = run("validate", repository)

    assert (outcome.status, outcome.out, outcome.err) == (130, "", "")


def _fails_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def from_directory(*_: object) -> None:
        raise error

    monkeypatch.setattr(ModelRepository, "from_directory", from_directory)
