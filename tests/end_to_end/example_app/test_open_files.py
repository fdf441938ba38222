"""With a warm cloud assembly, the CLI's looking-around opens no weights and no archive."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from inotify_simple import INotify, flags

LARGE = 1_000_000  # bytes


@contextmanager
def opened_files(*roots: Path) -> Iterator[set[Path]]:
    """The large files below `roots` that any process on this machine opens meanwhile."""
    opened: set[Path] = set()
    with INotify() as inotify:
        directories = [d for root in roots for d in (root, *root.rglob("*")) if d.is_dir()]
        watched = {inotify.add_watch(directory, flags.OPEN): directory for directory in directories}
        yield opened
        for event in inotify.read(timeout=0):
            path = watched[event.wd] / event.name
            if path.is_file() and path.stat().st_size > LARGE:
                opened.add(path)


def test_the_counter_sees_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(bytes(LARGE + 1))
    with opened_files(tmp_path) as opened:
        (tmp_path / "weights").read_bytes()
    assert opened == {tmp_path / "weights"}


@pytest.mark.parametrize("command", [("ls",), ("diff", "TwoEnsembles"), ("destroy", "ImageClassification", "--force")])
def test_command_opens_no_large_file(command: tuple[str, ...], example_app: Any, model_assets: Path) -> None:
    with opened_files(model_assets, example_app.directory / "cdk.out") as opened:
        example_app.cdk(*command)
    assert opened == set()
