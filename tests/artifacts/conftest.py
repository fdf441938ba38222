"""Model repositories on disk, and a digest cache that is nobody's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

ENSEMBLE = b'platform: "ensemble"\n'

WriteFiles = Callable[[Path, Mapping[str, bytes]], Path]


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache directory of these tests."""
    directory = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(directory))
        yield directory


@pytest.fixture(scope="session")
def write_files() -> WriteFiles:
    """Writes files below a directory and returns it."""

    def write(root: Path, files: Mapping[str, bytes]) -> Path:
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return root

    return write


@pytest.fixture
def repository(tmp_path: Path, write_files: WriteFiles) -> Path:
    """An ensemble of two steps whose version directory is empty, as a checkout without it would be too."""
    root = write_files(
        tmp_path / "repository",
        {
            "ensemble/config.pbtxt": ENSEMBLE,
            "preprocess/config.pbtxt": b'backend: "python"\n',
            "preprocess/1/model.py": b"class TritonPythonModel: ...\n",
            "preprocess/1/vocabulary/words.txt": b"one\ntwo\n",
            "network/config.pbtxt": b'backend: "onnxruntime"\n',
            "network/1/model.onnx": bytes(range(256)) * 5000,
        },
    )
    (root / "ensemble" / "1").mkdir()
    return root


@pytest.fixture
def settle() -> Callable[..., None]:
    """Makes files look as if nobody had touched them for a minute."""

    def age(*files: Path) -> None:
        for file in files:
            state = file.stat()
            os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns - 60 * 10**9))

    return age
