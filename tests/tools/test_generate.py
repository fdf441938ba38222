"""What is generated is up to date, and `make generate` writes it safely."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.docs.blocks import of_kind
from tests.recorded import assert_recorded
from tools.generate import ROOT, GenerateError, Generator, generators, recorded_by
from tools.generate.__main__ import main
from tools.generate._writing import MAX_DIFF_LINES, replace, run, short_diff
from tools.generate.readme_transcript import transcript

if TYPE_CHECKING:
    from golden_messages import Messages


GENERATORS = generators()


@pytest.mark.slow
def test_the_transcript_of_the_readme_is_what_a_terminal_shows() -> None:
    (shown,) = of_kind("tools/test_generate.py")
    assert shown.text == transcript()


@pytest.mark.slow
def test_files_that_tests_compare_are_collected_from_a_run_of_these_tests() -> None:
    assert list(GENERATORS["handler_calls"].files()) == ["tests/handlers/calls.json"]
    assert run({"handler_calls": GENERATORS["handler_calls"]}, ROOT, check=True) == 0


@pytest.mark.slow
def test_a_test_that_fails_records_nothing() -> None:
    with pytest.raises(GenerateError, match=r"test_missing\.py"):
        recorded_by("tests/tools/test_missing.py").files()


class TestRecording:
    path = ROOT / "tests" / "handlers" / "calls.json"

    def test_a_difference_fails_with_the_command_that_accepts_it(self) -> None:
        with pytest.raises(AssertionError, match=r"calls\.json (.|\n)*make generate(.|\n)*\+new"):
            assert_recorded(self.path, lambda text: f"{text}new\n")

    def test_two_tests_update_parts_of_one_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RECORD_TO", str(tmp_path))
        before = self.path.read_text()
        for part in ("one", "two"):
            assert_recorded(self.path, lambda text, part=part: f"{text}{part}\n")  # type: ignore[misc]
        assert (tmp_path / "tests/handlers/calls.json").read_text() == f"{before}one\ntwo\n"
        assert self.path.read_text() == before


class TestRun:
    def made_up(self, **files: str) -> dict[str, Generator]:
        return {"made_up": Generator(lambda: {f"docs/{name}.md": text.encode() for name, text in files.items()})}

    def test_a_check_shows_the_difference_and_writes_nothing(
        self, messages: Messages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        generators = self.made_up(a="one\ntwo\n", b="same\n")
        run(generators, tmp_path)
        (tmp_path / "docs/a.md").write_text("one\ntwO\n")
        capsys.readouterr()
        assert run(generators, tmp_path, check=True) == 1
        out = capsys.readouterr().out
        assert out.endswith("--- committed\n+++ generated\n@@ -1,2 +1,2 @@\n one\n-twO\n+two\n")
        messages.record("make generate", out.rstrip("\n"))
        assert (tmp_path / "docs/a.md").read_text() == "one\ntwO\n"

    def test_what_differs_is_repaired_and_nothing_else_is_written(
        self, messages: Messages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        generators = self.made_up(a="one\n", b="same\n")
        assert run(generators, tmp_path) == 0
        (tmp_path / "docs/a.md").unlink()
        times = (tmp_path / "docs/b.md").stat().st_mtime_ns
        capsys.readouterr()
        assert run(generators, tmp_path) == run(generators, tmp_path) == 0
        messages.record("make generate", capsys.readouterr().out.rstrip("\n"))
        assert (tmp_path / "docs/b.md").stat().st_mtime_ns == times
        assert run(generators, tmp_path, check=True) == 0

    def test_a_file_that_is_not_generated_any_more_is_removed(self, tmp_path: Path) -> None:
        generators = {"made_up": Generator(lambda: {"a.json": b"{}"}, obsolete="*.json")}
        for name in ("a.json", "b.json", "c.txt"):
            (tmp_path / name).write_text("{}")
        assert run(generators, tmp_path, check=True) == 1
        assert run(generators, tmp_path) == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "c.txt"]

    def test_a_generator_that_fails_does_not_stop_the_others(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def fail() -> dict[str, bytes]:
            raise GenerateError("there is no table")

        assert run({"broken": Generator(fail), **self.made_up(a="one\n")}, tmp_path) == 1
        assert capsys.readouterr().err == "broken: there is no table\n"
        assert (tmp_path / "docs/a.md").exists()

    def test_an_outside_source_is_read_where_it_is_given(
        self, messages: Messages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        outside = Generator(
            lambda: {"table": b"committed"},
            source="clone",
            from_source=lambda folder: {"table": (folder / "version").read_bytes()},
        )
        run({"table": outside}, tmp_path, sources=tmp_path / "sources")
        assert (tmp_path / "table").read_bytes() == b"committed"
        messages.record("make generate", capsys.readouterr().err.rstrip("\n"))
        (tmp_path / "sources/clone").mkdir(parents=True)
        (tmp_path / "sources/clone/version").write_text("new")
        run({"table": outside}, tmp_path, sources=tmp_path / "sources")
        assert (tmp_path / "table").read_bytes() == b"new"


def test_an_interruption_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    (tmp_path / "page.md").write_text("old")
    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace(tmp_path / "page.md", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]
    assert (tmp_path / "page.md").read_text() == "old"


def test_a_long_difference_is_cut_and_a_binary_one_is_not_shown() -> None:
    lines = short_diff(b"", b"".join(b"%d\n" % number for number in range(100))).splitlines()
    assert (len(lines), lines[-1]) == (MAX_DIFF_LINES + 1, "  ...")
    assert short_diff(b"\xff", None) == "  (not text)\n"


class TestCommand:
    @pytest.mark.slow
    def test_the_program_checks_what_it_is_given(self, messages: Messages) -> None:
        command = [sys.executable, "-m", "tools.generate", "--check", "rules_list"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        messages.record("make generate", done.stdout.rstrip("\n"))

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            (["rules"], "dali_recorded"),  # one of those that exist
            (["--sources", "/none"], "/none"),
        ],
    )
    def test_arguments_that_cannot_be_used(
        self, arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert named in capsys.readouterr().err
