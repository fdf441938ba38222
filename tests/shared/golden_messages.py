"""The full text of each finding and error is one line of `tests/messages.golden`, sorted by kind and text.

A test of behaviour asserts code, path and field. It takes its findings and errors through the fixture `messages`, which
records their texts::

    def test_a_step_without_a_model(messages: Messages, write: Write) -> None:
        assert messages.of(write(CHANGE).check()) == [("CT301", "pipeline/config.pbtxt", "ensemble_scheduling.step[0]")]

    def test_an_unknown_mode(messages: Messages, write: Write) -> None:
        with messages.raises(ConfigurationError):
            write().check("serverless")

A test fails if it reaches a text that is not in the golden file. A whole run, in which every test with the fixture
passed, fails for a text of the file that no test reached; a run of some tests says nothing about the others. A whole
run is one of `make test`, so a test with the mark `long` cannot use the fixture.

`pytest --rewrite-messages TESTS` adds what these tests reach. Without TESTS, it runs all tests with the fixture and no
others, and also removes what none of them reaches. It works with `--numprocesses`, too. After a rewording it is quicker
to edit the line by hand. A program that must not change the golden file calls pytest with
`--rewrite-messages --messages-file=COPY`.

To convert a test that asserts a text:

1. Write `messages.of(findings) == [(code, path, field), …]` for `[str(finding) for finding in findings] == [text, …]`,
   and `messages.raises(Error)` for `pytest.raises(Error, match=text)`. Other texts, such as a command's output, go
   through `messages.record(kind, text)`. Drop parameters that held nothing but a text; give each case an id.
2. Assert a detail of the text only where the code computes it and the test is about it, such as a suggested name.
3. Run `pytest --rewrite-messages` with the file, and read in the diff that each text is the one that was asserted.
   A text must be the same in each run: the temporary directory becomes `TMP`. Tests with generated input (hypothesis)
   and tests whose texts come from the machine do not use the fixture.
"""

from __future__ import annotations

import difflib
from collections.abc import Generator, Iterable, Iterator, Set
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import Finding

__all__ = ["Messages", "Place", "messages"]

Place = tuple[str, str, str]
"""Where a finding is: code, path, field."""

_Text = tuple[str, str]
"""The code of a rule or the class of an error, and the text in one line."""

_Error = TypeVar("_Error", bound=BaseException)

_HEAD = """\
# The texts of findings and errors, by kind.
# Written by `pytest --rewrite-messages`; see tests/shared/golden_messages.py.
"""
_INDENT = "  "
_PROPERTY = "messages"


