"""The local AWS of a state directory, as separate processes with the real endpoint host."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, cast

import boto3
import psutil
import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local.daemon import Daemon, DaemonOptions, _line_logger
from cdk_triton_local.logs import LogSelection

if TYPE_CHECKING:
    from golden_messages import Messages


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    # Deeper than a socket's path may be long: nothing of it may depend on where the directory is.
    daemon = Daemon(tmp_path / ("deep" * 20) / ("deeper" * 20))
    yield daemon
    daemon.stop()


def client(environment: dict[str, str], service: str) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]  # the stubs know only names written out
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )


def test_it_starts_detached_tells_its_status_and_stops(messages: Messages, daemon: Daemon) -> None:
    assert daemon.status() is None
    environment = daemon.start()
    client(environment, "s3").create_bucket(Bucket="bucket")
    status = daemon.status()
    assert status is not None
    assert status.url == environment["AWS_ENDPOINT_URL"]
    assert status.environment == environment
    assert daemon.stop()
    assert daemon.status() is None
    assert not psutil.pid_exists(status.pid) or psutil.Process(status.pid).status() == psutil.STATUS_ZOMBIE
    assert not daemon.stop()
    lines = list(daemon.logs(follow=True))
    assert lines[0].endswith(status.url)
    for line in (lines[0], lines[-1]):
        messages.record("log", re.sub(r"^local \| [-\d]+ [:\d]+ ", "", line).replace(status.url, "URL"))


def test_a_profile_that_does_not_exist_stops_nothing(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nowhere")
    environment = daemon.start()
    monkeypatch.delenv("AWS_PROFILE")
    client(environment, "ecr").create_repository(repositoryName="assets")  # for which moto makes a session


def test_a_second_one_in_the_same_directory_is_rejected_and_the_first_goes_on(
    messages: Messages, daemon: Daemon
) -> None:
    environment = daemon.start()
    status = daemon.status()
    assert status is not None
    with pytest.raises(LocalError) as caught:
        daemon.start()
    text = str(caught.value)
    assert status.url in text
    assert str(status.pid) in text
    assert f"cdk-triton local status --directory {daemon.directory})" in text
    text = text.replace(str(daemon.directory), "DIRECTORY")
    messages.record("LocalError", text.replace(status.url, "URL").replace(str(status.pid), "PID"))
    assert client(environment, "sts").get_caller_identity()["Account"] == "123456789012"


def test_two_directories_share_nothing(daemon: Daemon, tmp_path: Path) -> None:
    other = Daemon(tmp_path / "other")
    try:
        first, second = daemon.start(), other.start()
        assert first["AWS_ENDPOINT_URL"] != second["AWS_ENDPOINT_URL"]
        client(first, "s3").create_bucket(Bucket="mine")
        assert client(second, "s3").list_buckets()["Buckets"] == []
        daemon.stop()
        client(second, "s3").create_bucket(Bucket="mine")
    finally:
        other.stop()


def test_a_port_in_use_is_told_by_the_detached_process(messages: Messages, daemon: Daemon) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalError) as caught:
            daemon.start(DaemonOptions(port=port))
    assert f"port {port} " in str(caught.value)
    messages.record("LocalError", str(caught.value).replace(str(port), "PORT"))
    assert daemon.status() is None
    # Nothing half-made is left: it can be started now.
    assert daemon.start(DaemonOptions(port=port))["AWS_ENDPOINT_URL"] == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("detached", [True, False], ids=["detached", "foreground"])
def test_a_start_that_fails_leaves_no_directory(tmp_path: Path, detached: bool) -> None:
    daemon = Daemon(tmp_path / "new" / "state")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = DaemonOptions(port=taken.getsockname()[1])
        with pytest.raises(LocalError):
            daemon.start(options) if detached else daemon.run(options)
        assert list(tmp_path.iterdir()) == []
        daemon.directory.mkdir(parents=True)
        with pytest.raises(LocalError):
            daemon.start(options) if detached else daemon.run(options)
        assert daemon.directory.exists()  # somebody else's


def test_one_that_runs_is_found_from_other_directories(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    daemon.start()
    assert Daemon.others(tmp_path) == [(daemon.directory, daemon.status())]
    assert Daemon.others(daemon.directory) == []
    daemon.stop()
    assert Daemon.others(tmp_path) == []
    assert list((tmp_path / "cache" / "cdk-triton" / "running").iterdir()) == []


def test_a_directory_that_cannot_be_is_a_sentence(messages: Messages, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    daemon = Daemon(tmp_path / "file" / "state")
    for start in (daemon.start, daemon.run):
        with messages.raises(LocalError) as caught:
            start()
        assert str(daemon.directory) in str(caught.value)
    assert daemon.status() is None
    with messages.raises(LocalError):
        list(daemon.logs())


def test_what_the_detached_process_may_not_write_is_a_sentence(messages: Messages, daemon: Daemon) -> None:
    """Only the detached process opens this one; a directory in its place is rejected also to root."""
    (daemon.directory / "state.partial").mkdir(parents=True)
    with pytest.raises(LocalError) as caught:
        daemon.start()
    assert str(daemon.directory / "state.partial") in str(caught.value)
    messages.record("LocalError", str(caught.value).replace(str(daemon.directory), "DIRECTORY"))
    assert daemon.status() is None


def test_killed_it_leaves_no_process_and_can_be_started_again(daemon: Daemon) -> None:
    environment = daemon.start()
    status = daemon.status()
    assert status is not None
    function = _warm_function(environment)
    assert psutil.pid_exists(function)
    os.kill(status.pid, signal.SIGKILL)
    for pid in (status.pid, function):
        _wait_for_end(pid)
    assert daemon.status() is None
    assert daemon.start()["AWS_ENDPOINT_URL"]


def test_stopping_ends_the_functions_too(daemon: Daemon) -> None:
    function = _warm_function(daemon.start())
    daemon.stop()
    assert not psutil.pid_exists(function)


def test_a_recycled_process_id_is_neither_reported_nor_killed(daemon: Daemon) -> None:
    """The state file names a process that lives, and that started at another time: it is a stranger."""
    daemon.start()
    state_file = daemon.directory / "state.json"
    state = json.loads(state_file.read_text())
    daemon.stop()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        state_file.write_text(json.dumps({**state, "pid": stranger.pid}))
        assert daemon.status() is None
        assert not daemon.stop()
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'], ids=["empty", "cut off", "a list", "incomplete"])
def test_a_damaged_state_file_is_no_local_aws(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    assert Daemon(tmp_path).status() is None
    assert not Daemon(tmp_path).stop()


def test_logs_of_a_directory_without_any_are_a_sentence(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(LocalError):
        list(Daemon(tmp_path).logs())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_in_the_foreground_it_runs_until_it_is_interrupted(
    messages: Messages, tmp_path: Path, number: signal.Signals
) -> None:
    code = f"""
