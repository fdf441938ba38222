"""The rule CT167 before libarchive, the library with which the Python backend unpacks environments.

The options are those of python_backend 3033a6b (src/pb_env.cc). The library is the one of nvidia-pytriton's backend.
"""

from __future__ import annotations

import ctypes
import io
import os
import tarfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdk_triton.python_models.reader.unsafe_members import unsafe_member

# archive.h: ARCHIVE_EXTRACT_TIME, SECURE_SYMLINKS, SECURE_NODOTDOT, SECURE_NOABSOLUTEPATHS
OPTIONS = 0x0004 | 0x0100 | 0x0200 | 0x10000
FAILED = -25  # ARCHIVE_FAILED

# A later member never has the name of a directory: that fails with every release.
PARTS = st.sampled_from(["a", "b", "..", ".", "", "..c"])
NAMES = st.builds("/".join, st.lists(PARTS, min_size=1, max_size=4)).filter(bool)
ABSOLUTE = "an absolute path"  # of a directory of the test: libarchive changes the mode of what a link leads to
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE])


@pytest.fixture(scope="session")
def libarchive() -> ctypes.CDLL:
    """The library of the Python backend."""
    pytest.importorskip("pytriton")
    spec = find_spec("pytriton")
    assert spec is not None
    assert spec.origin is not None
    (path,) = (Path(spec.origin).parents[1] / "nvidia_pytriton.libs").glob("libarchive-*.so*")
    library = loaded(path)
    library.archive_read_new.restype = library.archive_write_disk_new.restype = ctypes.c_void_p
    library.archive_error_string.restype = ctypes.c_char_p
    return library


def loaded(path: Path) -> ctypes.CDLL:
    """Load a library of the wheel, and before it the libraries beside it that it needs."""
    while True:
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            needed = path.parent / str(error).partition(":")[0]
            if needed == path or not needed.exists():
                raise
            loaded(needed)


def unpacked(library: ctypes.CDLL, archive: Path, target: Path) -> str:
    """Unpack as the backend does, and return what libarchive refuses; "" where it refuses nothing."""
    source, disk = (ctypes.c_void_p(new()) for new in (library.archive_read_new, library.archive_write_disk_new))
    entry, before = ctypes.c_void_p(), Path.cwd()
    target.mkdir()
    os.chdir(target)
    try:
        assert library.archive_write_disk_set_options(disk, OPTIONS) == 0
        library.archive_read_support_filter_gzip(source)
        library.archive_read_support_format_tar(source)
        assert library.archive_read_open_filename(source, str(archive).encode(), 10240) == 0
        while library.archive_read_next_header(source, ctypes.byref(entry)) == 0:
            done = library.archive_write_header(disk, entry)
            if done != 0:
                return f"{done} {library.archive_error_string(disk).decode()}"
            library.archive_write_finish_entry(disk)
        return ""
    finally:
        library.archive_write_free(disk)
        library.archive_read_free(source)
        os.chdir(before)


@settings(max_examples=400)
@given(members=st.lists(st.tuples(NAMES, KINDS, st.sampled_from(["a", "b", ABSOLUTE, "../x"])), max_size=5))
def test_what_the_rule_rejects_is_what_libarchive_rejects(
    libarchive: ctypes.CDLL, tmp_path_factory: pytest.TempPathFactory, members: list[tuple[str, bytes, str]]
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as target:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, str(elsewhere) if link == ABSOLUTE else link
            target.addfile(member)
    (folder / "env.tar.gz").write_bytes(buffer.getvalue())

    said = unpacked(libarchive, folder / "env.tar.gz", folder / "unpacked")

    found = unsafe_member(folder / "env.tar.gz")
    is_security = any(words in said for words in ("Path is absolute", "Path contains '..'", "through symlink"))
    if is_security or not said:
        # Where a link took the place of a file, libarchive names the member behind the link instead of the link.
        assert said.startswith(f"{FAILED} {found[1]}") if found else not said