class Messages:
    """Records the texts that one test reaches."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        self.texts: list[_Text] = []

    def of(self, findings: Iterable[Finding]) -> list[Place]:
        """Record each finding, and return where it is."""
        places = []
        for finding in findings:
            self.record(finding.code, str(finding))
            places.append((finding.code, finding.path, finding.field))
        return places

    @contextmanager
    def raises(self, error: type[_Error]) -> Iterator[pytest.ExceptionInfo[_Error]]:
        """Expect an error, as `pytest.raises` does, and record it."""
        with pytest.raises(error) as caught:
            yield caught
        self.record(type(caught.value).__name__, str(caught.value))

    def record(self, kind: str, text: str) -> None:
        """Record a text; `kind` orders the golden file."""
        plain = text.replace(self._directory, "TMP")
        self.texts.append((kind, "".join(each if each.isprintable() else _escaped(each) for each in plain)))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


@pytest.fixture
def messages(request: pytest.FixtureRequest, tmp_path: Path) -> Messages:
    """Record texts and look for them in the golden file when the test ends."""
    assert request.node.get_closest_marker("long") is None, "`make test` leaves out a long test, and misses its texts"
    return Messages(tmp_path)


def read(path: Path) -> set[_Text]:
    """The texts of a golden file; none if the file is missing."""
    texts, kind = set(), ""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line.startswith(_INDENT):
            texts.add((kind, line.removeprefix(_INDENT)))
        elif line and not line.startswith("#"):
            kind = line
    return texts


def written(texts: Set[_Text]) -> str:
    """A golden file."""
    parts = [_HEAD]
    for kind, entries in groupby(sorted(texts), key=lambda entry: entry[0]):
        parts.append("".join([f"{kind}\n", *(f"{_INDENT}{text}\n" for _, text in entries)]))
    return "\n".join(parts)


class _Plugin:
    """Compares what tests reach with the golden file, or rewrites the file."""

    def __init__(self, config: pytest.Config) -> None:
        self.path = Path(config.getoption("--messages-file") or config.rootpath / "tests" / "messages.golden")
        self.rewrites = bool(config.getoption("--rewrite-messages"))
        self.golden = read(self.path)
        self.recording: set[str] = set()
        """The ids of the tests with the fixture, before -k and -m select."""
        self.reached: dict[str, list[_Text]] = {}
        """The texts of each of these tests that passed."""
        self.worker: dict[str, Any] | None = getattr(config, "workeroutput", None)  # of pytest-xdist

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Find the tests with the fixture; a whole run that rewrites needs no others."""
        recording = [item for item in items if "messages" in getattr(item, "fixturenames", ())]
        self.recording = {item.nodeid for item in recording}
        if self.worker is not None:
            self.worker[_PROPERTY] = sorted(self.recording)
        if self.rewrites and _is_of_all(config):
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in self.recording])
            items[:] = recording

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker of pytest-xdist what it collected."""
        self.recording |= set(getattr(node, "workeroutput", {}).get(_PROPERTY, ()))

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Compare a test that passes."""
        result = yield
        recorder = pyfuncitem.funcargs.get("messages")
        if isinstance(recorder, Messages):
            new = [entry for entry in recorder.texts if entry not in self.golden]
            if new and not self.rewrites:
                pytest.fail(self._difference(new), pytrace=False)
            pyfuncitem.user_properties.append((_PROPERTY, recorder.texts))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test that passes reached, here or in a worker."""
        for name, texts in report.user_properties:
            if name == _PROPERTY and isinstance(texts, list):
                self.reached[report.nodeid] = [(kind, text) for kind, text in texts]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the golden file, or fail for texts that no test reaches."""
        if self.worker is not None or session.config.getoption("collectonly"):
            return
        if self.rewrites:
            reached = {entry for texts in self.reached.values() for entry in texts}
            _replace(self.path, written((self.golden | reached) - self._unused(session.config)))
        elif self._unused(session.config) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Name the texts that no test reaches."""
        if not self.rewrites and (unused := self._unused(config)):
            terminalreporter.section("messages", red=True)
            terminalreporter.line(f"No test reaches these texts of {self.path}; run: pytest --rewrite-messages")
            for kind, text in sorted(unused):
                terminalreporter.line(f"{_INDENT}{kind}: {text}")

    def _unused(self, config: pytest.Config) -> set[_Text]:
        """The texts that no test reaches; none after a run that was not whole."""
        if not _is_of_all(config) or self.recording - self.reached.keys():
            return set()
        return self.golden - {entry for texts in self.reached.values() for entry in texts}

    def _difference(self, new: Iterable[_Text]) -> str:
        lines = ["The test reaches texts (+) that are not in tests/messages.golden."]
        for kind, text in new:
            similar = difflib.get_close_matches(text, [each for of, each in self.golden if of == kind], n=1)
            lines += [f"- {kind}: {each}" for each in similar]
            lines.append(f"+ {kind}: {text}")
        return "\n".join([*lines, "If they are meant, edit the line (-), or run: pytest --rewrite-messages"])


def _is_of_all(config: pytest.Config) -> bool:
    """Whether pytest collects all tests."""
    tests = config.rootpath / "tests"
    given = any(tests.is_relative_to(config.invocation_params.dir / argument) for argument in config.args)
    less = any(config.getoption(option, default=None) for option in ("lf", "ignore", "ignore_glob"))
    return given and not less and config.getoption("-m") in ("", "not long")


def _replace(path: Path, text: str) -> None:
    """Write a file whole, or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-messages", action="store_true", help="write the texts that tests reach into a file")
    parser.addoption("--messages-file", metavar="FILE", help="that file (with =), by default tests/messages.golden")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Plugin(config), "golden-messages")
