"""Documents and ZIP files of golden requests that somebody else has written: usable, or one sentence."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gpu_build.rehearsal.rehearsing import answered, asked, write_input

from build_program.rehearsal.comparison import difference
from build_program.rehearsal.document import RehearsalDocument, document_of
from build_program.rehearsal.tensors import Tensor
from build_program.rehearsals import unpack_golden
from build_program.step import BuildError
from odd_values import changed_somewhere, odd_values

if TYPE_CHECKING:
    from golden_messages import Messages


def document(tmp_path: Path) -> dict[str, Any]:
    """A document with a golden request, whose bodies are in the folder."""
    budgets = {"load_seconds": 60.0, "gpu_memory_mib": None, "p99_milliseconds": 50.0, "concurrency": 2}
    return dict(write_input(tmp_path, [(asked(), answered(2.0)), (asked(), None)], budgets=budgets))


def row(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["requests"][0].update(changed)


def whole(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(changed)


def budget(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["budgets"].update(changed)


FAULTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "no mode": lambda document: document.pop("mode"),
    "an endless time": whole(load_timeout_seconds=math.inf),
    "no time": whole(load_timeout_seconds=math.nan),
    "a negative time": whole(load_timeout_seconds=-1.0),
    "a text as time": whole(load_timeout_seconds="60"),
    "requests that are no list": whole(requests={}),
    "a variable that is no text": whole(environment={"NAME": 1}),
    "a variable with a NUL": whole(environment={"NAME": "a\0b"}),
    "a variable without a name": whole(environment={"": "a"}),
    "half of a character": whole(environment={"NAME": "\ud800"}),
    "a repository that is no text": whole(repository=None),
    "an unknown budget": budget(seconds=1),
    "a negative budget": budget(load_seconds=-1),
    "a budget that is no number": budget(p99_milliseconds=math.nan),
    "too many at once": budget(concurrency=65),
    "half a request at once": budget(concurrency=1.5),
    "a path outside": row(body="../request0"),
    "an absolute path": row(expected="/etc/passwd"),
    "a path that is no text": row(body=7),
    "a body twice": row(expected="request0"),
    "a header of two lines": row(content_type="text/plain\r\nX-Other: 1"),
    "a request without a body": lambda document: document["requests"][0].pop("body"),
    "a request that is no object": lambda document: document["requests"].append(7),
    "an unknown comparison": row(comparison={"how": "sum"}),
    "a comparison with nothing": row(expected=None),
    "a tolerance that is no number": row(comparison={"how": "tolerance", "absolute": math.nan, "relative": 0}),
    "a cosine above 1": row(comparison={"how": "cosine", "least": 2}),
    "a label that is no text": row(comparison={"how": "label", "label": ["cat"]}),
}


@pytest.mark.parametrize("spoil", FAULTS.values(), ids=FAULTS)
def test_a_document_that_cannot_be_used(
    messages: Messages, tmp_path: Path, spoil: Callable[[dict[str, Any]], None]
) -> None:
    found = document(tmp_path)
    document_of(found, tmp_path)
    spoil(found)
    with messages.raises(ValueError):
        document_of(found, tmp_path)


@pytest.mark.slow
@given(st.data())
def test_no_document_ends_the_reader_in_another_way(data: st.DataObject) -> None:
    with TemporaryDirectory() as directory:
        folder = Path(directory)
        found = data.draw(odd_values | changed_somewhere(document(folder)))
        try:
            read = document_of(found, folder)
        except ValueError as error:
            assert "cannot be used" in str(error)  # noqa: PT017  an accepted document is as legal as a rejected one
            assert len(str(error)) < 1000  # noqa: PT017
            return
    assert_usable(read, folder)


def assert_usable(read: RehearsalDocument, folder: Path) -> None:
    """What the rest of the program relies on."""
    assert 0 <= read.load_timeout_seconds <= 3600
    assert 1 <= read.budgets.concurrency <= 64
    for each in read.budgets[:3]:
        assert each is None or 0 <= each < math.inf
    for name, value in read.environment.items():
        assert b"\0" not in f"{name}{value}".encode()
    for request in read.requests:
        assert (folder / request.body).parent.is_relative_to(folder)
        f"{request.content_type}{request.expected_type}".encode("latin-1")
        assert request.content_type.isprintable()
        request.name.encode()
        difference(request.comparison, ANSWER, ANSWER)


def zipped(entries: list[tuple[str, bytes]]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, body in entries:
            archive.writestr(name, body)
    return buffer.getvalue()


ANSWER = {"y": Tensor("FP32", [1], [1.0])}
BODIES = [("request0", b"one"), ("expected0", b"two"), ("request1", b"three")]
GOOD = zipped(BODIES)


def unpacked(tmp_path: Path, file: bytes) -> None:
    folder = tmp_path / "golden"
    folder.mkdir()
    read = document_of(document(folder), folder)
    for body in folder.iterdir():
        body.unlink()
    (tmp_path / "golden.zip").write_bytes(file)
    unpack_golden(tmp_path / "golden.zip", read, folder)
    assert sorted(each.name for each in folder.iterdir()) == sorted(name for name, _ in BODIES)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["golden", "golden.zip"]


def encrypted(file: bytes) -> bytes:
    """The same with the flag of encrypted files in both headers of each."""
    found = bytearray(file)
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        start = found.find(signature)
        while start >= 0:
            found[start + offset] |= 1
            start = found.find(signature, start + 1)
    return bytes(found)


FILES: dict[str, Callable[[], bytes]] = {
    "cut": lambda: GOOD[:-9],
    "encrypted": lambda: encrypted(GOOD),
    "damaged": lambda: GOOD.replace(b"three", b"threx"),
    "twice": lambda: zipped([*BODIES, ("request1", b"again")]),
    "outside": lambda: zipped([*BODIES[:2], ("../request1", b"three")]),
    "absolute": lambda: zipped([*BODIES[:2], ("/request1", b"three")]),
    "a directory": lambda: zipped([*BODIES, ("more/", b"")]),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_golden_requests_that_cannot_be_unpacked(tmp_path: Path, file: Callable[[], bytes]) -> None:
    with pytest.raises(BuildError, match=r"^the golden requests golden\.zip "):
        unpacked(tmp_path, file())


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(GOOD)))
def test_no_bytes_end_the_unpacking_in_another_way(changes: list[tuple[int, int]], length: int) -> None:
    file = bytearray(GOOD)
    for place, value in changes:
        file[place] = value
    with TemporaryDirectory() as directory:
        try:
            unpacked(Path(directory), bytes(file[:length] if length % 4 == 0 else file))
        except BuildError as error:
            assert "the golden requests golden.zip " in error.reason  # noqa: PT017
