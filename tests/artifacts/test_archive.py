"""The archive: what is in it, and that it is always the same."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdk_triton.artifacts import BUILDER_VERSION, Archive, write_archive
from cdk_triton.errors import ArchiveError, RepositoryError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages


def contents(archive: Path) -> dict[str, bytes | None]:
    """Files with their bytes, directories with None, in the archive's order, read the way a stream is read."""
    found: dict[str, bytes | None] = {}
    with tarfile.open(archive, "r|gz") as tar:
        for entry in tar:
            content = tar.extractfile(entry)
            found[entry.name] = None if content is None else content.read()
    return found


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_an_archive_holds_the_repository_in_order(repository: Path, tmp_path: Path) -> None:
    archive = write_archive(repository, tmp_path / "model.tar.gz")
    network = (repository / "network/1/model.onnx").read_bytes()
    assert list(contents(archive.path).items()) == [
        ("ensemble", None),
        ("ensemble/1", None),
        ("ensemble/1/.keep", b""),
        ("ensemble/config.pbtxt", b'platform: "ensemble"\n'),
        ("network", None),
        ("network/1", None),
        ("network/1/model.onnx", network),
        ("network/config.pbtxt", b'backend: "onnxruntime"\n'),
        ("preprocess", None),
        ("preprocess/1", None),
        ("preprocess/1/model.py", b"class TritonPythonModel: ...\n"),
        ("preprocess/1/vocabulary", None),
        ("preprocess/1/vocabulary/words.txt", b"one\ntwo\n"),
        ("preprocess/config.pbtxt", b'backend: "python"\n'),
    ]
    assert archive == Archive(
        path=tmp_path / "model.tar.gz",
        size=(tmp_path / "model.tar.gz").stat().st_size,
        file_count=7,
        content_size=len(network) + 21 + 23 + 29 + 8 + 18,
    )
    assert left_in(tmp_path) == ["model.tar.gz", "repository"]


def test_gnu_tar_lists_and_extracts_it(repository: Path, tmp_path: Path) -> None:
    archive = write_archive(repository, tmp_path / "model.tar.gz").path
    listed = subprocess.run(["tar", "-tzf", archive], check=True, capture_output=True, text=True).stdout.split()
    assert listed == [name if content is not None else f"{name}/" for name, content in contents(archive).items()]
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path / "out"], check=True)
    (repository / "ensemble/1/.keep").touch()
    assert subprocess.run(["diff", "-r", repository, tmp_path / "out"], check=False).returncode == 0


def test_nothing_in_it_tells_who_packed_it_or_when(repository: Path, tmp_path: Path) -> None:
    archive = write_archive(repository, tmp_path / "model.tar.gz").path
    with tarfile.open(archive) as tar:
        for entry in tar:
            assert (entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname) == (0, 0, 0, "", "")
            assert entry.mode == (0o755 if entry.isdir() else 0o644)
            assert entry.isdir() or entry.isreg()
    header = archive.read_bytes()[:10]
    assert header[:4] == b"\x1f\x8b\x08\x00"  # deflate; no flags: no name, no comment
    assert header[4:8] == bytes(4)  # no time


def test_it_is_a_single_gzip_member(repository: Path, tmp_path: Path) -> None:
    member = zlib.decompressobj(wbits=31)
    member.decompress(write_archive(repository, tmp_path / "model.tar.gz").path.read_bytes())
    assert member.eof
    assert member.unused_data == b""


def test_the_same_files_give_the_same_bytes(repository: Path, tmp_path: Path) -> None:
    first = write_archive(repository, tmp_path / "first.tar.gz").path.read_bytes()
    twin = tmp_path / "elsewhere" / "another name"
    for path in sorted(repository.rglob("*"), reverse=True):  # the other order, so another order of directory entries
        if path.is_file():
            copy = twin / path.relative_to(repository)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            copy.chmod(0o700)
            os.utime(copy, (1, 1))
    assert write_archive(repository, tmp_path / "again.tar.gz").path.read_bytes() == first
    assert write_archive(str(twin), str(tmp_path / "twin.tar.gz")).path.read_bytes() == first
    read = ModelRepository.from_directory(twin)
    assert write_archive(read, tmp_path / "first.tar.gz").path.read_bytes() == first  # over an older archive


