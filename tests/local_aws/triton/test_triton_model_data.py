"""Archives from anybody become directories, or one sentence and nothing on disk."""

from __future__ import annotations

import errno
import io
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import LocalError
from cdk_triton.triton import parse_model_config
from cdk_triton_local.triton import archives
from cdk_triton_local.triton.model_data import ModelDataNotFoundError, S3Location, fetch_archive, use_cpu_instances

if TYPE_CHECKING:
    from golden_messages import Messages

LOCATION = S3Location("bucket", "a/model.tar.gz")


class OneObject:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def get_object(self, *, Bucket: str, Key: str) -> Any:  # noqa: N803 boto3's names
        assert (Bucket, Key) == ("bucket", "a/model.tar.gz")
        return {"Body": io.BytesIO(self.content), "ContentLength": len(self.content)}


def archive_with(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return buffer.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    member.size = 3 if kind == tarfile.REGTYPE else 0
    return member


def test_files_and_directories_arrive(tmp_path: Path) -> None:
    content = archive_with(entry("./", tarfile.DIRTYPE), entry("./m/config.pbtxt"), entry("./e/1", tarfile.DIRTYPE))
    target = tmp_path / "new" / "repository"
    fetch_archive(OneObject(content), LOCATION, target)
    assert {str(path.relative_to(target)) for path in target.rglob("*")} == {"m", "m/config.pbtxt", "e", "e/1"}
    assert (target / "m" / "config.pbtxt").read_text() == "xxx"


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(entry("../escape"), id="a parent"),
        pytest.param(entry("m/../../escape"), id="a parent inside"),
        pytest.param(entry("/etc/escape"), id="an absolute path"),
        pytest.param(entry("m/link", tarfile.SYMTYPE, "/etc/passwd"), id="a symbolic link"),
        pytest.param(entry("m/link", tarfile.LNKTYPE, "ok"), id="a hard link"),
        pytest.param(entry("m/pipe", tarfile.FIFOTYPE), id="a pipe"),
        pytest.param(entry("m/disk", tarfile.BLKTYPE), id="a device"),
    ],
)
def test_what_could_do_harm_is_rejected_and_leaves_nothing(
    messages: Messages, tmp_path: Path, member: tarfile.TarInfo
) -> None:
    with messages.raises(LocalError) as rejected:
        fetch_archive(OneObject(archive_with(entry("ok"), member)), LOCATION, tmp_path / "repository")
    assert repr(member.name) in str(rejected.value)
    assert "s3://bucket/a/model.tar.gz" in str(rejected.value)
    assert list(tmp_path.iterdir()) == []


WHOLE = archive_with(*(entry(f"model/{i}") for i in range(50)))


@pytest.mark.parametrize(
    "broken",
    [b"", b"no archive at all", WHOLE[:-40], WHOLE[:60], WHOLE[:80] + b"\0" * 9 + WHOLE[89:]],
    ids=["nothing", "text", "without its end", "the beginning", "damaged"],
)
def test_an_incomplete_or_damaged_archive_is_one_sentence(messages: Messages, tmp_path: Path, broken: bytes) -> None:
    with pytest.raises(LocalError) as rejected:
        fetch_archive(OneObject(broken), LOCATION, tmp_path / "repository")
    assert "s3://bucket/a/model.tar.gz" in str(rejected.value)
    # In parentheses is what the library says that unpacks it.
    messages.record("LocalError", re.sub(r"\(.*\)", "(CAUSE)", str(rejected.value)))
    assert list(tmp_path.iterdir()) == []


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_no_damage_escapes_as_another_exception(tmp_path_factory: pytest.TempPathFactory, at: int, flip: int) -> None:
    damaged = WHOLE[:at] + bytes([WHOLE[at] ^ flip]) + WHOLE[at + 1 :]
    target = tmp_path_factory.mktemp("damaged") / "repository"
    try:
        fetch_archive(OneObject(damaged), LOCATION, target)
    except LocalError:
        assert not target.exists()
    else:  # in a byte that means nothing, as the time in gzip's header
        assert sorted(path.read_bytes() for path in (target / "model").iterdir()) == [b"xxx"] * 50


def test_a_full_disk_is_named(messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archives, "_copy", full)
    with messages.raises(LocalError):
        fetch_archive(OneObject(WHOLE), LOCATION, tmp_path / "repository")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_disk_has_no_room_for_is_not_begun(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2))
    monkeypatch.setattr(archives, "_copy", pytest.fail)
    with messages.raises(LocalError):
        fetch_archive(OneObject(WHOLE), LOCATION, tmp_path / "repository")
    assert list(tmp_path.iterdir()) == []


