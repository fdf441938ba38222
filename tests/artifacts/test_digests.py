"""The memory of digests: right always, fast when nothing changed, and never in the way."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from inotify_simple import INotify, flags

from cdk_triton.artifacts.digests import file_digests
from cdk_triton.errors import ArchiveError

if TYPE_CHECKING:
    from golden_messages import Messages


Settle = Callable[..., None]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of each test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cdk-triton"


@pytest.fixture
def weights(tmp_path: Path, settle: Settle) -> Path:
    """A file above 1 MB that nobody touched lately."""
    file = tmp_path / "weights.bin"
    file.write_bytes(os.urandom(1_500_000))
    settle(file)
    return file


def digest(file: Path) -> str:
    return file_digests([file])[file]


def true_digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[], list[str]]]:
    """The names of the files in the test's directory that were opened since it was asked last."""
    with INotify() as watch:
        watch.add_watch(tmp_path, flags.OPEN)
        yield lambda: [event.name for event in watch.read(timeout=0) if not event.mask & flags.ISDIR]


def test_digests_are_sha256(tmp_path: Path, weights: Path) -> None:
    small, empty = tmp_path / "small", tmp_path / "empty"
    small.write_bytes(b"abc")
    empty.touch()
    assert file_digests([weights, small, empty]) == {
        weights: true_digest(weights),
        small: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        empty: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }


def test_an_unchanged_file_is_not_opened_again(weights: Path, opened: Callable[[], list[str]]) -> None:
    first = digest(weights)
    assert opened() == ["weights.bin"]
    assert digest(weights) == first
    assert opened() == []


def test_a_link_shares_the_memory_of_its_file(weights: Path, tmp_path: Path, opened: Callable[[], list[str]]) -> None:
    digest(weights)
    (tmp_path / "link").symlink_to(weights)
    right = true_digest(weights)
    opened()
    assert digest(tmp_path / "link") == right
    assert opened() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:]),
        lambda file: file.write_bytes(file.read_bytes() + b"x"),
        lambda file: (file.unlink(), file.write_bytes(os.urandom(1_500_000))),
    ],
    ids=["same size", "another size", "another inode"],
)
@pytest.mark.parametrize("keeps_time", [False, True])
def test_a_changed_file_is_hashed_again(weights: Path, change: Callable[[Path], object], keeps_time: bool) -> None:
    before, state = digest(weights), weights.stat()
    change(weights)
    if keeps_time:
        os.utime(weights, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert digest(weights) == true_digest(weights) != before


def test_a_file_that_was_just_written_is_hashed_again(tmp_path: Path, opened: Callable[[], list[str]]) -> None:
    """Within the grain of its times it may be written again and look the same."""
    file = tmp_path / "fresh.bin"
    file.write_bytes(b"one")
    for _ in range(2):
        opened()
        digest(file)
        assert opened() == ["fresh.bin"]


def test_a_file_from_the_future_is_hashed_again(weights: Path, opened: Callable[[], list[str]]) -> None:
    os.utime(weights, (2**32, 2**32))
    digest(weights)
    opened()
    digest(weights)
    assert opened() == ["weights.bin"]


def test_hard_links_share_the_memory_of_their_file(tmp_path: Path, weights: Path) -> None:
    """A call finds what an earlier one has hashed, and hashes two links that it gets at once only once."""
    links = [tmp_path / name for name in ("acme", "bravo", "charlie")]
    for link in links:
        link.hardlink_to(weights)
    read: list[int] = []
    found: dict[Path, str] = {}
    for files in (links[:2], links[2:]):
        found |= file_digests(files, progress=lambda done, total: read.append(total))
    assert found == dict.fromkeys(links, true_digest(weights))
    assert set(read) == {1_500_000}
    assert len(read) == 2  # a block and the rest


def test_a_process_waits_for_another_that_hashes_the_same_file(tmp_path: Path, weights: Path) -> None:
    link = tmp_path / "link.bin"
    link.hardlink_to(weights)
    program = (
        "import sys; from pathlib import Path; from cdk_triton.artifacts.digests import file_digests\n"
        "link = Path(sys.argv[1]); print(file_digests([link], progress=lambda done, total: print(done))[link])"
    )
    children: list[subprocess.Popen[str]] = []

    def meanwhile(done: int, total: int) -> None:
        if not children:
            child = subprocess.Popen([sys.executable, "-c", program, link], stdout=subprocess.PIPE, text=True)
            children.append(child)
            while child.poll() is None and not is_waiting(child.pid):
                with suppress(subprocess.TimeoutExpired):
                    child.wait(0.05)

    digest_here = file_digests([weights], progress=meanwhile)[weights]

    done_at_once = str(weights.stat().st_size)
    assert children[0].communicate()[0].split() == [done_at_once, digest_here]


def is_waiting(pid: int) -> bool:
    """Whether a process waits for a lock on a part of a file."""
    waiting = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "-> POSIX" in line]
    return str(pid) in [fields[5] for fields in waiting]


