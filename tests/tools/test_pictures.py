"""Pictures follow the names and limits of the library."""

from __future__ import annotations

from tools.generate import capacity_picture


def test_the_alternative_text_of_the_questions_has_each_question_and_answer() -> None:
    words = capacity_picture.words()
    for question in capacity_picture.QUESTIONS:
        assert f"{question.words} {question.note} Yes: {question.yes.name.lower()}" in words
    assert "over 6 MiB, or slower than 60 seconds" in words
