"""The keys that the publisher's functions derive from an archive, and the archives that they reject."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from artifacts import archive_keys as subject
from artifacts.archive_keys import archive_keys
from artifacts.failure import ArtifactError
from cdk_triton import ServingPlatform
from cdk_triton.artifacts import artifact_key, source_key, write_archive
from cdk_triton.artifacts.keys import key_inputs
from cdk_triton.triton import ModelRepository
from golden_messages import Messages
from protocol.canonical import sha256_of_json
from protocol.keys import ArchiveKeys, KeyInputs
from publisher_machine import KEYS, packed


def pieces(archive: bytes, size: int) -> Iterator[bytes]:
    return (archive[first : first + size] for first in range(0, len(archive), size))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_the_keys_are_those_of_a_synthesis(tmp_path: Path, size: int) -> None:
    long = "n" * 120
    for path in ("pipeline/config.pbtxt", f"step/1/{long}/größe.txt", "step/config.pbtxt"):
        (tmp_path / "repository" / path).parent.mkdir(parents=True, exist_ok=True)
        text = 'platform: "ensemble"' if path.startswith("pipeline") else 'backend: "python"'
        (tmp_path / "repository" / path).write_text(text)
    repository = ModelRepository.from_directory(tmp_path / "repository")
    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
    write_archive(repository, tmp_path / "model.tar.gz")
    inputs = KeyInputs(**asdict(key_inputs(platform)))

    found = archive_keys(pieces((tmp_path / "model.tar.gz").read_bytes(), size), inputs, "a")

    assert found == ArchiveKeys(source_key(repository), artifact_key(repository, platform))


def with_member(change: Callable[[tarfile.TarInfo], None]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("text/config.pbtxt")
        change(member)
        tar.addfile(member)
    return gzip.compress(buffer.getvalue())


def renamed(name: str) -> bytes:
    return with_member(lambda member: setattr(member, "name", name))


def typed(kind: bytes) -> bytes:
    return with_member(lambda member: setattr(member, "type", kind))


def twice() -> bytes:
    content = gzip.decompress(packed({"a": b"1"}))
    return gzip.compress(content[:1024] + content)


def entry(kind: bytes, content: bytes, name: str = "entry") -> bytes:
    """A header and its content."""
    header = tarfile.TarInfo(name)
    header.type, header.size = kind, len(content)
    return header.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def extended(**fields: str) -> bytes:
    """A file with an extended header of PAX."""
    text = "".join(record(name.replace("_", "."), value) for name, value in fields.items())
    return entry(tarfile.XHDTYPE, text.encode()) + entry(tarfile.REGTYPE, b"1\n0\n0\n")


def record(name: str, value: str) -> str:
    rest = f" {name}={value}\n"
    size = len(rest) + len(str(len(rest)))
    return f"{len(rest) + len(str(size))}{rest}"


def headers_of_headers() -> bytes:
    """`tarfile` reads each of them within the one before."""
    return entry(tarfile.GNUTYPE_LONGNAME, b"name") * 1000


def huge_header() -> bytes:
    header = tarfile.TarInfo("header")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    return gzip.compress(header.tobuf(tarfile.USTAR_FORMAT))


GOOD = packed({"text/config.pbtxt": b"1"})
BAD = {
    "a path out of it": renamed("../text"),
    "an absolute path": renamed("/text"),
    "a dot": renamed("text/./x"),
    "a long path": renamed("n" * 2000),
    "a NUL character": gzip.compress(extended(path="text/a\0b")),
    "a link": typed(tarfile.SYMTYPE),
    "a device": typed(tarfile.CHRTYPE),
    "a file twice": twice(),
    "a second gzip member": GOOD + GOOD,
    "data behind the gzip member": GOOD + b"x",
    "data behind the archive": gzip.compress(gzip.decompress(GOOD) + b"x"),
    "data within the last record": gzip.compress(gzip.decompress(GOOD)[:-1] + b"x"),
    "a file behind the end": gzip.compress(gzip.decompress(GOOD)[:2048] + gzip.decompress(GOOD)),
    "a damaged header": gzip.compress(gzip.decompress(GOOD)[:1024] + b"x" * 512 + bytes(1024)),
    "half a header": gzip.compress(gzip.decompress(GOOD)[:1024] + b"x" * 100),
    "a huge header": huge_header(),
    "a global header": gzip.compress(entry(tarfile.XGLTYPE, b"11 a=1234\n")),
    "a sparse file": gzip.compress(entry(tarfile.GNUTYPE_SPARSE, b"1")),
    "a sparse file of PAX 0.1": gzip.compress(extended(GNU_sparse_map="0,1", GNU_sparse_size="1")),
    "a sparse file of PAX 1.0": gzip.compress(extended(GNU_sparse_major="1", GNU_sparse_minor="0")),
    "headers of headers": gzip.compress(headers_of_headers()),
    "cut off": GOOD[:-20],
    "empty": b"",
    "not gzip": b"text",
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_what_no_archive_of_this_library_contains_is_rejected(messages: Messages, name: str, size: int) -> None:
    with messages.raises(ArtifactError):
        archive_keys(pieces(BAD[name], size), KEYS, "staging/publish/first/key.tar.gz")


@given(st.integers(1024, len(gzip.decompress(GOOD)) - 1), st.binary(min_size=1, max_size=2048))
def test_whatever_stands_behind_the_last_file_is_noticed(at: int, garbage: bytes) -> None:
    assume(garbage.strip(b"\0"))
    content = gzip.decompress(GOOD)
    content = content[:at] + garbage + content[at + len(garbage) :]
    assume(not is_header(content[1024:1536]))  # bytes whose sum fits are the header of another file
    with pytest.raises(ArtifactError, match=r"after its end|is damaged"):
        archive_keys(iter([gzip.compress(content, 1)]), KEYS, "a.tar.gz")


def is_header(block: bytes) -> bool:
    with suppress(tarfile.HeaderError):
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        return True
    return False


paths = st.lists(st.text("abcä", min_size=1, max_size=120), min_size=1, max_size=3).map("/".join)


@pytest.mark.slow
@given(st.dictionaries(paths, st.integers(0, 3 << 20), min_size=1, max_size=4), st.integers(1, 1 << 20))
def test_an_archive_of_any_size_is_read_to_its_end(sizes: dict[str, int], size: int) -> None:
    files = {path: bytes([number + 1]) * length for number, (path, length) in enumerate(sizes.items())}
    hashes = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    found = archive_keys(pieces(packed(files), size), KEYS, "a.tar.gz")
    assert found.source == sha256_of_json({**KEYS.source, "files": hashes})


@pytest.mark.parametrize(
    ("bound", "value"),
    [("MAX_ENTRIES", 2), ("MAX_PATHS_LENGTH", 2), ("MAX_BYTES", 1000)],
)
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE], ids=["files", "directories"])
def test_what_an_archive_contains_is_bounded(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, kind: bytes
) -> None:
    archive = gzip.compress(b"".join(entry(kind, b"", name) for name in "abc") + bytes(1024))
    archive_keys(iter([archive]), KEYS, "a.tar.gz")
    monkeypatch.setattr(subject, bound, value)
    with messages.raises(ArtifactError):
        archive_keys(iter([archive]), KEYS, "a.tar.gz")


@pytest.mark.parametrize("at", ["in a file", "behind the archive"])
def test_a_gzip_bomb_is_rejected_before_it_is_unpacked(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    monkeypatch.setattr(subject, "MIN_BOMB_BYTES", 1 << 20)
    zeros = bytes(1 << 24)
    content = entry(tarfile.REGTYPE, zeros) if at == "in a file" else entry(tarfile.REGTYPE, b"1") + zeros
    left = pieces(gzip.compress(content), 100)
    with messages.raises(ArtifactError):
        archive_keys(left, KEYS, "a.tar.gz")
    assert next(left)


def test_an_archive_that_takes_too_long_is_not_read_to_its_end(messages: Messages) -> None:
    times = iter(range(99))
    left = pieces(packed({name: os.urandom(1 << 16) for name in "abc"}), 100)
    with messages.raises(ArtifactError):
        archive_keys(left, KEYS, "a.tar.gz", lambda: next(times) > 10)
    assert next(left)


@pytest.mark.slow
def test_the_memory_does_not_grow_with_the_headers_of_an_archive() -> None:
    comment = "c" * 60_000

    def archive() -> Iterator[bytes]:
        gzipped = zlib.compressobj(1, wbits=31)
        for number in range(1000):
            header = entry(tarfile.XHDTYPE, record("comment", f"{number}{comment}").encode())
            yield gzipped.compress(header + entry(tarfile.DIRTYPE, b"", f"directory-{number}"))
        yield gzipped.compress(bytes(1024)) + gzipped.flush()

    tracemalloc.start()
    try:
        archive_keys(filter(None, archive()), KEYS, "a.tar.gz")
        assert tracemalloc.get_traced_memory()[1] < 10 << 20  # the headers are 60 MB
    finally:
        tracemalloc.stop()
