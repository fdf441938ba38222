"""Pictures fail, or follow, when the names and limits of the library change."""

from __future__ import annotations

import pytest
from tools.generate import GenerateError, architecture_picture, capacity_picture

import cdk_triton


def test_the_picture_of_the_architecture_does_not_name_a_class_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [name for name in cdk_triton.__all__ if name != "TritonMultiModel"]
    monkeypatch.setattr(cdk_triton, "__all__", others)
    with pytest.raises(GenerateError, match=r"names \['TritonMultiModel'\]"):
        architecture_picture.picture()


def test_the_alternative_text_of_the_questions_has_each_question_and_answer() -> None:
    words = capacity_picture.words()
    for question in capacity_picture.QUESTIONS:
        assert f"{question.words} {question.note} Yes: {question.yes.name.lower()}" in words
    assert "over 6 MiB, or slower than 60 seconds" in words
