"""The full text of each finding and error stands once, in `tests/messages.golden`, with the tests that reach it.

A test of behaviour asserts code, path and field. It takes its findings and errors through the fixture `messages`, which
records their texts::

    def test_a_step_without_a_model(messages: Messages, write: Write) -> None:
        assert messages.of(write(CHANGE).check()) == [("CT301", "pipeline/config.pbtxt", "ensemble_scheduling.step[0]")]

    def test_an_unknown_mode(messages: Messages, write: Write) -> None:
        with messages.raises(ConfigurationError):
            write().check("serverless")

A test fails if it reaches other texts than the golden file lists for it. `pytest --rewrite-messages [TESTS]` lists the
texts that these tests reach, and keeps those of all other tests; it works with `--numprocesses`, too. A listed test
that does not exist any more fails each run that collects all tests of its file. A program that must not change the
golden file calls pytest with `--rewrite-messages --messages-file=COPY`.

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

import shlex
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from cdk_triton.triton import Finding

__all__ = ["Messages", "Place", "messages"]

Place = tuple[str, str, str]
"""Where a finding is: code, path, field."""

_Text = tuple[str, str]
"""The code of a rule or the class of an error, and the text."""
_Golden = dict[str, list[_Text]]
"""The texts that each test reaches, by the test's id."""

_Error = TypeVar("_Error", bound=BaseException)

_HEAD = """\
# The texts of findings and errors, and below each text the tests that reach it.
# Written by `pytest --rewrite-messages`; see tests/shared/golden_messages.py.
"""
_KIND, _LINE, _TEST = "== ", ">", "  "
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
        entry = kind, "".join(each if each == "\n" or each.isprintable() else _escaped(each) for each in plain)
        if entry not in self.texts:
            self.texts.append(entry)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


@pytest.fixture
def messages(tmp_path: Path) -> Messages:
    """Record texts and compare them with the golden file when the test ends."""
    return Messages(tmp_path)


def read(path: Path) -> _Golden:
    """The texts that a golden file lists; none if the file is missing."""
    golden: _Golden = {}
    kind, text, complete = "", [""], True
    for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else ():
        if line.startswith(_KIND):
            kind = line.removeprefix(_KIND)
        elif line.startswith(_LINE):
            text = [line[2:]] if complete else [*text, line[2:]]
            complete = False
        elif line.startswith(_TEST):
            golden.setdefault(line.removeprefix(_TEST), []).append((kind, "\n".join(text)))
            complete = True
    return golden


def written(golden: Mapping[str, Sequence[_Text]]) -> str:
    """A golden file. Its order does not depend on the words of a text: by kind, first test, and order in that test."""
    tests: dict[_Text, list[str]] = {}
    for test in sorted(golden):
        for entry in golden[test]:
            tests.setdefault(entry, []).append(test)
    lines, kind = [_HEAD], ""
    for entry in sorted(tests, key=lambda entry: (entry[0], tests[entry][0])):  # stable: the order in that test
        if entry[0] != kind:
            kind = entry[0]
            lines.append(f"{_KIND}{kind}\n")
        text = [f"{_LINE} {line}" if line else _LINE for line in entry[1].split("\n")]
        lines.append("\n".join([*text, *(f"{_TEST}{test}" for test in tests[entry])]) + "\n")
    return "\n".join(lines)


class _Plugin:
    """Compares what tests reach with the golden file, or rewrites the file."""

    def __init__(self, config: pytest.Config) -> None:
        self.path = Path(config.getoption("--messages-file") or config.rootpath / "tests" / "messages.golden")
        self.rewrites = bool(config.getoption("--rewrite-messages"))
        self.golden = read(self.path)
        self.reached: _Golden = {}
        self.gone: set[str] = set()
        self.worker: dict[str, Any] | None = getattr(config, "workeroutput", None)  # of pytest-xdist

    @pytest.hookimpl(tryfirst=True)  # before -k and -m select
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Find the listed tests that do not exist any more."""
        collected = {item.nodeid for item in items}
        files = {_file(test) for test in collected}
        parts = any("::" in argument for argument in config.args) or bool(config.getoption("lf", default=False))
        self.gone = {
            test
            for test in self.golden
            if test not in collected
            and (not (config.rootpath / _file(test)).exists() or (not parts and _file(test) in files))
        }
        if self.worker is not None:
            self.worker[_PROPERTY] = sorted(self.gone)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker of pytest-xdist what it collected."""
        self.gone |= set(getattr(node, "workeroutput", {}).get(_PROPERTY, ()))

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Compare a test that passes."""
        result = yield
        recorder = pyfuncitem.funcargs.get("messages")
        reached = recorder.texts if isinstance(recorder, Messages) else []
        if self.rewrites:
            pyfuncitem.user_properties.append((_PROPERTY, reached))
        elif set(reached) != set(listed := self.golden.get(pyfuncitem.nodeid, [])):
            pytest.fail(_difference(pyfuncitem.nodeid, listed, reached), pytrace=False)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test that passes reached, here or in a worker."""
        for name, texts in report.user_properties:
            if name == _PROPERTY and isinstance(texts, list):
                self.reached[report.nodeid] = [(kind, text) for kind, text in texts]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the golden file, or fail for tests that do not exist any more."""
        if self.worker is not None or session.config.getoption("collectonly"):
            return
        if self.rewrites:
            kept = {test: texts for test, texts in self.golden.items() if test not in self.gone}
            _replace(self.path, written(kept | self.reached))
        elif self.gone and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the tests that do not exist any more."""
        if self.gone and not self.rewrites:
            terminalreporter.section("messages", red=True)
            terminalreporter.line(f"{self.path} lists tests that do not exist; run: pytest --rewrite-messages")
            for test in sorted(self.gone):
                terminalreporter.line(f"{_TEST}{test}")


def _file(test: str) -> str:
    return test.partition("::")[0]


def _difference(test: str, listed: Sequence[_Text], reached: Sequence[_Text]) -> str:
    lines = [f"- {kind}: {text}" for kind, text in listed if (kind, text) not in reached]
    lines += [f"+ {kind}: {text}" for kind, text in reached if (kind, text) not in listed]
    return "\n".join(
        [
            "The test reaches other texts (+) than tests/messages.golden lists for it (-).",
            *lines,
            f"If the texts are meant, run: pytest --rewrite-messages {shlex.quote(test)}",
        ]
    )


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
