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
# The texts of findings and errors, by kind.
# Written by `pytest --rewrite-messages`; see tests/shared/golden_messages.py.

CT100
  a: CT100: 1 pears
  a: CT100: 2 pears

CT101
  a: CT101: apple
  a: CT101: zebra

ValueError
  TMP/x is empty;\\n\\nuse \\x1b another
"""
ZEBRA = "messages.golden; run: pytest --rewrite-messages\n  CT101: a: CT101: zebra\n"


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
    replace(tests, "messages.of([]) == []", 'messages.of([found("plum")])')
    status, shown = ended(pytester)
    assert status == 1
    assert "FAILED tests/test_it.py::test_none" in shown
    assert "1 failed, 5 passed" in shown
    assert "\n+ CT101: a: CT101: plum\n" in shown


def test_a_reworded_text_fails_and_both_are_shown(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "apple", "an apple")
    status, shown = ended(pytester, "-k", "test_each")
    assert status == 1
    assert "\n- CT101: a: CT101: apple\n+ CT101: a: CT101: an apple\n" in shown


def test_a_text_that_no_test_reaches_fails_a_whole_run(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, 'found("zebra"), ', "")
    replace(tests, "* 2", "")
    for part in (["-k", "test_each"], ["-m", "not slow"], ["tests/test_it.py"], ["--ignore", "tests/test_other.py"]):
        assert ended(pytester, *part)[0] == 0
    for whole in (["tests"], ["-m", "not long"], ["-n", "2"]):
        status, shown = ended(pytester, *whole)
        assert status == 1
        assert ZEBRA in shown


def test_a_run_that_skips_a_test_is_not_whole(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "def test_one(messages):", "@pytest.mark.skip\ndef test_one(messages):")
    assert ended(pytester)[0] == 0


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_rewriting_with_all_tests_adds_and_removes(
    pytester: pytest.Pytester, tests: Path, workers: tuple[str, ...]
) -> None:
    replace(tests, "zebra", "a zebra")
    replace(tests, "[1, 2]", "[1, 3]")
    replace(tests, "pass", "raise ValueError('a test without texts does not run')")
    assert ended(pytester, "--rewrite-messages", *workers)[0] == 0
    assert (pytester.path / GOLDEN).read_text() == LISTED.replace("zebra", "a zebra").replace(
        "  a: CT101: apple\n  a: CT101: a zebra\n", "  a: CT101: a zebra\n  a: CT101: apple\n"
    ).replace("2 pears", "3 pears")


def test_rewriting_with_some_tests_adds(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "zebra", "a zebra")
    replace(tests, "[]) == []", "[found('plum')]) == []")
    status, _ = ended(pytester, "--rewrite-messages", "-k", "test_one or test_none")
    assert status == 1  # a test that fails records nothing
    listed = LISTED.replace("  a: CT101: apple\n", "  a: CT101: a zebra\n  a: CT101: apple\n")
    assert (pytester.path / GOLDEN).read_text() == listed


def test_another_file_can_be_rewritten(pytester: pytest.Pytester, tests: Path) -> None:
    replace(tests, "zebra", "zebras")
    assert ended(pytester, "--rewrite-messages", "--messages-file", "new.golden")[0] == 0
    assert (pytester.path / GOLDEN).read_text() == LISTED
    assert (pytester.path / "new.golden").read_text() == LISTED.replace("zebra", "zebras")
