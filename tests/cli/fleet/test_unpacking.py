"""Archives of the store are unpacked within bounds, and nothing leaves the directory."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.artifacts.archive import write_archive
from cdk_triton.artifacts.keys import source_key
from cdk_triton.cli.fleet import unpacking
from cdk_triton.cli.fleet.unpacking import unpack
from cdk_triton.errors import StoreError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages


def packed(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "", **pax: str) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.size, found.linkname, found.pax_headers = kind, size, link, pax
    return found


def test_a_repository_has_the_same_key_after_it_was_packed_and_unpacked(repository: Path, tmp_path: Path) -> None:
    archive = write_archive(repository, tmp_path / "archive.tar.gz")
    target = tmp_path / "unpacked"
    target.mkdir()
    with archive.path.open("rb") as body:
        unpack(body, target, "it")
    assert source_key(ModelRepository.from_directory(target)) == source_key(ModelRepository.from_directory(repository))


BAD = {
    "a path that leaves the directory": packed(member("../outside")),
    "an absolute path": packed(member("/outside")),
    "a link": packed(member("model", tarfile.SYMTYPE, link="..")),
    "a device": packed(member("model", tarfile.CHRTYPE)),
    "a NUL character": packed(member("model", path="model/a\0b")),
    "a file twice": packed(member("model"), member("model")),
    "cut off": packed(member("model", size=5000))[:-9],
    "not an archive": b"not an archive",
    "damaged": gzip.compress(b"not a tar"),
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_an_archive_that_is_not_one_of_a_repository_is_rejected(
    messages: Messages, tmp_path: Path, body: bytes
) -> None:
    target = tmp_path / "below" / "target"
    target.mkdir(parents=True)
    with messages.raises(StoreError):
        unpack(io.BytesIO(body), target, "it")
    assert {each.name for each in tmp_path.rglob("*")} <= {"below", "target", "model"}


def test_an_archive_that_is_too_large_is_rejected(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MAX_ENTRIES", 2)
    with messages.raises(StoreError):
        unpack(io.BytesIO(packed(*(member(name) for name in "abc"))), tmp_path, "it")


@pytest.mark.slow
@given(st.binary(max_size=300))
def test_any_bytes_are_rejected_with_a_sentence(tmp_path_factory: pytest.TempPathFactory, body: bytes) -> None:
    target = tmp_path_factory.mktemp("target")
    with pytest.raises(StoreError):
        unpack(io.BytesIO(body), target, "it")
