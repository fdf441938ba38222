"""The rules CT501 to CT507 and CT510: which model of an archive a multi-model endpoint serves."""

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
    from sample_repositories import Change, Write


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {
                "outer/config.pbtxt": {"model": "ensemble", "given": "INPUT0", "result": "finaloutput"},
                "outer/1/.gitkeep": "",
            },
            [
                ".: error CT501: the loader takes 2 models for ensembles (ensemble, outer), and the endpoint"
                " would serve the one that the file system lists last, without an error; keep one ensemble"
                " per archive; put the steps of a nested ensemble into the outer one",
            ],
            id="CT501 a nested ensemble",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": None, "ensemble/1/.gitkeep": None},
            [
                ".: error CT502: the archive has several directories (bert, preprocess) and no ensemble, and"
                " a multi-model endpoint would serve the one that the file system lists last, without an"
                " error; connect the models by an ensemble, keep one model per archive, or use a single-model"
                " endpoint",
            ],
            id="CT502 several models",
        ),
        pytest.param(
            {"ensemble/config.pbtxt": ('platform: "ensemble"', "platform : 'ensemble'")},
            [
                "ensemble/config.pbtxt platform: error CT503: 'ensemble' is an ensemble, but the loader of a"
                ' multi-model endpoint searches the file for the text platform: "ensemble" and does not find'
                " it, so that it would serve whichever directory the file system lists last; write platform:"
                ' "ensemble", with double quotes and no space before the colon',
            ],
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
            [
                "bert/config.pbtxt: error CT504: 'bert' is no ensemble, but the loader of a multi-model"
                ' endpoint finds the text platform: "ensemble" in the file, in a comment for example, and'
                " would serve this model; reword the comment",
            ],
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
            [
                ".: warning CT505: the archive has 6 directories, and the server would warn that smaller"
                " ensembles are recommended for better memory management: all of it is loaded and unloaded"
                " together; split the ensemble if its parts are wanted separately",
            ],
            id="CT505 six models",
        ),
        pytest.param(
            {"config.pbtxt": 'backend: "python"', "1/model.py": PYTHON_MODEL},
            [
                "bert/config.pbtxt: error CT506: the archive has a config.pbtxt at the top and is therefore"
                " one model, so that the model 'bert' in it would not be found; remove the config.pbtxt at"
                " the top, or move it into a directory of its own",
                "ensemble/config.pbtxt: error CT506: the archive has a config.pbtxt at the top and is"
                " therefore one model, so that the model 'ensemble' in it would not be found; remove the"
                " config.pbtxt at the top, or move it into a directory of its own",
                "preprocess/config.pbtxt: error CT506: the archive has a config.pbtxt at the top and is"
                " therefore one model, so that the model 'preprocess' in it would not be found; remove the"
                " config.pbtxt at the top, or move it into a directory of its own",
            ],
            id="CT506 config.pbtxt at the top beside models",
        ),
    ],
)
def test_loading(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    repository = write(change)
    found = [finding for finding in repository.check("multi") if finding.code != "CT304"]  # that a model is not loaded
    assert [str(finding) for finding in found] == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"config.pbtxt": 'backend: "python"', "1/model.py": PYTHON_MODEL},
            [],
            id="one model at the top",
        ),
        pytest.param(
            {"README.md": ""},
            [
                ".: error CT507: there is neither a config.pbtxt nor a directory in the archive, and the server would"
                " take the archive itself for a model and answer the first invocation with: at least one version must"
                " be available under the version policy of model; put each model into a directory of its own, with its"
                " config.pbtxt and a version directory",
            ],
            id="CT507 files only",
        ),
        pytest.param(
            {"my model/config.pbtxt": 'backend: "python"', "my model/1/model.py": PYTHON_MODEL},
            [],
            id="a blank in the name",
        ),
    ],
)
def test_loading_of_other_layouts(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    repository = write(change, base={})
    assert [str(finding) for finding in repository.check("multi")] == findings


def test_five_models_are_not_many(write: Write) -> None:
    files = {
        f"m{n}/{name}": text for n in range(2) for name, text in (("config.pbtxt", ""), ("1/model.py", PYTHON_MODEL))
    }
    assert "CT505" not in {finding.code for finding in write(files).check("multi")}


@pytest.mark.parametrize(
    ("name", "word"),
    [
        pytest.param("ROOMS", "OOM", id="CT510 a part of a word"),
        pytest.param("MemoryErrors", "MemoryError", id="CT510 an exception"),
    ],
)
def test_names_that_look_like_a_lack_of_memory(write: Write, name: str, word: str) -> None:
    repository = write({f"{name}/config.pbtxt": 'backend: "python"', f"{name}/1/model.py": PYTHON_MODEL}, base={})
    (finding,) = repository.check("multi")
    assert str(finding) == (
        f"{name}: warning CT510: the name {name!r} holds {word!r}; an error whose message quotes it would be answered"
        " with 507 instead of 400, and SageMaker would unload other models and try again; rename the model"
    )
    assert repository.check("single") == ()


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