from pathlib import Path
from cdk_triton_local.daemon import Daemon
say = lambda text: print(text, flush=True)
Daemon(Path({str(tmp_path)!r})).run(ready=lambda status: say(status.url), log=say)
print("returned")
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first, url = process.stdout.readline(), process.stdout.readline().strip()
        assert first.strip().endswith(url)
        process.send_signal(number)
        *said, last = process.stdout.read().splitlines()
        assert last == "returned"
    for line in (first.strip(), *said):
        messages.record("log", line.replace(url, "URL"))
    assert process.returncode == 0
    assert Daemon(tmp_path).status() is None


def test_the_state_directory_keeps_itself_out_of_git(daemon: Daemon) -> None:
    daemon.start()
    assert (daemon.directory / ".gitignore").read_text() == "*\n"


def _warm_function(environment: dict[str, str], also: str = "pass") -> int:
    """Run a function that tells its process id; it stays warm."""
    statement = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = client(environment, "iam").create_role(
        RoleName="r", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("index.py", f"import os\ndef handler(event, context):\n    {also}\n    return os.getpid()\n")
    functions = client(environment, "lambda")
    functions.create_function(
        FunctionName="f",
        Role=role["Role"]["Arn"],
        Runtime="python3.13",
        Handler="index.handler",
        Timeout=90,
        Code={"ZipFile": buffer.getvalue()},
    )
    return int(json.loads(functions.invoke(FunctionName="f")["Payload"].read()))


def _wait_for_end(pid: int) -> None:
    try:
        psutil.Process(pid).wait(timeout=10)
    except psutil.NoSuchProcess:
        return


def test_other_users_of_the_installation_can_start_their_own(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caches of Python lie beside the libraries; botocore lists the directory of one of them."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "caches"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    daemon.start()
    (cache,) = (path for path in (tmp_path / "caches").rglob("moto") if path.parent.name == "site-packages")
    assert cache.stat().st_mode & 0o055 == 0o055


def test_other_users_of_the_machine_can_read_nothing(daemon: Daemon) -> None:
    daemon.directory.mkdir(parents=True, mode=0o755)
    environment = daemon.start()
    _warm_function(environment)
    assert daemon.directory.stat().st_mode & 0o777 == 0o700
    made = [daemon.directory / "state.json", *daemon.directory.glob("functions/**/*"), *daemon.directory.glob("logs/*")]
    assert len(made) > 3
    assert not [path for path in made if path.stat().st_mode & 0o077]
    assert environment["AWS_SECRET_ACCESS_KEY"] in (daemon.directory / "state.json").read_text()


def test_a_log_that_cannot_be_written_stops_nobody(messages: Messages, tmp_path: Path) -> None:
    heard: list[str] = []
    log = tmp_path / "local.log"
    with log.open("ab", buffering=0) as file, Path("/dev/full").open("wb", buffering=0) as full:
        disk = [full]
        switch = SimpleNamespace(write=lambda data: (disk or [file])[0].write(data))
        log_line = _line_logger(cast("IO[bytes]", switch), heard.append)
        for line in ("one", "two"):
            log_line(line)
        disk.clear()
        for line in ("three", "four"):
            log_line(line)
    assert heard == ["one", "two", "three", "four"]
    lines = [re.sub(r"^[-\d]+ [:\d]+ ", "", line) for line in log.read_text().splitlines()]
    assert lines[1:] == ["three", "four"]
    messages.record("log", lines[0])


def test_stopping_in_the_middle_of_a_deployment_ends_it_at_once(daemon: Daemon) -> None:
    """A handler that would take a minute is under way; its process and the operation end with the local AWS."""
    environment = daemon.start()
    function = _warm_function(environment, "import time\n    time.sleep(event and 60 or 0)")
    arn = client(environment, "lambda").get_function(FunctionName="f")["Configuration"]["FunctionArn"]
    template = {"Resources": {"Slow": {"Type": "Custom::Slow", "Properties": {"ServiceToken": arn}}}}
    client(environment, "cloudformation").create_stack(StackName="s", TemplateBody=json.dumps(template))
    assert daemon.stop()
    assert not psutil.pid_exists(function)


def test_the_logs_of_functions_are_printed(daemon: Daemon) -> None:
    _warm_function(daemon.start(), "print('told')")
    assert list(daemon.logs(LogSelection(source="lambda-"))) == ["lambda-f | told"]
