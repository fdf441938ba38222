"""Files that tests compare with what they find, and that `make generate` writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tools.generate._writing import short_diff

__all__ = ["assert_recorded"]

ROOT = Path(__file__).parents[1]


def assert_recorded(path: Path, update: Callable[[str], str]) -> None:
    """The committed file stays as it is when `update` puts what a test has found into it.

    `make generate` sets RECORD_TO. Then nothing is compared, and the updated file is written below that folder.
    """
    committed = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    if folder := os.environ.get("RECORD_TO"):
        copy = Path(folder) / path.relative_to(ROOT)
        before = copy.read_text(encoding="utf-8") if copy.exists() else committed
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(update(before), encoding="utf-8")
    elif (found := update(committed)) != committed:
        difference = short_diff(committed.encode(), found.encode())
        raise AssertionError(f"{path.relative_to(ROOT)} differs; if that is meant, run `make generate`\n{difference}")
