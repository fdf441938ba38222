"""The working directory of builds. An asset gets to its place whole, once, and by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .packages import sha256_of


class Workspace:
    """The working directory of the preparation, `model_assets/.downloads`.

    ::

        .downloads/*.whl, *.tgz    what was fetched
        .downloads/prepared.json   for each asset the key it was built from, and the SHA-256 of each of its files
        .downloads/partial/        what is not whole yet; emptied by the next run, whatever ended the last one
        .downloads/lock            held while a process prepares
    """

    def __init__(self, assets: Path) -> None:
        self.assets = assets
        self.downloads = assets / ".downloads"
        self.scratch = self.downloads / "partial"
        self._record = self.downloads / "prepared.json"

    @contextlib.contextmanager
    def locked(self, on_wait: Callable[[], None]) -> Iterator[None]:
        """Holds the lock. If another process has it, calls `on_wait` and waits; the lock of a dead process is free."""
        self.downloads.mkdir(parents=True, exist_ok=True)
        with (self.downloads / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(lock, fcntl.LOCK_EX)
            self._empty_scratch()
            self.scratch.mkdir()
            try:
                yield
            finally:
                self._empty_scratch()

    def _empty_scratch(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    def is_current(self, asset: str, key: str) -> bool:
        """Whether the asset was built from `key` and its files are as they were then, by content."""
        entry = self._entries().get(asset)
        if entry is None or entry["key"] != key:
            return False
        files = {self.assets / name: digest for name, digest in entry["files"].items()}
        return all(path.is_file() and sha256_of(path) == digest for path, digest in files.items())

    def publish(self, asset: str, key: str, build: Callable[[Path], None]) -> int:
        """Builds an asset aside, moves it to its place in one step, and records it.

        Args:
            asset: the path of the file or directory below the assets' directory.
            key: what it is built from.
            build: writes the file or directory to the path that it is given.

        Returns:
            The size of the asset in bytes.
        """
        with tempfile.TemporaryDirectory(dir=self.scratch) as directory:
            built = Path(directory) / "new"
            build(built)
            place = self.assets / asset
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir():
                place.rename(Path(directory) / "old")  # a directory that is not empty cannot be replaced in one step
            built.replace(place)
        files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
        digests = {path.relative_to(self.assets).as_posix(): sha256_of(path) for path in files}
        self._write({**self._entries(), asset: {"key": key, "files": digests}})
        return sum(path.stat().st_size for path in files)

    def _entries(self) -> dict[str, dict[str, Any]]:
        try:
            entries: dict[str, dict[str, Any]] = json.loads(self._record.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # never prepared, or the record is damaged: both mean building again
            return {}
        return entries

    def _write(self, entries: dict[str, dict[str, Any]]) -> None:
        new = self.scratch / "prepared.json"
        new.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        new.replace(self._record)
