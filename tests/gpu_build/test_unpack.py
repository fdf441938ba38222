"""Sources are unpacked exactly as the plan says, and hostile ones not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_program.plan import Ensemble
from build_program.step import BuildError
from build_program.stop import Stop
from build_program.unpack import unpack

if TYPE_CHECKING:
    from golden_messages import Messages


KINDS = [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE]
NAMES = [
    "a",
    "a/b",
    "a/b/c",
    "../a",
    "/tmp/cdk-triton-hostile",
    "a/../../b",
    "./a",
    "a//b",
    "",
    ".",
    "..",
    "é/ß",
    "a" * 150,
]
Entry = tuple[str, bytes, bytes]


def archive(entries: Sequence[Entry]) -> bytes:
    """A `.tar.gz` of names, kinds and contents; links lead to the content."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as target:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                entry.linkname = content.decode("latin-1").replace("\0", "")
            elif kind in (tarfile.REGTYPE, tarfile.GNUTYPE_SPARSE):
                entry.size = len(content)
            target.addfile(entry, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), mtime=0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unpacked(content: bytes, files: Mapping[str, str], directory: Path) -> Path:
    """Unpack sources below a directory; returns the repository."""
    (directory / "in").mkdir()
    (directory / "in" / "sources.tar.gz").write_bytes(content)
    repository = directory / "work" / "repository"
    repository.mkdir(parents=True)
    ensemble = Ensemble("text", "0" * 64, "sources.tar.gz", dict(files), (), (), ())
    unpack(ensemble, directory / "in", repository, Stop(time.monotonic() + 60))
    return repository


def tree(root: Path) -> dict[str, bytes | None]:
    return {path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes() for path in root.rglob("*")}


@settings(max_examples=60)
@given(
    entries=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(KINDS), st.binary(max_size=20)), max_size=5),
    named=st.booleans(),
)
def test_whatever_an_archive_holds_nothing_unverified_is_unpacked(entries: list[Entry], named: bool) -> None:
    regular = {name: sha256(content) for name, kind, content in entries if kind == tarfile.REGTYPE}
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        try:
            repository = unpacked(archive(entries), regular if named else {}, directory)
        except BuildError:
            repository = directory / "work" / "repository"
        else:
            files = {path: content for path, content in tree(repository).items() if content is not None}
            assert {path: sha256(content) for path, content in files.items()} == (regular if named else {})
        assert sorted(path.name for path in directory.iterdir()) == ["in", "work"]
        assert sorted(path.name for path in (directory / "work").iterdir()) == ["repository"]
        assert not any(path.is_symlink() or path.is_fifo() for path in repository.rglob("*"))
    assert not Path("/tmp/cdk-triton-hostile").exists()


@settings(max_examples=60)
@given(position=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_archive_is_noticed(position: int, value: int, cut: bool) -> None:
    files = {"a/b": b"content" * 50, "c": b""}
    whole = archive([(name, tarfile.REGTYPE, content) for name, content in files.items()])
    position %= len(whole)
    damaged = whole[:position] if cut else whole[:position] + bytes([value]) + whole[position + 1 :]
    with tempfile.TemporaryDirectory() as scratch:
        try:
            repository = unpacked(damaged, {name: sha256(content) for name, content in files.items()}, Path(scratch))
        except BuildError:
            return
        # A header's time, for instance, does not matter.
        assert {path: content for path, content in tree(repository).items() if content is not None} == files


@pytest.mark.parametrize(
    ("entries", "files"),
    [
        pytest.param([("../a", tarfile.REGTYPE, b"")], {}, id="outside"),
        pytest.param([("a", tarfile.SYMTYPE, b"/etc/passwd")], {"a": sha256(b"")}, id="a symbolic link"),
        pytest.param(
            [("b", tarfile.REGTYPE, b""), ("a", tarfile.LNKTYPE, b"b")],
            {"a": sha256(b""), "b": sha256(b"")},
            id="a hard link",
        ),
        pytest.param([("a", tarfile.REGTYPE, b"")], {}, id="a file that the plan does not name"),
        pytest.param([("a", tarfile.REGTYPE, b""), ("a", tarfile.REGTYPE, b"")], {"a": sha256(b"")}, id="twice"),
        pytest.param([], {"a": "0" * 64}, id="missing"),
        pytest.param([("a", tarfile.REGTYPE, b"x")], {"a": "0" * 64}, id="changed"),
    ],
)
def test_the_reason_names_the_file(
    messages: Messages, tmp_path: Path, entries: list[Entry], files: dict[str, str]
) -> None:
    with messages.raises(BuildError):
        unpacked(archive(entries), files, tmp_path)


def test_a_disk_that_is_too_small_is_noticed_before_it_is_full(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage: Any = type("Usage", (), {"free": 5})
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)

    with messages.raises(BuildError):
        unpacked(archive([("a", tarfile.REGTYPE, b"123456")]), {"a": sha256(b"123456")}, tmp_path)
