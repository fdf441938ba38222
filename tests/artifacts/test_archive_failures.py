"""An archive that cannot be written: one sentence, what was there before untouched, nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton.artifacts import write_archive
from cdk_triton.errors import ArchiveError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


class TestNothingIsLeftBehind:
    """After a failure the target is what it was, and no other file is there."""

    @pytest.fixture(params=["nothing", "an older archive"])
    def target(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        directory = tmp_path / "out"
        directory.mkdir()
        if request.param != "nothing":
            (directory / "model.tar.gz").write_bytes(b"older")
        return directory / "model.tar.gz"

    @pytest.fixture(autouse=True)
    def unchanged(self, target: Path) -> Iterator[None]:
        before = {path.name: path.read_bytes() for path in target.parent.iterdir()}
        yield
        assert {path.name: path.read_bytes() for path in target.parent.iterdir()} == before

    def test_interrupted(self, repository: Path, target: Path) -> None:
        def interrupt(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_archive(repository, target, progress=interrupt)

    def test_a_file_grew_since_the_repository_was_read(
        self, messages: Messages, repository: Path, target: Path
    ) -> None:
        read = ModelRepository.from_directory(repository)
        words = repository / "preprocess/1/vocabulary/words.txt"
        words.write_text("one\ntwo\nthree\n")
        with messages.raises(ArchiveError):
            write_archive(read, target)

    @pytest.mark.parametrize("size", [0, 1, 2_000_000, 9_000_000])
    def test_a_file_changes_its_size_while_it_is_read(
        self, messages: Messages, repository: Path, target: Path, size: int
    ) -> None:
        weights = repository / "network/1/weights.bin"
        weights.write_bytes(bytes(5_000_000))

        def resize(done: int, total: int) -> None:
            if done > 3_000_000:
                os.truncate(weights, size)

        with messages.raises(ArchiveError):
            write_archive(repository, target, progress=resize)

    def test_a_file_is_rewritten_while_it_is_read(self, messages: Messages, repository: Path, target: Path) -> None:
        weights = repository / "network/1/weights.bin"
        weights.write_bytes(bytes(5_000_000))

        def rewrite(done: int, total: int) -> None:
            weights.write_bytes(b"x" * 5_000_000)

        with messages.raises(ArchiveError):
            write_archive(repository, target, progress=rewrite)

    def test_a_file_vanished(self, messages: Messages, repository: Path, target: Path) -> None:
        read = ModelRepository.from_directory(repository)
        (repository / "network/1/model.onnx").unlink()
        with messages.raises(ArchiveError):
            write_archive(read, target)

    def test_a_file_became_a_pipe(self, messages: Messages, repository: Path, target: Path) -> None:
        read = ModelRepository.from_directory(repository)
        words = repository / "preprocess/1/vocabulary/words.txt"
        words.unlink()
        os.mkfifo(words)
        with messages.raises(ArchiveError):
            write_archive(read, target)

    def test_a_file_system_limit(self, messages: Messages, repository: Path, target: Path) -> None:
        """The limit on the size of files is a failure to write that needs no rights and no full disk."""
        limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
        messages.record("ArchiveError", self.message_of_child(repository, target, limit))

    def test_no_space(self, messages: Messages, repository: Path, target: Path, tmp_path: Path) -> None:
        (repository / "network/1/weights.bin").write_bytes(os.urandom(3_000_000))
        disk = tmp_path / "disk"
        disk.mkdir()
        # A namespace of processes too, so that whoever is in it ends with it.
        mount = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c"]
        small = f"mount -t tmpfs -o size=1m tmpfs {disk} &&"
        if subprocess.run([*mount, f"{small} true"], check=False, capture_output=True).returncode != 0:
            pytest.skip("this machine lets nobody mount a small file system in a namespace")
        ran = subprocess.run(
            [
                *mount,
                f'{small} "$0" -c "$1" "$2" "$3"; ls -A {disk}',
                sys.executable,
                PACK,
                repository,
                disk / "m.tar.gz",
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "4,280,099" in ran.stdout
        assert "1,048,576" in ran.stdout
        messages.record("ArchiveError", ran.stdout.rstrip("\n"))

    @staticmethod
    def message_of_child(repository: Path, target: Path, preparation: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", f"import resource\n{preparation}\n{PACK}", repository, target],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return ran.stdout.rstrip("\n")


PACK = """
import sys
from cdk_triton.artifacts import write_archive
from cdk_triton.errors import ArchiveError
try:
    write_archive(sys.argv[1], sys.argv[2])
except ArchiveError as error:
    print(error)
"""


def test_the_archive_cannot_be_a_part_of_its_repository(messages: Messages, repository: Path) -> None:
    with messages.raises(ArchiveError):
        write_archive(repository, repository / "model.tar.gz")


def test_the_directory_of_the_archive_must_exist(messages: Messages, repository: Path, tmp_path: Path) -> None:
    target = tmp_path / "missing" / "model.tar.gz"
    with messages.raises(ArchiveError):
        write_archive(repository, target)


def test_the_archive_cannot_replace_a_directory(messages: Messages, repository: Path, tmp_path: Path) -> None:
    target = tmp_path / "model.tar.gz"
    target.mkdir()
    with messages.raises(ArchiveError):
        write_archive(repository, target)
    assert left_in(tmp_path) == ["model.tar.gz", "repository"]
