"""Triton's own QA configurations before the checks and before the real server: both give the verdict and the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.qa_configurations import CASES, WITHOUT_GPU, Case
from judging.scheduling import write
from judging.server import Judge


def test_the_cases_are_as_many_as_those_of_triton() -> None:
    assert len(CASES) == 94
    assert sum(case.words != "" for case in CASES.values()) == 90


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_checks_give_verdict_and_cause(tmp_path: Path, case: Case) -> None:
    repository = write(tmp_path, case.files)
    errors = [each.message for each in repository.check(default_model="subject") if each.severity == "error"]
    assert (errors == []) == (case.words == "")
    assert not case.words or any(case.words in message for message in errors)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_server_gives_verdict_and_cause(tmp_path: Path, judge: Judge, name: str) -> None:
    case = CASES[name]
    verdict = judge(write(tmp_path, case.files).root, ["subject"])
    assert verdict.loaded == (case.words == "")
    assert name in WITHOUT_GPU or case.words in verdict.said
