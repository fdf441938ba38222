"""The rules about names of Python files and models (CT145, CT165, CT178) before NVIDIA's own Python backend.

The backend is that of 24.10 with Python 3.11. It has a shell, and decodes paths as ASCII whatever the locale. The
repositories are checked without a platform, so CT164 is seen as CT165.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cdk_triton.triton import ModelRepository
from judging.python_models import SOURCE, model, named, write
from judging.server import Judge


@pytest.mark.parametrize("file", ["1/queue.py", "queue.py", "1/numpy.py"])
def test_the_standard_library_hides_a_module(tmp_path: Path, python_judge: Judge, file: str) -> None:
    source = f"import {Path(file).stem} as found\nassert not hasattr(found, 'OWN')\n{SOURCE}"
    repository = write(tmp_path / "repository", model(source, **{file: "OWN = 1"}))
    assert [finding.code for finding in repository.check()] == ["CT178"]
    verdict = python_judge(repository.root, ["model"])
    assert verdict.loaded, verdict.said


@pytest.mark.parametrize("file", ["a b.py", "a$b.py", "a{b,c}.py", "a;b.py", "a(b).py", "modèle.py"])
def test_a_path_of_some_releases_is_none_of_this_one(
    tmp_path: Path, python_judge: Judge, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.setattr("judging.server.PATIENCE", 3.0)
    repository = write(tmp_path / "repository", named(file))
    assert [finding.code for finding in repository.check()] == ["CT165"]
    assert not python_judge(repository.root, ["model"]).loaded


@pytest.mark.parametrize("name", ["#model", "{a,b}", "a{1..2}"])
def test_a_name_of_no_release(tmp_path: Path, python_judge: Judge, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("judging.server.PATIENCE", 3.0)
    write(tmp_path / "repository", {})
    (tmp_path / "repository/model").rename(tmp_path / "repository" / name)
    repository = ModelRepository.from_directory(tmp_path / "repository")
    assert [finding.code for finding in repository.check()] == ["CT145"]
    assert not python_judge(repository.root, [name]).loaded
