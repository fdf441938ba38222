"""The table of trtexec's options, from a small clone that is made up."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tools.generate import GenerateError
from tools.generate._tables import content_sha256, header_faults
from tools.generate.trtexec_flags import SOURCE, table_of

if TYPE_CHECKING:
    from golden_messages import Messages


RELEASES = {
    "21.03": '"--container"',
    "v7.2.1": '"--ancient"',
    "v8.4.1": '"--fp16" "--int8"',
    "v8.5.1": '"--fp16"',
    "v9.1.0": '"--elsewhere"',
    "v10.0.0": '"--fp16" "--int8"\nvoid SafeBuilderOptions::parse(int a)\n{\n  "--safe"\n}\n',
    "v10.9.0": '"--int8" "--hardwareCompatibilityLevel" == "ampere+"',
}
UNKNOWN: dict[str, Any] = {}  # the table could not be read


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    path = tmp_path / "TensorRT"
    (path / SOURCE).parent.mkdir(parents=True)
    git(path, "init", "--quiet")
    for tag, options in RELEASES.items():
        release(path, tag, options)
    return path


def release(clone: Path, tag: str, options: str) -> None:
    (clone / SOURCE).write_text(options)
    git(clone, "add", ".")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", tag)
    git(clone, "tag", tag)


def git(clone: Path, *command: str) -> None:
    subprocess.run(["git", "-C", clone, *command], check=True)


def test_every_option_has_the_runs_of_releases_that_have_it(clone: Path) -> None:
    table = table_of(clone, UNKNOWN)
    assert table["releases"] == ["8.4.1", "8.5.1", "10.0.0", "10.9.0"]
    assert table["flags"] == {
        "--fp16": [["8.4.1", "10.0.0"]],
        "--hardwareCompatibilityLevel": [["10.9.0", "10.9.0"]],
        "--hardwareCompatibilityLevel=ampere+": [["10.9.0", "10.9.0"]],
        "--int8": [["8.4.1", "8.4.1"], ["10.0.0", "10.9.0"]],
    }


def test_the_header_is_complete_and_has_the_hash_of_the_data(clone: Path) -> None:
    table = table_of(clone, UNKNOWN)
    assert list(header_faults(table)) == []
    assert table["content_sha256"] == content_sha256(table)


def test_the_date_stays_until_the_input_changes(clone: Path) -> None:
    first = table_of(clone, UNKNOWN)
    assert first["retrieved"] == datetime.datetime.now(datetime.UTC).date().isoformat()

    dated = {**first, "retrieved": "2026-01-01"}
    assert table_of(clone, dated) == dated

    release(clone, "v11.0.0", '"--int8"')
    later = table_of(clone, dated)
    assert later["retrieved"] == first["retrieved"]
    assert later["input_sha256"] != first["input_sha256"]


def test_a_folder_that_is_not_such_a_clone(messages: Messages, tmp_path: Path) -> None:
    with pytest.raises(GenerateError, match="fatal: not a git repository"):
        table_of(tmp_path, UNKNOWN)
    git(tmp_path, "init", "--quiet")
    with messages.raises(GenerateError):
        table_of(tmp_path, UNKNOWN)