def database(cache: Path) -> Path:
    (file,) = cache.glob("*.sqlite")
    return file


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b"not a database, but as long as one would be" * 1000),
        lambda file: file.write_bytes(b""),
        lambda file: os.truncate(file, file.stat().st_size // 2),
        lambda file: file.write_bytes(file.read_bytes()[:4096] + b"\xff" * (file.stat().st_size - 4096)),
        lambda file: file.unlink(),
    ],
    ids=["garbage", "empty", "cut short", "overwritten", "gone"],
)
def test_a_damaged_memory_is_replaced_without_a_word(
    weights: Path,
    cache: Path,
    damage: Callable[[Path], object],
    opened: Callable[[], list[str]],
    capfd: pytest.CaptureFixture[str],
) -> None:
    right = digest(weights)
    damage(database(cache))
    opened()
    assert digest(weights) == right
    assert opened() == ["weights.bin"]
    assert digest(weights) == right
    assert opened() == []
    assert capfd.readouterr() == ("", "")


def test_a_row_that_is_no_digest_is_not_believed(weights: Path, cache: Path) -> None:
    right = digest(weights)
    with closing(sqlite3.connect(database(cache))) as connection, connection:
        connection.execute("UPDATE kept SET value = 'nonsense'")
    assert digest(weights) == right