def sparse(size: int) -> bytes:
    """An archive as `tar -S` makes it: a file of `size` bytes that ends with "end" and is a hole otherwise."""
    member = tarfile.TarInfo("m/model.plan")
    member.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "m/model.plan",
        "GNU.sparse.realsize": str(size),
    }
    content = f"1\n{size - 3}\n3\n".encode().ljust(512, b"\0") + b"end"
    member.size = len(content)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def test_the_holes_of_a_sparse_file_take_no_room(tmp_path: Path) -> None:
    fetch_archive(OneObject(sparse(1 << 26)), LOCATION, tmp_path / "repository")
    file = tmp_path / "repository" / "m" / "model.plan"
    assert file.stat().st_size == 1 << 26
    assert file.stat().st_blocks * 512 < 1 << 20
    with file.open("rb") as opened:
        opened.seek(-4, io.SEEK_END)
        assert opened.read() == b"\0end"


def zeros(count: int, size: int) -> bytes:
    members = [entry(f"m/{number}") for number in range(count)]
    for member in members:
        member.size = size
    return archive_with(*members)


def many(count: int) -> bytes:
    return archive_with(*(entry(f"m/{number}", tarfile.DIRTYPE) for number in range(count)))


def long_header() -> bytes:
    member = entry("m/file")
    member.pax_headers = {"comment": "x" * (1 << 21)}
    return archive_with(member)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: sparse((1 << 30) + 1), id="a hole"),
        pytest.param(lambda: sparse(1 << 62), id="an endless hole"),
        pytest.param(lambda: many(101), id="directories"),
        pytest.param(long_header, id="a header"),
    ],
)
def test_an_archive_that_unpacks_to_far_more_than_its_size_is_rejected(
    messages: Messages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: Callable[[], bytes]
) -> None:
    monkeypatch.setattr(archives, "_MOST_MEMBERS", 100)
    with messages.raises(LocalError):
        fetch_archive(OneObject(make()), LOCATION, tmp_path / "repository")
    assert list(tmp_path.iterdir()) == []


def test_the_bound_grows_with_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_ALWAYS_ALLOWED", 1000)
    content = zeros(1, 100_000)
    assert len(content) * 200 < 100_000
    with pytest.raises(LocalError):
        fetch_archive(OneObject(content), LOCATION, tmp_path / "small")
    monkeypatch.setattr(archives, "_MOST_RATIO", 100_000 // len(content) + 1)
    fetch_archive(OneObject(content), LOCATION, tmp_path / "large")


@pytest.mark.parametrize("code", ["NoSuchKey", "NoSuchBucket", "AccessDenied"])
def test_an_object_that_is_not_there_is_its_own_error(messages: Messages, tmp_path: Path, code: str) -> None:
    class Nothing:
        def get_object(self, *, Bucket: str, Key: str) -> Any:  # noqa: N803 boto3's names
            raise ClientError({"Error": {"Code": code}}, "GetObject")

    with messages.raises(ModelDataNotFoundError) as rejected:
        fetch_archive(Nothing(), LOCATION, tmp_path / "repository")
    assert code in str(rejected.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["", "bucket/key", "https://bucket/key", "s3://", "s3://bucket", "s3:///key"])
def test_a_url_that_is_not_s3_is_rejected(messages: Messages, url: str) -> None:
    with messages.raises(LocalError):
        S3Location.from_url(url)


@pytest.mark.parametrize("url", ["s3://bucket", "s3:///", "bucket/"])
def test_a_prefix_that_is_not_s3_is_rejected(messages: Messages, url: str) -> None:
    with messages.raises(LocalError):
        S3Location.from_url(url, is_prefix=True)


def test_only_the_instance_kind_changes(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    config = tmp_path / "m" / "config.pbtxt"
    config.write_text(
        'platform: "tensorrt_plan" max_batch_size: 4 instance_group [ { kind: KIND_GPU count: 2 gpus: [0, 1] } ]'
    )
    before = parse_model_config(config.read_text())
    use_cpu_instances(tmp_path)
    after = parse_model_config(config.read_text())
    [group] = after.instance_group
    assert (group.kind, group.count, list(group.gpus)) == (group.KIND_CPU, 2, [])
    before.ClearField("instance_group")
    after.ClearField("instance_group")
    assert after == before


@pytest.mark.parametrize(
    "text", ['backend: "python" # untouched', "instance_group [ { kind: KIND_CPU } ]", "not a configuration {"]
)
def test_what_needs_no_change_is_not_rewritten(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.pbtxt"
    config.write_text(text)
    use_cpu_instances(tmp_path)
    assert config.read_text() == text
