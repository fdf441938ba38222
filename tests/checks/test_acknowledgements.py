"""Warnings that a repository's owner answers with a reason, in the call and in `cdk-triton.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import RepositoryError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from sample_repositories import Write

WARNED = {"bert/02/model.onnx": "older weights"}  # CT112


def codes(repository: ModelRepository) -> tuple[list[str], list[str]]:
    """What is found and what is acknowledged."""
    report = repository.report()
    assert repository.check() == report.findings
    return [finding.code for finding in report.findings], [finding.code for finding in report.acknowledged]


def again(repository: ModelRepository, acknowledge: Mapping[str, str]) -> ModelRepository:
    return ModelRepository.from_directory(repository.root, acknowledge=acknowledge)


def test_a_warning_is_found_until_it_is_acknowledged(write: Write) -> None:
    repository = write(WARNED)
    assert codes(repository) == (["CT112"], [])
    assert codes(again(repository, {"CT112": "an old version that nobody serves"})) == ([], ["CT112"])
    assert codes(again(repository, {"CT111": "about something else"})) == (["CT112"], [])


def test_the_file_beside_the_models_says_the_same_for_everybody(write: Write) -> None:
    repository = write({**WARNED, "cdk-triton.toml": '[acknowledge]\nCT112 = "kept for the record"\n'})
    assert codes(repository) == ([], ["CT112"])
    assert repository.acknowledgements == {"CT112": "kept for the record"}


def test_both_are_merged_and_the_argument_wins(write: Write) -> None:
    repository = write({"cdk-triton.toml": '[acknowledge]\nCT111 = "file"\nCT112 = "file"\n'})
    acknowledged = again(repository, {"CT112": "argument", "CT114": "argument"}).acknowledgements
    assert acknowledged == {"CT111": "file", "CT112": "argument", "CT114": "argument"}


def test_the_file_is_no_part_of_the_repository(write: Write) -> None:
    plain = {"cdk-triton.toml": "", "bert/1/cdk-triton.toml": "a file of the model's own"}
    paths = [str(file.path) for file in write(plain).files]
    assert "cdk-triton.toml" not in paths
    assert "bert/1/cdk-triton.toml" in paths


def test_a_repository_that_is_one_model_has_one_too(tmp_path: Path) -> None:
    files = {"config.pbtxt": 'backend: "python"', "1/model.py": "class TritonPythonModel: ...", "cdk-triton.toml": ""}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (model,) = ModelRepository.from_directory(tmp_path).models
    assert [str(file.path) for file in model.files] == ["1/model.py", "config.pbtxt"]


def test_a_directory_with_nothing_else_holds_no_model(tmp_path: Path) -> None:
    (tmp_path / "cdk-triton.toml").touch()
    with pytest.raises(RepositoryError, match="holds no file"):
        ModelRepository.from_directory(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            '[acknowledge]\nCT1112 = "x"',
            "{file} acknowledges 'CT1112', but there is no rule 'CT1112' (did you mean 'CT112' or 'CT111'?); "
            "`cdk-triton explain` lists all of them",
            id="unknown code",
        ),
        pytest.param(
            '[acknowledge]\nCT301 = "x"',
            "{file} acknowledges CT301 (an ensemble runs a model that the repository does not have), which is an "
            "error: the server really refuses it, and it cannot be acknowledged; fix it and remove the "
            "acknowledgement",
            id="error",
        ),
        pytest.param(
            '[acknowledge]\nCT001 = "x"', "{file} acknowledges CT001 (a rule of cdk-triton fails)", id="crash"
        ),
        pytest.param(
            '[acknowledge]\nCT112 = " "',
            "{file} acknowledges CT112 with ' ', which is no reason; say in a few words why the warning is right as it "
            'is, as CT112 = "…"',
            id="empty reason",
        ),
        pytest.param(
            "[acknowledge]\nCT112 = true", "{file} acknowledges CT112 with True, which is no reason", id="bool"
        ),
        pytest.param(
            '[aknowledge]\nCT112 = "x"',
            "{file} has an unknown key 'aknowledge' (did you mean 'acknowledge'?); write the table [acknowledge] "
            "or the list produced",
            id="misspelt table",
        ),
        pytest.param(
            'CT112 = "x"', "{file} has CT112 outside a table; write it below [acknowledge]", id="code without its table"
        ),
        pytest.param('mode = "multi"', "{file} has an unknown key 'mode'; write", id="unknown key"),
        pytest.param(
            'acknowledge = ["CT112"]',
            "{file} has acknowledge = ['CT112'], which is no table; write [acknowledge] and below it CODE = \"reason\"",
            id="wrong type",
        ),
        pytest.param(
            'produced = "bert/../model.plan"',
            "{file} has 'bert/../model.plan' in produced, which is no path of a file within a model; write produced = "
            '["MODEL/1/FILE"]',
            id="produced outside of a model",
        ),
        pytest.param("produced = [1]", "{file} has 1 in produced, which is no path", id="produced is no text"),
        pytest.param("[acknowledge", "{file} is not TOML: ", id="no TOML"),
        pytest.param(b"# \xff", "{file} is not UTF-8 at byte 2; save it as UTF-8", id="no UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(write: Write, text: str | bytes, sentence: str) -> None:
    with pytest.raises(RepositoryError) as raised:
        write({"cdk-triton.toml": text})
    message = str(raised.value)
    where = re.match(r"\S+/cdk-triton\.toml", message)
    assert where is not None
    assert message.startswith(sentence.format(file=where.group()))
    assert "\n" not in message


def test_a_directory_of_that_name_is_refused(write: Write) -> None:
    with pytest.raises(RepositoryError, match=r"cdk-triton\.toml cannot be read: Is a directory; make it a readable"):
        write({"cdk-triton.toml/": ""})


def test_the_argument_is_held_to_the_same(write: Write) -> None:
    repository = write()
    with pytest.raises(RepositoryError, match=r"^acknowledge= acknowledges CT301 .*, which is an error"):
        again(repository, {"CT301": "x"})
    with pytest.raises(RepositoryError, match=r"^acknowledge= acknowledges 'ct112', but .*did you mean 'CT112'"):
        again(repository, {"ct112": "x"})
