"""With a warm cloud assembly, the CLI's looking-around opens no weights and no archive."""

import os
import shutil
import sys
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


@pytest.fixture(scope="module")
def checkout(example_app: Any, model_assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example app in a directory of its own, whose files no other test opens, synthesised once."""
    directory = tmp_path_factory.mktemp("checkout")
    shutil.copy(model_assets.parent / "app.py", directory)
    shutil.copytree(model_assets.parent / "examples", directory / "examples")
    unused = shutil.ignore_patterns(".downloads", "wheels")
    shutil.copytree(model_assets, directory / "model_assets", copy_function=link_or_copy, ignore=unused)
    example_app.cdk("synth", "--quiet", "--app", app(directory))
    return directory


def link_or_copy(source: str, target: str) -> None:
    """A link to the file, or a copy on another file system. An opened link is no event in another directory."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def app(directory: Path) -> str:
    return f"{sys.executable} {directory / 'app.py'}"


@pytest.mark.parametrize("command", [("diff", "TwoEnsembles"), ("destroy", "ImageClassification", "--force")])
def test_command_opens_no_large_file(command: tuple[str, ...], example_app: Any, checkout: Path) -> None:
    with opened_files(checkout / "model_assets", example_app.directory / "cdk.out") as opened:
        example_app.cdk(*command, "--app", app(checkout))
    assert opened == set()
