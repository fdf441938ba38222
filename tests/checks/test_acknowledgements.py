"""Warnings that a repository's owner answers with a reason, in the call and in `cdk-triton.toml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import RepositoryError
from cdk_triton.triton import ModelRepository

if TYPE_CHECKING:
    from golden_messages import Messages
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


def test_a_directory_with_nothing_else_holds_no_model(messages: Messages, tmp_path: Path) -> None:
    (tmp_path / "cdk-triton.toml").touch()
    with messages.raises(RepositoryError):
        ModelRepository.from_directory(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[acknowledge]\nCT1112 = "x"', id="unknown code"),
        pytest.param('[acknowledge]\nCT301 = "x"', id="error"),
        pytest.param('[acknowledge]\nCT001 = "x"', id="crash"),
        pytest.param('[acknowledge]\nCT112 = " "', id="empty reason"),
        pytest.param("[acknowledge]\nCT112 = true", id="bool"),
        pytest.param('[aknowledge]\nCT112 = "x"', id="misspelt table"),
        pytest.param('CT112 = "x"', id="code without its table"),
        pytest.param('mode = "multi"', id="unknown key"),
        pytest.param('acknowledge = ["CT112"]', id="wrong type"),
        pytest.param('produced = "bert/../model.plan"', id="produced outside of a model"),
        pytest.param("produced = [1]", id="produced is no text"),
        pytest.param("[acknowledge", id="no TOML"),
        pytest.param(f"produced = {'[' * 500}", id="lists in lists"),
        pytest.param(f"acknowledge.CT112{'.a' * 2000} = 1", id="tables in tables"),
        pytest.param(f"produced = {'1' * 5000}", id="a number of many digits"),
        pytest.param(b"# \xff", id="no UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(messages: Messages, write: Write, text: str | bytes) -> None:
    with messages.raises(RepositoryError) as raised:
        write({"cdk-triton.toml": text})
    assert "\n" not in str(raised.value)


def test_a_directory_of_that_name_is_rejected(messages: Messages, write: Write) -> None:
    with messages.raises(RepositoryError):
        write({"cdk-triton.toml/": ""})


def test_a_pipe_of_that_name_is_rejected(messages: Messages, write: Write) -> None:
    repository = write()
    os.mkfifo(repository.root / "cdk-triton.toml")
    with messages.raises(RepositoryError):
        again(repository, {})


def test_the_argument_is_held_to_the_same(messages: Messages, write: Write) -> None:
    repository = write()
    with messages.raises(RepositoryError):
        again(repository, {"CT301": "x"})
    with messages.raises(RepositoryError) as raised:
        again(repository, {"ct112": "x"})
    assert "'CT112'" in str(raised.value)
