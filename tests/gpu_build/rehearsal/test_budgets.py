"""Figures and budgets where a GPU is: small programs play `serve`, the image's entry point, and `nvidia-smi`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gpu_build.rehearsal.rehearsing import answered, asked, run_in

SERVE = """#!{python} -IS
import http.server, os, pathlib, signal, socketserver, sys, time

used = pathlib.Path({used!r})
used.write_text("9000")
print("| server_version                   | 2.68.0   |")
print('W0101 00:00:00.000000 7 server.cc:1] "no CUDA memory pool"', flush=True)

def ended(*_):
    used.write_text("1200")
    os._exit(0)

signal.signal(signal.SIGTERM, ended)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.02)
        print('W0101 00:00:00.000000 7 server.cc:2] "a request of Ada Lovelace"', flush=True)
        self.answer({answer!r})

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

Server(("127.0.0.1", int(os.environ["SAGEMAKER_BIND_TO_PORT"])), Handler).serve_forever()
"""
NVIDIA_SMI = """#!/bin/sh
case "$*" in
    *--loop-ms=250*) while :; do echo "0, 1000, 570.133.20"; sleep 0.25; done;;  # a reader that lags
    *) echo "0, $(cat {used}), 570.133.20"; echo "1, 40, 570.133.20"; echo "2, [N/A], x";;
esac
"""
ENTRY_POINT = """#!/bin/sh
setsid sleep 1234 > {used}.log 2>&1 &
echo $! > {used}.pid
exec "$@"
"""


@pytest.fixture
def rehearsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Rehearse with those programs."""
    used = tmp_path / "used"
    used.write_text("1000")
    programs = {
        "bin/serve": SERVE.format(python=sys.executable, used=str(used), answer=answered(2.0)),
        "bin/nvidia-smi": NVIDIA_SMI.format(used=used),
        "root/opt/nvidia/nvidia_entrypoint.sh": ENTRY_POINT.format(used=used),
    }
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "in/repository").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr("build_program.rehearsal.session._REPEATED_SECONDS", 0.3)
    return lambda **budgets: run_in(tmp_path, [(asked(), answered(2.0))], budgets=budgets)


@pytest.mark.slow
def test_figures_of_a_gpu_are_recorded(rehearsed: Callable[..., dict[str, Any]]) -> None:
    found = rehearsed(gpu_memory_mib=9000.0, p99_milliseconds=5000.0, concurrency=2)
    assert found["reason"] is None
    assert found["memory"]["gpu"] == {"before": 1000, "loaded": 9000, "after": 1200, "peak": 9000}
    assert 20 <= found["latency"]["p50_milliseconds"] <= found["latency"]["p99_milliseconds"]
    assert found["skipped"] == found["stand_ins"] == []
    assert found["server"] == {"version": "2.68.0", "warnings": ["no CUDA memory pool"]}
    assert found["differs"]["driver"].startswith("570.133.20")
    assert found["differs"]["instance"].startswith("the machine of the job, with 2 GPUs")


@pytest.mark.slow
def test_a_server_that_ignores_sigterm_is_ended(
    rehearsed: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("build_program.rehearsal.server._GRACE_SECONDS", 0.5)
    serve = tmp_path / "bin/serve"
    serve.write_text(serve.read_text().replace("SIGTERM, ended", "SIGTERM, signal.SIG_IGN"))
    assert rehearsed()["reason"] is None
    assert not [each for each in Path("/proc").glob("[0-9]*/cmdline") if _has(each, str(serve))]


def _has(command_line: Path, text: str) -> bool:
    try:
        return text.encode() in command_line.read_bytes()
    except OSError:
        return False


@pytest.mark.slow
def test_a_process_that_left_the_servers_group_is_ended(
    rehearsed: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    assert rehearsed()["reason"] is None
    assert not Path("/proc", (tmp_path / "used.pid").read_text().strip()).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budgets", "reason"),
    [
        (
            {"gpu_memory_mib": 8000.0},
            "9,000 MiB of the GPU's memory were in use, but the limit is 8,000 MiB: use fewer instances or smaller "
            "batches, or raise max_gpu_memory_mib",
        ),
        ({"p99_milliseconds": 19.5, "concurrency": 3}, " ms when 3 are sent at once, but the limit is 19.5 ms: make"),
    ],
    ids=["memory", "latency"],
)
def test_a_budget_that_is_not_kept_fails(
    rehearsed: Callable[..., dict[str, Any]], budgets: dict[str, Any], reason: str
) -> None:
    found = rehearsed(**budgets)
    assert reason in found["reason"]
    assert found["memory"]["gpu"]["peak"] == 9000
