"""The rules CT501 to CT507: which model of an archive a multi-model endpoint serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.triton.conftest import Change, Write


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
                ".: error CT501: the loader takes 2 models for ensembles (bert, ensemble), and the endpoint"
                " would serve the one that the file system lists last, without an error; keep one ensemble"
                " per archive; put the steps of a nested ensemble into the outer one",
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
                "m0/1/model.py": "",
                "m1/1/model.py": "",
                "m2/1/model.py": "",
            },
            [
                ".: warning CT505: the archive has 6 directories, and the server would warn that smaller"
                " ensembles are recommended for better memory management: all of it is loaded and unloaded"
                " together; split the ensemble if its parts are wanted separately",
                "m0: warning CT304: nothing loads 'm0', because the entry model 'ensemble' does not run it as"
                " a step; a call from another model would fail: Model m0 is not ready; remove it; a model"
                " that is called (BLS) has to be a step of the ensemble, or run on its own endpoint",
                "m1: warning CT304: nothing loads 'm1', because the entry model 'ensemble' does not run it as"
                " a step; a call from another model would fail: Model m1 is not ready; remove it; a model"
                " that is called (BLS) has to be a step of the ensemble, or run on its own endpoint",
                "m2: warning CT304: nothing loads 'm2', because the entry model 'ensemble' does not run it as"
                " a step; a call from another model would fail: Model m2 is not ready; remove it; a model"
                " that is called (BLS) has to be a step of the ensemble, or run on its own endpoint",
            ],
            id="CT505 six models",
        ),
        pytest.param(
            {"config.pbtxt": 'backend: "python"', "1/model.py": ""},
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
    assert [str(finding) for finding in repository.check("multi")] == findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            {"config.pbtxt": 'backend: "python"', "1/model.py": ""},
            [],
            id="one model at the top",
        ),
        pytest.param(
            {"README.md": ""},
            [
                ".: error CT507: there is neither a config.pbtxt nor a directory in the archive, and the"
                " server would answer the first invocation with: model not found in any model repository; put"
                " each model into a directory of its own, with its config.pbtxt and a version directory",
            ],
            id="CT507 files only",
        ),
        pytest.param(
            {"my model/config.pbtxt": 'backend: "python"', "my model/1/model.py": ""},
            [],
            id="a blank in the name",
        ),
    ],
)
def test_loading_of_other_layouts(write: Write, change: Mapping[str, Change], findings: list[str]) -> None:
    repository = write(change, base={})
    assert [str(finding) for finding in repository.check("multi")] == findings


def test_five_models_are_not_many(write: Write) -> None:
    files = {f"m{n}/{name}": text for n in range(2) for name, text in (("config.pbtxt", ""), ("1/model.py", ""))}
    assert "CT505" not in {finding.code for finding in write(files).check("multi")}