def test_a_change_of_the_bytes_is_a_decision(repository: Path, tmp_path: Path) -> None:
    """If this fails, archives of unchanged sources differ from those in people's buckets.

    Undo the change, or raise BUILDER_VERSION and write the new pair here.
    """
    with gzip.open(write_archive(repository, tmp_path / "model.tar.gz").path) as tar:
        digest = hashlib.sha256(tar.read()).hexdigest()
    assert (BUILDER_VERSION, digest) == (
        1,
        "fafda4aafeb8f6534a3818fef36b4c37cd399605be76a011e50baed50ec177db",
    )


# A repository rejects names that cannot be printed.
PRINTABLE = st.characters(codec="utf-8", exclude_categories=["C", "Z"], include_characters=" ", exclude_characters="/")
NAMES = st.text(PRINTABLE, min_size=1, max_size=60).filter(lambda name: name not in {".", ".."})
PATHS = st.builds("/".join, st.lists(NAMES, min_size=1, max_size=4))


@settings(max_examples=60)
@given(st.dictionaries(PATHS, st.binary(max_size=3000), max_size=8))
def test_whatever_a_repository_holds_comes_out_again(files: Mapping[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "repository")
        (root / "model" / "1").mkdir(parents=True)
        (root / "model" / "config.pbtxt").touch()
        for name, content in files.items():
            path = root / "model" / "1" / name
            with suppress(OSError):  # a name of more than 255 bytes, or a name for both a file and a directory
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        repository = ModelRepository.from_directory(root)
        expected = {file.path.as_posix(): file.source.read_bytes() for file in repository.files}
        archive = write_archive(repository, Path(directory, "model.tar.gz"))
        found = contents(archive.path)
        assert {name: content for name, content in found.items() if content is not None} == expected
        assert list(found) == sorted(found)
        with tarfile.open(archive.path) as tar:
            assert tar.getnames() == list(found)


def test_long_names_and_other_alphabets_survive(repository: Path, tmp_path: Path) -> None:
    name = "preprocess/1/" + "/".join(["日本語のトークナイザ" * 5, "x" * 255, "ß.txt"])
    (repository / name).parent.mkdir(parents=True)
    (repository / name).write_bytes(b"content")
    archive = write_archive(repository, tmp_path / "model.tar.gz").path
    assert contents(archive)[name] == b"content"
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path / "out"], check=True)
    assert (tmp_path / "out" / name).read_bytes() == b"content"


def test_a_file_above_8_gib_has_its_size_in_the_archive(repository: Path, tmp_path: Path) -> None:
    """Read from the half-written archive: all of it would take a minute."""
    weights = repository / "network/1/model.onnx"
    weights.write_bytes(os.urandom(9 << 20))
    os.truncate(weights, (8 << 30) + 1)
    entries: list[tarfile.TarInfo | None] = []

    def look_and_stop(done: int, total: int) -> None:
        if done > 9 << 20:
            (partial,) = tmp_path.glob(".model.tar.gz.*")
            with tarfile.open(partial, "r|gz") as tar:
                entries.extend(tar.next() for _ in range(7))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_archive(repository, tmp_path / "model.tar.gz", progress=look_and_stop)
    found = entries[-1]
    assert found is not None
    assert (found.name, found.size) == ("network/1/model.onnx", (8 << 30) + 1)


def test_a_repository_that_is_one_model_is_packed_without_a_directory(tmp_path: Path) -> None:
    root = tmp_path / "model"
    (root / "1").mkdir(parents=True)
    (root / "config.pbtxt").write_bytes(b'platform: "ensemble"\n')
    archive = write_archive(root, tmp_path / "model.tar.gz")
    assert list(contents(archive.path)) == ["1", "1/.keep", "config.pbtxt"]


