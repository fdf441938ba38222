"""Nothing new is written against the prose rule of CONTRIBUTING.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.prose import LONG, PRONOUN, all_faults, faults_in, faults_of_text, known_faults, long_sentences


@pytest.mark.slow
def test_no_new_sentence_breaks_the_prose_rule() -> None:
    allowed = known_faults()
    new = []
    for path, fault in all_faults():
        if allowed[fault] > 0:
            allowed[fault] -= 1
        else:
            new.append(f"{path}: {fault.kind}: {fault.sentence}")
    assert not new, "\n".join(["write these in plain English (CONTRIBUTING.md, Style of prose):", *new])


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("What fails for want of a right is in CloudTrail.", "begins without a subject"),
        ("Of another account a store is imported to be read.", "begins without a subject"),
        ("Whoever goes off already when an update begins ends it.", "begins without a subject"),
        ("The value 'g5' is no instance type of SageMaker.", "a noun is denied by 'no' or 'none'"),
        ("The store has not the builder that it names.", "'has not' for 'does not have'"),
        ("Rename the model to mend this fault.", "a rare word"),
        ("SageMaker refuses such a request at once.", "'refuse' for 'reject'"),
        ("The rules that need it are left out.", "'leave out' for 'skip' or 'omit'"),
        ("The template says that the bucket exists.", "a thing says, tells, asks or knows"),
    ],
)
def test_each_forbidden_form_is_found(sentence: str, kind: str) -> None:
    assert kind in {fault.kind for fault in faults_of_text(sentence)}


@pytest.mark.parametrize(
    "sentence",
    [
        "What does the server load?",
        "There is no package after this line.",
        "The endpoint is no longer in service.",
        "The build has not finished yet.",
        "Call `refuse(whom)` for each of the models.",
        "```\nWhat is code is not prose.\n```",
        "An engineer says what she needs.",
    ],
)
def test_plain_english_is_accepted(sentence: str) -> None:
    assert list(faults_of_text(sentence)) == []


def test_the_indented_lines_of_a_docstring_are_prose(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text('def f():\n    """Plain.\n\n    What fails for want of a right is in CloudTrail.\n    """\n')

    assert {fault.kind for fault in faults_in(source)} == {"begins without a subject", "a rare word"}


def test_the_entries_of_the_sections_of_a_docstring_are_prose(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        'def f(name, refused):\n    """Plain.\n\n    Args:\n        name: the field\n            that tells it.\n'
        "        refused: plain.\n\n    Returns:\n        Whom it is for, in a sentence.\n\n    Raises:\n"
        '        ConfigurationError: the name is none that AWS takes.\n    """\n'
    )

    assert [fault.sentence for fault in faults_in(source)] == [
        "the field that tells it.",
        "Whom it is for, in a sentence.",
        "Whom it is for, in a sentence.",
        "the name is none that AWS takes.",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "The plan does not say for which GPU it was built.",
        "The server does not know the method.",
        "The stack wants another archive.",
        "A model would only see the last signal.",
        "The library behaves as it promises.",
        "Fn::GetAtt fails because a template asks the region.",
    ],
)
def test_no_thing_says_knows_or_sees(sentence: str) -> None:
    assert "a thing says, knows, wants or sees" in {fault.kind for fault in faults_of_text(sentence)}


@pytest.mark.parametrize(
    "sentence",
    [
        "The caller does not know the name of the endpoint.",
        "The name that the server asked for is missing.",
        "Add --yes if you want it on each variant.",
        "A decoder tells the two kinds apart.",
    ],
)
def test_people_may_say_know_and_see(sentence: str) -> None:
    assert list(faults_of_text(sentence)) == []


def _of_words(count: int) -> str:
    return " ".join(["word"] * count)


@pytest.mark.parametrize(
    "text",
    [
        f"{_of_words(33)}.",
        f"It is short. {_of_words(30)} and, of course, more.",
        f"{_of_words(20)}, one, two and {_of_words(20)}",
    ],
)
def test_a_long_sentence_of_a_message_or_a_docstring_is_found(text: str, tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text(f"def f(name):\n    '''{text}'''\n")

    assert [fault.kind for fault in long_sentences(source)] == [LONG]


@pytest.mark.parametrize(
    "text",
    [
        f"{_of_words(32)}. {_of_words(32)}",
        f"{_of_words(20)}: {_of_words(20)}; {_of_words(20)}",
        f"use one of {', '.join(['NVIDIA A100 40GB'] * 20)} or NVIDIA T4",
        f'{_of_words(20)} ("{_of_words(20)}", a guide)',
        f"Args:\n    first: {_of_words(20)}\n    second: {_of_words(20)}\n",
    ],
)
def test_lists_quotations_and_parts_do_not_count_as_one_sentence(text: str, tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text(f"MESSAGE = {text!r}\n")

    assert list(long_sentences(source)) == []


@pytest.mark.parametrize(("entry", "faults"), [("it does.", [PRONOUN]), ("the policy counts.", [])])
def test_an_entry_of_raises_names_the_thing(entry: str, faults: list[str], tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    text = f"Reject it.\n\nArgs:\n    it: it is.\n\nRaises:\n    ValueError: {entry}\n"
    source.write_text(f"TEXT = {text!r}\n")

    assert [fault.kind for fault in faults_in(source)] == faults
