"""The archive of a build: the entries of the library's own writer, in a stored gzip."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from build_program.pack import pack
from build_program.step import BuildError
from build_program.stop import Stop
from cdk_triton.artifacts import write_archive

if TYPE_CHECKING:
    from golden_messages import Messages


FILES = {
    "ensemble/config.pbtxt": b'platform: "ensemble"\n',
    "ensemble/1/.keep": b"",
    "network/config.pbtxt": b'backend: "onnxruntime"\n',
    "network/1/model.onnx": bytes(range(256)) * 9000,
    f"network/1/{'long' * 40}/{'name' * 20}.bin": b"x" * 512,
    "network/1/größe.txt": b"1",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for path, content in FILES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return root


def stop() -> Stop:
    return Stop(time.monotonic() + 60)


def test_the_tar_is_that_of_the_librarys_writer(repository: Path, tmp_path: Path) -> None:
    write_archive(repository, tmp_path / "library.tar.gz")
    pack(repository, FILES, tmp_path / "build.tar.gz", stop())

    assert gzip.decompress((tmp_path / "build.tar.gz").read_bytes()) == gzip.decompress(
        (tmp_path / "library.tar.gz").read_bytes()
    )


def test_the_same_files_give_the_same_bytes_whatever_their_times_and_order(repository: Path, tmp_path: Path) -> None:
    first = pack(repository, list(FILES), tmp_path / "one.tar.gz", stop())
    for file in repository.rglob("*"):
        os.utime(file, (1, 1))
    second = pack(repository, reversed(list(FILES)), tmp_path / "two.tar.gz", stop())

    assert first == second
    content = (tmp_path / "one.tar.gz").read_bytes()
    assert content == (tmp_path / "two.tar.gz").read_bytes()
    assert content[4:8] == bytes(4)  # no time in the gzip header
    assert content[3] == 0  # and no name


def test_every_part_is_hashed_while_it_is_written(repository: Path, tmp_path: Path) -> None:
    report = pack(repository, FILES, tmp_path / "a.tar.gz", stop(), part_bytes=1000)

    content = (tmp_path / "a.tar.gz").read_bytes()
    parts = [content[start : start + 1000] for start in range(0, len(content), 1000)]
    assert report == {
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "part_bytes": 1000,
        "parts": [hashlib.sha256(part).hexdigest() for part in parts],
    }


def test_it_is_stored_because_plans_hardly_compress(repository: Path, tmp_path: Path) -> None:
    report = pack(repository, FILES, tmp_path / "a.tar.gz", stop())

    assert report["size"] > sum(map(len, FILES.values()))


def test_a_file_that_is_missing_or_a_link_is_an_error(messages: Messages, repository: Path, tmp_path: Path) -> None:
    (repository / "link").symlink_to("network/config.pbtxt")
    for path in ("missing", "link"):
        with messages.raises(BuildError):
            pack(repository, [path], tmp_path / "a.tar.gz", stop())
