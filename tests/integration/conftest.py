"""The real tritonserver as judge of the rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdk_triton.local.triton.server_files import ServerFiles
from cdk_triton.triton import ModelRepository
from judging.server import Judge, null_server_files


@pytest.fixture(scope="session")
def server_files(tmp_path_factory: pytest.TempPathFactory) -> ServerFiles:
    """A real server whose backends do nothing."""
    packages = Path(str(pytest.importorskip("pytriton").__file__)).parents[1]
    return null_server_files(packages, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def judge(server_files: ServerFiles) -> Judge:
    """`judge(directory, models)`: does the server load these models of a repository?"""
    return Judge(server_files)


@pytest.fixture
def refusal(judge: Judge) -> Callable[[ModelRepository], str | None]:
    """Start the server as a single-model container does, and return what it said if it did not load the entry model."""

    def ask(repository: ModelRepository) -> str | None:
        entry = repository.entry_model()
        assert entry is not None
        verdict = judge(repository.root, [entry.name])
        return None if verdict.loaded else verdict.said

    return ask
