"""`cdk-triton local`: which call each argument vector becomes, and the real thing once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton_local import daemon as local_daemon
from cdk_triton_local.daemon import DEFAULT_DIRECTORY, DaemonOptions, DaemonStatus
from cdk_triton_local.endpoints.capacity import Capacity
from cdk_triton_local.logs import LogSelection
from cdk_triton_local.process import conflicting_variables

if TYPE_CHECKING:
    from golden_messages import Messages


ENVIRONMENT = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ACCESS_KEY_ID": "it's local",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_REGION": "eu-west-1",
}
EXPORTS = (
    "export AWS_ENDPOINT_URL=http://127.0.0.1:9\nexport AWS_ACCESS_KEY_ID='it'\"'\"'s local'\n"
    "export AWS_SECRET_ACCESS_KEY=none\nexport AWS_REGION=eu-west-1\n"
    "export NO_PROXY=127.0.0.1,localhost\nexport no_proxy=127.0.0.1,localhost\n"
)
RUNNING = DaemonStatus(pid=42, started=1, url="http://127.0.0.1:9", environment=ENVIRONMENT)


class FakeDaemon:
    """Records what is asked of it."""

    calls: list[tuple[Any, ...]] = []  # noqa: RUF012 - emptied by the fixture
    running: DaemonStatus | None = None
    elsewhere: list[tuple[Path, DaemonStatus]] = []  # noqa: RUF012 - replaced by tests

    def __init__(self, directory: Path = DEFAULT_DIRECTORY) -> None:
        self.directory = directory

    def run(self, options: DaemonOptions, *, ready: Any, log: Any) -> None:
        self.calls.append(("run", self.directory, options))
        ready(RUNNING)
        log("a bucket was made")

    def start(self, options: DaemonOptions) -> dict[str, str]:
        self.calls.append(("start", self.directory, options))
        return ENVIRONMENT

    def status(self) -> DaemonStatus | None:
        return self.running

    def stop(self) -> bool:
        self.calls.append(("stop", self.directory))
        return True

    def logs(self, selection: LogSelection, *, follow: bool) -> Iterator[str]:
        self.calls.append(("logs", self.directory, selection, follow))
        yield "one line"

    @classmethod
    def others(cls, directory: Path) -> list[tuple[Path, DaemonStatus]]:
        return cls.elsewhere


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> type[FakeDaemon]:
    monkeypatch.setattr(FakeDaemon, "calls", [])
    monkeypatch.setattr(FakeDaemon, "running", None)
    monkeypatch.setattr(FakeDaemon, "elsewhere", [])
    monkeypatch.setattr(local_daemon, "Daemon", FakeDaemon)
    for name in (*conflicting_variables(os.environ), "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return FakeDaemon


HOSTILE = {
    "AWS_PROFILE": "nowhere",
    "AWS_DEFAULT_PROFILE": "nowhere",
    "AWS_SESSION_TOKEN": "of a real session",
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "NO_PROXY": "corp.example",
}
"""A shell in which something else was set up; nothing answers at port 9."""

HERE = Path(".cdk-triton/local")


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["up"], ("run", HERE, DaemonOptions())),
        (["up", "--detach"], ("start", HERE, DaemonOptions())),
        (["up", "--detach", "--directory", "elsewhere"], ("start", Path("elsewhere"), DaemonOptions())),
        (
            ["up", "--port", "4566", "--region", "eu-west-1"],
            ("run", HERE, DaemonOptions(port=4566, region="eu-west-1")),
        ),
        (["up", "--account", "000000000001"], ("run", HERE, DaemonOptions(account="000000000001"))),
        (["up", "--max-loaded-models", "2"], ("run", HERE, DaemonOptions(max_loaded_models=2))),
        (["up", "--listen-on-all-interfaces"], ("run", HERE, DaemonOptions(listen_on_all_interfaces=True))),
        (["up", "--faults", "throttling,new-roles"], ("run", HERE, DaemonOptions(faults="throttling,new-roles"))),
        (["logs"], ("logs", HERE, LogSelection(), False)),
        (["logs", "-f"], ("logs", HERE, LogSelection(), True)),
        (["logs", "--follow", "--directory", "elsewhere"], ("logs", Path("elsewhere"), LogSelection(), True)),
        (
            ["logs", "--endpoint", "one", "--earlier-runs"],
            ("logs", HERE, LogSelection(endpoint="one", earlier_runs=True), False),
        ),
        (["logs", "--source", "lambda-"], ("logs", HERE, LogSelection(source="lambda-"), False)),
        (
            ["logs", "--since", "1970-01-02T00:00:00+00:00"],
            ("logs", HERE, LogSelection(since=86400.0), False),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value[0],
)
def test_each_command_is_one_call(
    run: Any, daemon: type[FakeDaemon], arguments: list[str], call: tuple[Any, ...]
) -> None:
    assert run("local", *arguments).status == 0
    assert daemon.calls == [call]


@pytest.mark.parametrize("arguments", [["up"], ["up", "--detach"]], ids=["foreground", "detached"])
def test_stdout_has_the_variables_and_nothing_else(run: Any, daemon: Any, arguments: list[str]) -> None:
    outcome = run("local", *arguments)
    assert outcome.out == EXPORTS
    assert outcome.err


def test_the_log_of_the_foreground_goes_to_stderr(run: Any, daemon: Any) -> None:
    assert "a bucket was made\n" in run("local", "up").err


def test_the_foreground_says_what_ends_it_and_what_to_do_where_a_shell_waits(
    messages: Messages, run: Any, daemon: Any
) -> None:
    said = run("local", "up").err
    assert "Ctrl-C" in said
    assert "--detach" in said  # standard output is no terminal here
    messages.record("cdk-triton local", said)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["up", "--detach"], "cdk-triton local down --directory 'my st'"),
        (["up"], "eval \"$(cdk-triton local up --detach --directory 'my st')\""),
        (["status"], "cdk-triton local up --detach --directory 'my st'"),
    ],
    ids=["detached", "foreground", "none"],
)
def test_commands_in_messages_lead_to_the_directory_of_the_call(
    messages: Messages, run: Any, daemon: Any, arguments: list[str], named: str
) -> None:
    said = run("local", *arguments, "--directory", "my st").err
    assert named in said
    messages.record("cdk-triton local", said)


def test_the_command_for_the_background_has_the_options_of_the_call(run: Any, daemon: Any) -> None:
    options = ["--port", "4566", "--region", "eu-west-1", "--account", "000000000001", "--listen-on-all-interfaces"]
    assert f'eval "$(cdk-triton local up --detach {" ".join(options)})"' in run("local", "up", *options).err


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86400)], ids=lambda value: str(value)
)
def test_since_may_be_a_duration(run: Any, daemon: type[FakeDaemon], text: str, seconds: int) -> None:
    assert run("local", "logs", "--since", text).status == 0
    ((_, _, selection, _),) = daemon.calls
    assert time.time() - selection.since == pytest.approx(seconds, abs=30)


def test_since_that_is_no_time_is_2(messages: Messages, run: Any, daemon: Any) -> None:
    outcome = run("local", "logs", "--since", "yesterday")
    assert outcome.status == 2
    messages.record("cdk-triton local", outcome.said)


def test_on_a_terminal_the_log_is_brief_and_its_lines_are_cut(
    run: Any, daemon: type[FakeDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdk_triton.cli.local.width", lambda: 5)
    cut, whole = run("local", "logs"), run("local", "logs", "--verbose")
    assert (cut.out, whole.out) == ("one …\n", "one line\n")
    assert "--verbose" in cut.err
    assert [selection.brief for _, _, selection, _ in daemon.calls] == [True, False]


@pytest.mark.parametrize("command", ["down", "status"])
def test_where_none_runs_those_that_run_elsewhere_are_named(
    messages: Messages, run: Any, daemon: type[FakeDaemon], command: str
) -> None:
    daemon.elsewhere = [(Path("/srv/my app/.cdk-triton/local"), RUNNING)]
    outcome = run("local", command)
    assert "if it is yours, add --directory '/srv/my app/.cdk-triton/local'" in outcome.err
    messages.record("cdk-triton local", outcome.said)


def test_the_logs_are_those_of_the_local_aws_that_the_shell_uses(
    run: Any, daemon: type[FakeDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Path("/srv/app/.cdk-triton/local")
    daemon.elsewhere = [(elsewhere, RUNNING)]
    for url in (RUNNING.url, "http://127.0.0.1:10", "https://sagemaker.eu-west-1.amazonaws.com"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        assert run("local", "logs").status == 0
    assert run("local", "logs", "--directory", "named").status == 0
    assert [directory for _, directory, *_ in daemon.calls] == [elsewhere, HERE, HERE, Path("named")]


@pytest.mark.parametrize("place", ["other", ".cdk-triton/local", "../.cdk-triton/local"])
def test_those_of_this_project_are_offered_without_a_doubt(
    run: Any, daemon: type[FakeDaemon], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    directory = (tmp_path / "app" / place).resolve()
    daemon.elsewhere = [(directory, RUNNING)]
    assert f": add --directory {directory}\n" in run("local", "down", "--directory", "none").err


def test_status_of_a_running_one_can_be_evaluated(messages: Messages, run: Any, daemon: type[FakeDaemon]) -> None:
    daemon.running = RUNNING
    outcome = run("local", "status")
    assert (outcome.status, outcome.out) == (0, EXPORTS)
    messages.record("cdk-triton local", outcome.said)


def test_what_would_lead_elsewhere_is_unset(
    run: Any, daemon: type[FakeDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    daemon.running = RUNNING
    lines = run("local", "status").out.splitlines()
    assert lines[:4] == [
        "unset AWS_DEFAULT_PROFILE",
        "unset AWS_ENDPOINT_URL_S3",
        "unset AWS_PROFILE",
        "unset AWS_SESSION_TOKEN",
    ]
    assert "export NO_PROXY=corp.example,127.0.0.1,localhost" in lines


def test_status_without_one_is_1_and_says_how_to_start_it(messages: Messages, run: Any, daemon: Any) -> None:
    outcome = run("local", "status")
    assert (outcome.status, outcome.out) == (1, "false\n")
    messages.record("cdk-triton local", outcome.said)


def test_down_stops_it_and_says_how_to_get_back_to_aws(run: Any, daemon: type[FakeDaemon]) -> None:
    daemon.running = RUNNING
    outcome = run("local", "down")
    assert (outcome.status, daemon.calls) == (0, [("stop", HERE)])
    assert outcome.err.splitlines()[-1] == f"    unset {' '.join(ENVIRONMENT)}"


def test_down_without_one_is_no_failure(messages: Messages, run: Any, daemon: type[FakeDaemon]) -> None:
    outcome = run("local", "down")
    assert (outcome.status, daemon.calls) == (0, [])
    messages.record("cdk-triton local", outcome.said)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--port", "70000"], id="port too high"),
        pytest.param(["--max-loaded-models", "0"], id="no model"),
        pytest.param(["--account", "12"], id="short account"),
        pytest.param(["--region", "mars"], id="no region"),
        pytest.param(["--faults", "throttling,rain"], id="no fault"),
        pytest.param(["--detached"], id="unknown option"),
    ],
)
def test_unusable_arguments_are_2(messages: Messages, run: Any, daemon: type[FakeDaemon], arguments: list[str]) -> None:
    outcome = run("local", "up", *arguments)
    assert (outcome.status, outcome.out, daemon.calls) == (2, "", [])
    messages.record("cdk-triton local", outcome.said)


@pytest.mark.parametrize(
    ("arguments", "out"), [([], ""), (["--detach"], "false\n")], ids=["for a person", "for a shell"]
)
def test_without_the_extra_the_sentence_says_how_to_install_it(
    messages: Messages,
    run: Any,
    daemon: type[FakeDaemon],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    out: str,
) -> None:
    installed = metadata.distribution

    def distribution(name: str) -> metadata.Distribution:
        if name in {"moto", "nvidia-pytriton"}:
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    outcome = run("local", "up", *arguments)
    assert (outcome.status, outcome.out, daemon.calls) == (1, out, [])
    messages.record("cdk-triton local", outcome.said)


@pytest.mark.slow
def test_a_shell_evaluates_up_and_takes_it_down_again(program: Any, tmp_path: Path) -> None:
    script = 'eval "$(cdk-triton local up --detach)"; echo "$AWS_ENDPOINT_URL"; cdk-triton local status >/dev/null'
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    try:
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True
        )
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout.startswith(b"http://127.0.0.1:")
        assert "http://127.0.0.1:" in program("local", "logs", cwd=tmp_path).out
        again = 'eval "$(cdk-triton local up --detach)" && echo "$AWS_ENDPOINT_URL, and on to a real account"'
        second = subprocess.run(
            ["bash", "-c", again], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )
        assert (second.returncode, second.stdout) == (1, "")
        assert 'eval "$(cdk-triton local status)"' in second.stderr
        assert program("local", "up", "--detach", cwd=tmp_path).err.splitlines()[-1].startswith("error: ")
    finally:
        assert program("local", "down", cwd=tmp_path).status == 0
    assert program("local", "status", cwd=tmp_path).status == 1


@pytest.mark.slow
def test_a_shell_where_something_else_was_set_up_is_led_here(program: Any, tmp_path: Path) -> None:
    code = """
