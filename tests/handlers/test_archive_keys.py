"""The keys that the publisher's functions derive from an archive, and the archives that they reject."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from artifacts import archive_keys as subject
from artifacts.archive_keys import ArchiveKeys, KeyDocument, archive_keys
from artifacts.failure import ArtifactError
from cdk_triton import ServingPlatform
from cdk_triton.artifacts import artifact_key, source_key, write_archive
from cdk_triton.artifacts.keys import key_document
from cdk_triton.triton import ModelRepository
from golden_messages import Messages
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
    document = key_document(platform)

    found = archive_keys(
        pieces((tmp_path / "model.tar.gz").read_bytes(), size), KeyDocument(document["source"], document["target"]), "a"
    )

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
    "a link": typed(tarfile.SYMTYPE),
    "a device": typed(tarfile.CHRTYPE),
    "a file twice": twice(),
    "a second gzip member": GOOD + GOOD,
    "data behind the gzip member": GOOD + b"x",
    "data behind the archive": gzip.compress(gzip.decompress(GOOD) + b"x"),
    "a huge header": huge_header(),
    "cut off": GOOD[:-20],
    "empty": b"",
    "not gzip": b"text",
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_what_no_archive_of_this_library_contains_is_rejected(messages: Messages, name: str, size: int) -> None:
    with messages.raises(ArtifactError):
        archive_keys(pieces(BAD[name], size), KEYS, "staging/publish/first/key.tar.gz")


def test_the_number_of_files_is_bounded(messages: Messages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_FILES", 2)
    with messages.raises(ArtifactError):
        archive_keys(iter([packed(dict.fromkeys("abc", b"1"))]), KEYS, "a.tar.gz")
