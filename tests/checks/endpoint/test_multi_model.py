"""The rules CT501 to CT507: which model of an archive a multi-model endpoint serves."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton.artifacts import write_archive
from cdk_triton.triton import ModelRepository
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {
                "outer/config.pbtxt": {"model": "ensemble", "given": "INPUT0", "result": "finaloutput"},
                "outer/1/.gitkeep": "",
            },
            [("CT501", ".", "")],
            id="CT501 a nested ensemble",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None},
            [("CT502", ".", "")],
            id="CT502 several models",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ('platform: "ensemble"', "platform : 'ensemble'")},
            [("CT503", "ensemble/config.pbtxt", "platform")],
            id="CT503 another spelling",
        ),
        pytest.param(
            {
                "ensemble/config.pbtxt": ('platform: "ensemble"', "platform : 'ensemble'"),
                "outer/config.pbtxt": {"model": "ensemble", "given": "INPUT0", "result": "finaloutput"},
                "outer/1/.gitkeep": "",
            },
            [],
            id="another spelling beside a recognised ensemble",
        ),
        pytest.param(
            {"bert/config.pbtxt": ('name: "bert"', 'name: "bert" # unlike platform: "ensemble"')},
            [("CT504", "bert/config.pbtxt", "")],
            id="CT504 a comment",
        ),
        pytest.param(
            {
                "m0/config.pbtxt": 'backend: "python"',
                "m1/config.pbtxt": 'backend: "python"',
                "m2/config.pbtxt": 'backend: "python"',
                "m0/1/model.py": PYTHON_MODEL,
                "m1/1/model.py": PYTHON_MODEL,
                "m2/1/model.py": PYTHON_MODEL,
            },
            [("CT505", ".", "")],
            id="CT505 six models",
        ),
        pytest.param(
            {"config.pbtxt": 'backend: "python"', "1/model.py": PYTHON_MODEL},
            [
                ("CT506", "bert/config.pbtxt", ""),
                ("CT506", "ensemble/config.pbtxt", ""),
                ("CT506", "preprocess/config.pbtxt", ""),
            ],
            id="CT506 config.pbtxt at the top beside models",
        ),
    ],
)
def test_loading(messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]) -> None:
    repository = write(change)
    found = [finding for finding in repository.check("multi") if finding.code != "CT304"]  # that a model is not loaded
    assert messages.of(found) == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"config.pbtxt": 'backend: "python"', "1/model.py": PYTHON_MODEL},
            [],
            id="one model at the top",
        ),
        pytest.param({"README.md": ""}, [("CT507", ".", "")], id="CT507 files only"),
        pytest.param(
            {"my model/config.pbtxt": 'backend: "python"', "my model/1/model.py": PYTHON_MODEL},
            [],
            id="a blank in the name",
        ),
    ],
)
def test_loading_of_other_layouts(
    messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]
) -> None:
    repository = write(change, base={})
    assert messages.of(repository.check("multi")) == findings


def test_five_models_are_not_many(write: Write) -> None:
    files = {
        f"m{n}/{name}": text for n in range(2) for name, text in (("config.pbtxt", ""), ("1/model.py", PYTHON_MODEL))
    }
    assert "CT505" not in {finding.code for finding in write(files).check("multi")}


def test_a_linked_directory_is_no_fault(tmp_path: Path, write: Write, sound: Mapping[str, str]) -> None:
    """The loader ignores a link to a directory; an archive has the directory itself."""
    repository = write({"preprocess/config.pbtxt": None, "preprocess/1/model.py": None})
    shared = repository.root / "ensemble" / "1" / "shared"
    (shared / "1").mkdir(parents=True)
    (shared / "config.pbtxt").write_text(sound["preprocess/config.pbtxt"])
    (shared / "1" / "model.py").write_text(PYTHON_MODEL)
    (repository.root / "preprocess").symlink_to(shared)
    repository = ModelRepository.from_directory(repository.root)
    assert repository.check("multi") == ()
    write_archive(repository, tmp_path / "model.tar.gz")
    with tarfile.open(tmp_path / "model.tar.gz") as archive:
        assert "preprocess/1/model.py" in archive.getnames()
        assert not [member.name for member in archive if member.issym() or member.islnk()]