@pytest.mark.slow
@pytest.mark.parametrize("obstacle", ["a file", "a directory in place of the database", "a locked database"])
def test_hashing_works_where_nothing_can_be_remembered(
    weights: Path, cache: Path, tmp_path: Path, obstacle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = digest(weights)
    name = database(cache).name
    if obstacle == "a locked database":
        weights.write_bytes(b"changed, so that it wants to write")
        os.utime(weights, (1, 1))
        with closing(sqlite3.connect(cache / name, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert digest(weights) == true_digest(weights) != right
        return
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    if obstacle == "a file":
        (tmp_path / "other").write_text("in the way")
    else:
        (tmp_path / "other" / "cdk-triton" / name).mkdir(parents=True)
    assert digest(weights) == right


def test_processes_share_the_memory(tmp_path: Path, cache: Path, settle: Settle) -> None:
    files = [tmp_path / f"{number}.bin" for number in range(40)]
    for number, file in enumerate(files):
        file.write_bytes(os.urandom(20_000 if number % 4 else 1_100_000))
    settle(*files)
    program = (
        "import sys; from pathlib import Path; from cdk_triton.artifacts.digests import file_digests\n"
        "for file, digest in file_digests(map(Path, sys.argv[1:])).items(): print(digest)"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, *files[:: step or 1]], stdout=subprocess.PIPE, text=True)
        for step in (1, -1, 1, -1)
    ]
    right = [true_digest(file) for file in files]
    for child, step in zip(children, (1, -1, 1, -1), strict=True):
        output, _ = child.communicate()
        assert output.split() == right[::step]
        assert child.returncode == 0
    with closing(sqlite3.connect(database(cache))) as connection:
        assert connection.execute("SELECT COUNT(*) FROM kept").fetchone() == (40,)


def test_an_interruption_keeps_what_took_long(tmp_path: Path, settle: Settle, opened: Callable[[], list[str]]) -> None:
    files = [tmp_path / "first.bin", tmp_path / "second.bin"]
    for file in files:
        file.write_bytes(os.urandom(3_000_000))
    settle(*files)

    def interrupt(done: int, total: int) -> None:
        assert total == 6_000_000
        if done > 4_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        file_digests(files, progress=interrupt)
    opened()
    file_digests(files)
    assert opened() == ["second.bin"]


def test_a_killed_process_keeps_what_took_long(tmp_path: Path, settle: Settle, opened: Callable[[], list[str]]) -> None:
    files = [tmp_path / "first.bin", tmp_path / "second.bin"]
    for file in files:
        file.write_bytes(os.urandom(3_000_000))
    settle(*files)
    program = (
        "import os, sys; from pathlib import Path; from cdk_triton.artifacts.digests import file_digests\n"
        "file_digests(map(Path, sys.argv[1:]), progress=lambda done, total: done > 4_000_000 and os._exit(9))"
    )
    assert subprocess.run([sys.executable, "-c", program, *files], check=False).returncode == 9
    opened()
    file_digests(files)
    assert opened() == ["second.bin"]


def test_values_of_half_a_year_ago_are_evicted(tmp_path: Path, weights: Path, cache: Path, settle: Settle) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(os.urandom(20_000))
    settle(other)
    digest(weights)
    with closing(sqlite3.connect(database(cache))) as connection, connection:
        connection.execute("UPDATE kept SET kept_ns = kept_ns - 181 * 24 * 3600 * 1000000000")

    digest(other)

    state = other.stat()
    with closing(sqlite3.connect(database(cache))) as connection:
        assert connection.execute("SELECT name FROM kept").fetchall() == [(b"%d %d" % (state.st_dev, state.st_ino),)]


def test_a_file_that_is_written_to_meanwhile_has_no_digest(messages: Messages, weights: Path) -> None:
    with messages.raises(ArchiveError):
        file_digests([weights], progress=lambda done, total: weights.write_bytes(b"other"))


def test_a_file_that_gets_a_hard_link_meanwhile_has_a_digest(weights: Path, tmp_path: Path) -> None:
    """`cp -al` of a directory does not write to its files."""

    def link(done: int, total: int) -> None:
        if not (tmp_path / "link.bin").exists():
            (tmp_path / "link.bin").hardlink_to(weights)

    assert file_digests([weights], progress=link) == {weights: true_digest(weights)}


def test_a_missing_file_and_a_pipe_are_rejected(messages: Messages, tmp_path: Path) -> None:
    with messages.raises(ArchiveError):
        digest(tmp_path / "missing.bin")
    os.mkfifo(tmp_path / "pipe")
    with messages.raises(ArchiveError):
        digest(tmp_path / "pipe")


def test_a_name_that_is_not_utf8_is_remembered_too(
    tmp_path: Path, settle: Settle, opened: Callable[[], list[str]]
) -> None:
    file = tmp_path / os.fsdecode(b"weights-\xff.bin")
    file.write_bytes(os.urandom(20_000))
    right = true_digest(file)
    settle(file)
    digest(file)
    opened()
    assert digest(file) == right
    assert opened() == []


def test_a_small_file_is_not_remembered(tmp_path: Path, cache: Path, settle: Settle) -> None:
    """The cache would take longer than the file."""
    file = tmp_path / "config.pbtxt"
    file.write_bytes(b"backend")
    settle(file)
    assert digest(file) == true_digest(file)
    assert not cache.exists()


def test_without_the_cache_every_file_is_read(
    weights: Path, opened: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    digest(weights)
    opened()
    assert digest(weights) == true_digest(weights)
    assert opened().count(weights.name) == 1  # by this test alone

    monkeypatch.setenv("CDK_TRITON_NO_CACHE", "1")
    found = digest(weights)

    assert opened() == [weights.name]
    assert found == true_digest(weights)
