"""The logs of a state directory: which lines are printed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local.daemon import Daemon, DaemonStatus
from cdk_triton_local.logs import LogFiles, LogSelection

if TYPE_CHECKING:
    from golden_messages import Messages


def write(directory: Path, place: str, text: str) -> None:
    path = directory / place
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(text.encode("latin-1"))


def begin_run(directory: Path, *, on_all_interfaces: bool = False) -> None:
    LogFiles(directory, directory / "local.log").begin_run(on_all_interfaces=on_all_interfaces)


def test_the_logs_of_functions_and_servers_are_printed_with_their_source(tmp_path: Path) -> None:
    for place, text in {
        "local.log": "12:00:00 stopped\n",
        "logs/lambda-f.log": "one\ntwo",
        "endpoints/logs/one/AllTraffic.log": "I1120 started\n\xff\n",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(text.encode("latin-1"))
    assert list(Daemon(tmp_path).logs()) == [
        "local | 12:00:00 stopped",
        "lambda-f | one",
        "lambda-f | two",
        "one/AllTraffic | I1120 started",
        "one/AllTraffic | \ufffd",
    ]


def test_following_shows_what_comes_in_any_log_in_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at whether it still runs is a moment in which something is written."""
    daemon = Daemon(tmp_path)
    daemon.log_file.write_text("begun\n")
    writes = iter([("half ", DaemonStatus), ("a line\n", DaemonStatus), ("the end", None)])

    def look(_: Daemon) -> object:
        text, running = next(writes)
        (tmp_path / "logs").mkdir(exist_ok=True)
        with (tmp_path / "logs" / "lambda-f.log").open("a") as file:
            file.write(text)
        return running

    monkeypatch.setattr(Daemon, "status", look)
    assert list(daemon.logs(follow=True)) == ["local | begun", "lambda-f | half a line", "lambda-f | the end"]


def test_only_the_last_run_is_printed_unless_the_earlier_ones_are_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "local.log", "2026-11-22 12:00:00 first\n")
    write(tmp_path, "logs/lambda-f.log", "first\n")
    begin_run(tmp_path)
    write(tmp_path, "local.log", "2026-11-23 12:00:00 second\n")
    write(tmp_path, "endpoints/logs/one/AllTraffic.log", "second\n")
    last = ["local | 2026-11-23 12:00:00 second", "one/AllTraffic | second"]
    assert list(Daemon(tmp_path).logs()) == last
    every = list(Daemon(tmp_path).logs(LogSelection(earlier_runs=True)))
    assert every == ["local | 2026-11-22 12:00:00 first", last[0], "lambda-f | first", last[1]]


@pytest.mark.parametrize("content", ["", "[]", "{}"], ids=["empty", "a list", "incomplete"])
def test_a_damaged_record_of_runs_hides_nothing(tmp_path: Path, content: str) -> None:
    write(tmp_path, "local.log", "a line\n")
    (tmp_path / "run.json").write_text(content)
    assert list(Daemon(tmp_path).logs()) == ["local | a line"]


def test_an_endpoint_or_a_source_is_chosen_by_name(messages: Messages, tmp_path: Path) -> None:
    for place in ("local.log", "logs/lambda-f.log", "endpoints/logs/one/A.log", "endpoints/logs/one-more/A.log"):
        write(tmp_path, place, "x\n")
    assert list(Daemon(tmp_path).logs(LogSelection(endpoint="one"))) == ["one/A | x"]
    assert list(Daemon(tmp_path).logs(LogSelection(source="lambda-"))) == ["lambda-f | x"]
    for selection in (LogSelection(endpoint="on"), LogSelection(source="processing-")):
        with messages.raises(LocalError):
            list(Daemon(tmp_path).logs(selection))


def test_since_looks_at_the_times_that_lines_begin_with(tmp_path: Path) -> None:
    """A line without a time belongs to the one before; where none has one, the file's own time decides."""
    now = time.time()
    before, after = (time.localtime(now - seconds) for seconds in (7200, 60))
    for at, text in ((before, "old"), (after, "new")):
        write(tmp_path, "local.log", f"{time.strftime('%Y-%m-%d %H:%M:%S', at)} {text}\nmore of it\n")
    for seconds, text in ((7200, "old"), (60, "new")):
        stamp = time.strftime("%m%d %H:%M:%S", time.gmtime(now - seconds))
        write(tmp_path, "endpoints/logs/one/A.log", f'I{stamp}.123456 42 server.cc:1] "{text}"\n| a table |\n')
    for name, changed in (("old", now - 7200), ("new", now)):
        write(tmp_path, f"logs/lambda-{name}.log", f"{name}\n")
        os.utime(tmp_path / "logs" / f"lambda-{name}.log", (changed, changed))
    found = list(Daemon(tmp_path).logs(LogSelection(since=now - 3600)))
    assert [line.partition(" | ")[0] for line in found] == ["local", "local", "lambda-new", "one/A", "one/A"]
    assert not [line for line in found if "old" in line]


def test_lines_that_look_like_faults_and_are_none_say_so(messages: Messages, tmp_path: Path) -> None:
    lines = (
        'E1123 11:55:35.1 1 server.cc:241] "CudaDriverHelper has not been initialized."',
        'E1123 11:55:35.1 1 m.cc:2] "unable to create stream for m: CUDA driver version is insufficient for CUDA"',
        'I1123 11:55:35.1 1 sagemaker_server.cc:293] "Started Sagemaker HTTPService at 0.0.0.0:58731"',
    )
    write(tmp_path, "local.log", lines[0] + "\n")
    write(tmp_path, "endpoints/logs/one/A.log", "".join(f"{line}\n" for line in (*lines, "E1123 a real one")))
    begin = LogFiles(tmp_path, tmp_path / "local.log")
    begin.begin_run(on_all_interfaces=False)
    local, *noted, real = list(Daemon(tmp_path).logs(LogSelection(earlier_runs=True)))
    assert (local, real) == (f"local | {lines[0]}", "one/A | E1123 a real one")
    assert all(len(note) > len(f"one/A | {line}") for note, line in zip(noted, lines, strict=True))
    messages.record("log", "\n".join(noted))
    begin_run(tmp_path, on_all_interfaces=True)
    *_, exposed, _ = list(Daemon(tmp_path).logs(LogSelection(earlier_runs=True)))
    assert exposed == f"one/A | {lines[2]}"  # it really listens there then


def test_a_brief_log_has_neither_tables_nor_expected_errors(tmp_path: Path) -> None:
    lines = (
        'E1123 11:55:35.1 1 server.cc:241] "CudaDriverHelper has not been initialized."',
        "+-------+---------+--------+",
        "| Model | Version | Status |",
        "E1123 a real one",
    )
    write(tmp_path, "local.log", "| not of a server\n")
    write(tmp_path, "endpoints/logs/one/A.log", "".join(f"{line}\n" for line in lines))
    brief = LogSelection(brief=True)
    assert list(Daemon(tmp_path).logs(brief)) == ["local | | not of a server", "one/A | E1123 a real one"]
    assert len(list(Daemon(tmp_path).logs())) == 5
