"""Files that are pinned by their hash; from the disk, or from a server of this process that breaks off."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from build_program.download import download
from build_program.step import BuildError
from build_program.stop import Stop

if TYPE_CHECKING:
    from golden_messages import Messages


CONTENT = b"a program\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source"
    file.write_bytes(CONTENT)
    return file


def test_a_file_with_its_hash_arrives(source: Path, tmp_path: Path) -> None:
    download(
        source.as_uri(),
        tmp_path / "target",
        Stop(time.monotonic() + 60),
        sha256=SHA256,
        most_bytes=100,
        what="the program",
    )
    assert (tmp_path / "target").read_bytes() == CONTENT


def test_another_file_is_not_kept(messages: Messages, source: Path, tmp_path: Path) -> None:
    with messages.raises(BuildError):
        download(
            source.as_uri(),
            tmp_path / "target",
            Stop(time.monotonic() + 60),
            sha256="0" * 64,
            most_bytes=100,
            what="the program",
        )
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("name", "most_bytes"),
    [pytest.param("nowhere", 100, id="no file"), pytest.param("source", 5, id="too large")],
)
@pytest.mark.usefixtures("source")
def test_what_cannot_be_fetched_is_tried_again_and_then_named(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most_bytes: int
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("build_program.download.time.sleep", waits.append)
    url = (tmp_path / name).as_uri()
    with messages.raises(BuildError):
        download(
            url,
            tmp_path / "target",
            Stop(time.monotonic() + 60),
            sha256=SHA256,
            most_bytes=most_bytes,
            what="the program",
        )
    assert len(waits) == 2


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(CONTENT), CONTENT)


class Answers(HTTPServer):
    """A server that gives each request the next of its answers, byte by byte as they are, and closes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.answers: list[bytes] = []


class _Answer(BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        self.wfile.write(self.server.answers.pop(0))
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Answers]:
    with Answers() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "broken",
    [WHOLE[:-3], b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\na pro", b"nonsense\r\n\r\n"],
    ids=["too short", "half a chunk", "no HTTP"],
)
def test_an_answer_that_breaks_off_is_asked_for_again(
    server: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bytes
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("build_program.download.time.sleep", waits.append)
    server.answers = [broken, WHOLE]
    download(
        f"http://127.0.0.1:{server.server_port}/program",
        tmp_path / "target",
        Stop(time.monotonic() + 60),
        sha256=SHA256,
        most_bytes=100,
        what="the program",
    )
    assert (tmp_path / "target").read_bytes() == CONTENT
    assert len(waits) == 1