@pytest.mark.parametrize(
    ("directories", "files", "placeholders"),
    [
        ([], [], ["1/.keep"]),
        (["1"], [], ["1/.keep"]),
        (["3"], [], ["3/.keep"]),
        (["1", "2"], [], ["1/.keep", "2/.keep"]),
        (["1"], ["1/.gitkeep"], []),
        (["1", "2"], ["2/notes.txt"], []),
        (["assets"], ["assets/labels.txt"], ["1/.keep"]),
        (["1"], ["1/.gitignore"], ["1/.keep"]),
    ],
)
def test_an_ensemble_keeps_a_version_directory(
    repository: Path, tmp_path: Path, directories: list[str], files: list[str], placeholders: list[str]
) -> None:
    ensemble = repository / "ensemble"
    (ensemble / "1").rmdir()
    for name in directories:
        (ensemble / name).mkdir()
    for name in files:
        (ensemble / name).touch()
    found = contents(write_archive(repository, tmp_path / "model.tar.gz").path)
    assert [name for name in found if name.endswith(".keep")] == [f"ensemble/{name}" for name in placeholders]


def test_an_empty_version_directory_of_another_model_is_not_kept(repository: Path, tmp_path: Path) -> None:
    (repository / "network" / "2").mkdir()
    assert "network/2" not in contents(write_archive(repository, tmp_path / "model.tar.gz").path)


def test_links_inside_the_repository_are_packed_as_files(repository: Path, tmp_path: Path) -> None:
    (repository / "shared").mkdir()
    (repository / "network/1/link.onnx").symlink_to("model.onnx")
    (repository / "network/1/hard.onnx").hardlink_to(repository / "network/1/model.onnx")
    (repository / "network/2").symlink_to("1", target_is_directory=True)
    archive = write_archive(repository, tmp_path / "model.tar.gz").path
    found = contents(archive)
    for name in ("1/link.onnx", "1/hard.onnx", "2/model.onnx"):
        assert found[f"network/{name}"] == (repository / "network/1/model.onnx").read_bytes()
    with tarfile.open(archive) as tar:
        assert not [entry.name for entry in tar if entry.issym() or entry.islnk()]


def test_a_link_out_of_the_repository_is_rejected(messages: Messages, repository: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of somebody else")
    (repository / "network/1/secret").symlink_to(tmp_path / "secret")
    with messages.raises(RepositoryError):
        write_archive(repository, tmp_path / "model.tar.gz")


def test_a_link_out_of_the_repository_is_rejected_also_when_it_came_later(
    messages: Messages, repository: Path, tmp_path: Path
) -> None:
    read = ModelRepository.from_directory(repository)
    model = repository / "network/1/model.onnx"
    (tmp_path / "secret").write_bytes(model.read_bytes())
    model.unlink()
    model.symlink_to(tmp_path / "secret")
    with messages.raises(ArchiveError):
        write_archive(read, tmp_path / "model.tar.gz")
    assert left_in(tmp_path) == ["repository", "secret"]


def test_progress_counts_the_bytes_up_to_all_of_them(repository: Path, tmp_path: Path) -> None:
    (repository / "network/1/weights.bin").write_bytes(bytes(3 << 20))
    calls: list[tuple[int, int]] = []
    archive = write_archive(repository, tmp_path / "model.tar.gz", progress=lambda *call: calls.append(call))
    assert calls == sorted(calls)
    assert len(calls) > 5
    assert calls[-1] == (archive.content_size, archive.content_size)


def test_others_may_read_the_archive(repository: Path, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        archive = write_archive(repository, tmp_path / "model.tar.gz")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(archive.path.stat().st_mode) == 0o644


@pytest.mark.slow
def test_memory_does_not_grow_with_the_repository(repository: Path, tmp_path: Path) -> None:
    os.truncate(repository / "network/1/model.onnx", 1 << 28)  # a hole, so that only the writer is at work
    pack = "import sys\nfrom cdk_triton.artifacts import write_archive\nwrite_archive(sys.argv[1], sys.argv[2])\n"
    peak = "for line in open('/proc/self/status'):\n    if line.startswith('VmHWM'): print(line.split()[1])\n"
    ran = subprocess.run(
        [sys.executable, "-c", pack + peak, repository, tmp_path / "model.tar.gz"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(ran.stdout) * 1024 < 100e6