import boto3
session = boto3.Session()
print(session.client("s3").meta.endpoint_url, session.get_credentials().token)
print(session.client("s3").list_buckets()["Buckets"], session.client("sts").get_caller_identity()["Account"])
"""
    script = f"eval \"$(cdk-triton local up --detach)\"; echo $AWS_ENDPOINT_URL; '{sys.executable}' -c '{code}'"
    path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    hostile = os.environ | HOSTILE | {"PATH": path}
    try:
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=hostile, capture_output=True, text=True)
    finally:
        program("local", "down", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    url, *found = done.stdout.split()
    assert found == [url, "None", "[]", "123456789012"]


@pytest.mark.slow
def test_ctrl_c_ends_the_foreground_as_asked(tmp_path: Path) -> None:
    program = Path(sysconfig.get_path("scripts")) / "cdk-triton"
    with subprocess.Popen(
        [program, "local", "up"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("export ")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert "stopped" in process.stderr.read()


def test_capacity_is_kept_in_the_directory_and_listed(run: Any, tmp_path: Path, messages: Messages) -> None:
    where = ("--directory", str(tmp_path / "local"))
    none = run("local", "capacity", *where)
    assert (none.status, none.out) == (0, "")
    messages.record("cdk-triton local", none.said)

    assert run("local", "capacity", "ml.g5.2xlarge", "0", *where).out == "ml.g5.2xlarge 0\n"
    assert run("local", "capacity", "ml.g4dn.xlarge", "3", *where).out == "ml.g4dn.xlarge 3\nml.g5.2xlarge 0\n"
    assert run("local", "capacity", *where).out == "ml.g4dn.xlarge 3\nml.g5.2xlarge 0\n"
    assert Capacity(tmp_path / "local").of("ml.g5.2xlarge") == 0
    assert run("local", "capacity", "ml.g5.2xlarge", "unlimited", *where).out == "ml.g4dn.xlarge 3\n"
    assert Capacity(tmp_path / "local").of("ml.g5.2xlarge") is None


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["ml.g5.2xlarge", "none"], 2),
        (["ml.g5.2xlarge", "--", "-1"], 2),
        (["ml.g5.2xlarge"], 2),
        (["ml.g5.3xlarge", "1"], 1),
    ],
    ids=["no number", "less than none", "no count", "no such type"],
)
def test_a_capacity_that_nothing_has_is_a_sentence(
    run: Any, tmp_path: Path, messages: Messages, arguments: list[str], status: int
) -> None:
    outcome = run("local", "capacity", "--directory", str(tmp_path), *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    messages.record("cdk-triton local", outcome.said)
    assert Capacity(tmp_path).limits() == {}


def test_a_capacity_file_that_somebody_else_wrote_is_a_sentence(run: Any, tmp_path: Path, messages: Messages) -> None:
    (tmp_path / "capacity.json").write_text("[]")
    outcome = run("local", "capacity", "--directory", str(tmp_path))
    assert outcome.status == 1
    messages.record("cdk-triton local", outcome.said)
