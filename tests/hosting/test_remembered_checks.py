"""What the checks found is said again without a look into the models, for as long as nothing changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from inotify_simple import INotify, flags

from cdk_triton import ModelRepository
from cdk_triton.hosting.checked import check
from cdk_triton.triton import ContainerEnvironment

LONG_AGO = (1_000_000_000, 1_000_000_000)
World = Any


@contextmanager
def opened(directory: Path) -> Iterator[list[str]]:
    """The names of the files in a directory that somebody opens."""
    found: list[str] = []
    with INotify(nonblocking=True) as watch:
        watch.add_watch(directory, flags.OPEN)
        yield found
        found += [event.name for event in watch.read(timeout=0) if event.name]


@pytest.fixture(name="codes")
def _codes(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Check the repository `text` as it stands, with files that have been left alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world.repository("text")

    def ask(mode: str = "single", environment: ContainerEnvironment | None = None, **options: Any) -> list[str]:
        root = world.directory / "repositories" / "text"
        for file in root.rglob("*"):
            if file.is_file() and file.stat().st_mtime != LONG_AGO[0]:
                os.utime(file, LONG_AGO)
        repository = ModelRepository.from_directory(root, **options)
        settings = ContainerEnvironment() if environment is None else environment
        return [finding.code for finding in check(repository, mode, world.platform, settings)]  # type: ignore[arg-type]

    return ask


def test_models_are_looked_into_once(world: World, codes: Callable[..., list[str]]) -> None:
    models = world.directory / "repositories" / "text" / "network" / "1"
    with opened(models) as first:
        assert codes() == []
    with opened(models) as second:
        assert codes() == []
    assert "model.onnx" in first
    assert second == []


def test_findings_are_the_same_from_memory(world: World, codes: Callable[..., list[str]]) -> None:
    (world.directory / "repositories" / "text" / "network" / "1" / "model.onnx").write_bytes(b"not a model")
    assert codes() == codes() == ["CT130"]


def test_a_change_is_looked_at(world: World, codes: Callable[..., list[str]]) -> None:
    assert codes() == []
    (world.directory / "repositories" / "text" / "preprocess" / "1" / "model.py").write_text("class Other: ...")
    assert codes() == ["CT142"]


def test_a_file_that_was_just_written_is_not_trusted(world: World, codes: Callable[..., list[str]]) -> None:
    model = world.directory / "repositories" / "text" / "network" / "1" / "model.onnx"
    assert codes() == []
    os.utime(model)
    with opened(model.parent) as again:
        check(world.repository_again("text"), "single", world.platform, ContainerEnvironment())
    assert "model.onnx" in again


def test_other_questions_have_other_answers(codes: Callable[..., list[str]]) -> None:
    assert codes() == []
    assert codes(environment=ContainerEnvironment(default_model_name="nobody")) == ["CT404"]
    assert codes("multi") == []


def test_a_damaged_memory_is_no_memory(tmp_path: Path, codes: Callable[..., list[str]]) -> None:
    assert codes() == []
    (memory,) = (tmp_path / "cache").rglob("*.json")
    memory.write_text('[{"code": ')
    assert codes() == []
