"""The golden file of messages: what fails, and what `--rewrite-messages` repairs."""

from __future__ import annotations

from pathlib import Path

import pytest

import golden_messages

pytestmark = pytest.mark.slow  # each test starts a pytest of its own

GOLDEN = "tests/messages.golden"
TESTS = """
from types import SimpleNamespace

import pytest


class Found(SimpleNamespace):
    def __str__(self):
        return f"{self.path}: {self.code}: {self.message}"


def found(message, code="CT101"):
    return Found(code=code, path="a", field="b", message=message)


def test_one(messages):
    assert messages.of([found("zebra"), found("apple")]) == [("CT101", "a", "b")] * 2


@pytest.mark.parametrize("number", [1, 2])
def test_each(messages, number):
    messages.of([found("apple"), found(f"{number} pears", "CT100")])


def test_error(messages, tmp_path):
    with messages.raises(ValueError) as caught:
        raise ValueError(f"{tmp_path}/x is empty;\\n\\nuse \\x1b another")
    assert caught.value.args


def test_none(messages):
    assert messages.of([]) == []


def test_other():
    pass
"""
LISTED = """\
# The texts of findings and errors, and below each text the tests that reach it.
# Written by `pytest --rewrite-messages`; see tests/shared/golden_messages.py.

== CT100

> a: CT100: 1 pears
  tests/test_it.py::test_each[1]

> a: CT100: 2 pears
  tests/test_it.py::test_each[2]

== CT101

> a: CT101: apple
  tests/test_it.py::test_each[1]
  tests/test_it.py::test_each[2]
  tests/test_it.py::test_one

> a: CT101: zebra
  tests/test_it.py::test_one

== ValueError

> TMP/x is empty;
>
> use \\x1b another
  tests/test_it.py::test_error
"""
GONE = (
    "messages.golden lists tests that do not exist; run: pytest --rewrite-messages\n  tests/test_it.py::test_each[2]\n"
)


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up file of tests, and its golden file."""
    monkeypatch.setenv("PYTHONPATH", str(Path(golden_messages.__file__).parent))
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib")
    file = pytester.mkdir("tests") / "test_it.py"
    file.write_text(TESTS)
    (file.parent / "conftest.py").write_text('pytest_plugins = ["golden_messages"]\n')
    (pytester.path / GOLDEN).write_text(LISTED)
    return file


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def ended(pytester: pytest.Pytester, *arguments: str) -> tuple[int, str]:
    result = pytester.runpytest_inprocess(*arguments)
    return int(result.ret), result.stdout.str()


@pytest.mark.usefixtures("tests")
def test_what_is_listed_passes(pytester: pytest.Pytester) -> None:
    assert ended(pytester)[0] == 0


def test_a_text_that_is_not_listed_fails(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "messages.of([]) == []", 'messages.of([found("apple")])')
    status, shown = ended(pytester)
    assert status == 1
    assert "FAILED tests/test_it.py::test_none" in shown
    assert "1 failed, 5 passed" in shown
    assert "\n+ CT101: a: CT101: apple\n" in shown
    assert "run: pytest --rewrite-messages tests/test_it.py::test_none\n" in shown


def test_a_reworded_text_fails_and_both_are_shown(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "apple", "an apple")
    status, shown = ended(pytester, "-k", "test_each")
    assert status == 1
    assert "\n- CT101: a: CT101: apple\n+ CT101: a: CT101: an apple\n" in shown
    assert "run: pytest --rewrite-messages 'tests/test_it.py::test_each[1]'\n" in shown


def test_a_text_that_is_not_reached_any_more_fails(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, 'found("zebra"), ', "")
    replace(tests, "* 2", "")
    status, shown = ended(pytester)
    assert status == 1
    assert "\n- CT101: a: CT101: zebra\n" in shown


def test_rewriting_repairs_it_in_the_same_order(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "zebra", "a zebra")
    replace(tests, "apple", "an apple")
    assert ended(pytester, "--rewrite-messages")[0] == 0
    assert (pytester.path / GOLDEN).read_text() == LISTED.replace("zebra", "a zebra").replace("apple", "an apple")
    assert ended(pytester)[0] == 0


def test_tests_that_did_not_run_or_failed_keep_their_texts(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "apple", "an apple")
    replace(tests, "[]) == []", "[found('plum')]) == []")
    status, _ = ended(pytester, "--rewrite-messages", "-k", "test_one or test_none")
    assert status == 1
    listed = (pytester.path / GOLDEN).read_text()
    assert "> a: CT101: apple\n  tests/test_it.py::test_each[1]\n  tests/test_it.py::test_each[2]\n\n" in listed
    assert "> a: CT101: an apple\n  tests/test_it.py::test_one\n\n" in listed
    assert "plum" not in listed


def test_a_test_that_does_not_exist_any_more_fails_the_run(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "[1, 2]", "[1, 3]")
    assert ended(pytester, "tests/test_it.py::test_other")[0] == 0
    status, shown = ended(pytester, "-k", "test_other")
    assert status == 1
    assert GONE in shown


def test_workers_hand_over_what_they_collect_and_reach(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "[1, 2]", "[1, 3]")
    replace(tests, "apple", "an apple")
    status, shown = ended(pytester, "-k", "test_other", "-n", "2")
    assert status == 1
    assert GONE in shown

    assert ended(pytester, "--rewrite-messages", "-n", "2")[0] == 0
    listed = LISTED.replace("apple", "an apple").replace("2 pears", "3 pears").replace("each[2]", "each[3]")
    assert (pytester.path / GOLDEN).read_text() == listed


def test_a_file_of_tests_that_does_not_exist_any_more_fails_the_run(pytester: pytest.Pytester, tests: Path) -> None:
    tests.rename(tests.with_name("test_new.py"))
    status, shown = ended(pytester, "tests/test_new.py::test_other")
    assert status == 1
    assert "  tests/test_it.py::test_error\n" in shown


def test_another_file_can_be_rewritten(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "apple", "an apple")
    assert ended(pytester, "--rewrite-messages", "--messages-file", "new.golden")[0] == 0
    assert (pytester.path / GOLDEN).read_text() == LISTED
    assert (pytester.path / "new.golden").read_text() == LISTED.replace("apple", "an apple")
