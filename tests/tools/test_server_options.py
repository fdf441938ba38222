"""The table of tritonserver's options, from a small clone that is made up."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tools.generate import GenerateError
from tools.generate._tables import content_sha256, header_faults
from tools.generate.server_options import PARSER, table_of

if TYPE_CHECKING:
    from golden_messages import Messages

UNKNOWN: dict[str, Any] = {}  # the table could not be read

OLD_SCRIPT = "$SAGEMAKER_TRITON_LOG_INFO"
SCRIPT = "$SAGEMAKER_TRITON_LOG_INFO $SAGEMAKER_TRITON_ADDITIONAL_ARGS $SAGEMAKER_SINGLE_MODEL_REPO"
OPTIONS = """
  {OPTION_HELP, "help", Option::ArgNone, "Print usage"});
  {OPTION_LOG, "log-verbose", Option::ArgInt, "Level"});
  {OPTION_PORT, "http-port",
   Option::ArgInt, "Port"});
  {OPTION_MODE, "mode", Option::ArgStr, "Mode"});
  {OPTION_POOL, "pool", "<integer>:<integer>", "Pool"});
  {OPTION_CONFIG, "backend-config", "<string>,<string>=<string>", "Setting"});
  {OPTION_ID, "id", Option::ArgStr, "Name"});
  {OPTION_ID, "name", Option::ArgStr, "The same"});
"""
CASES = """
  case OPTION_HELP:
  case '?':
  case OPTION_LOG:
    a = ParseIntBoolOption(optarg);
    break;
  case OPTION_PORT:
    a = ParseOption<int>(optarg);
    break;
#endif
#ifdef X
  case OPTION_MODE: {
    ::tolower
    if (mode == "on") {} else if (mode == "off") {}
  }
  case OPTION_POOL:
    a = ParsePairOption<int, uint64_t>(optarg, ":");
  case OPTION_CONFIG:
    a.push_back(ParseBackendConfigOption(optarg));
  case OPTION_ID:
    a = optarg;
"""
RELEASES = {
    "r22.12": (OLD_SCRIPT, None),
    "r23.07": (SCRIPT, OPTIONS + CASES),
    "r23.08": (
        SCRIPT,
        OPTIONS + CASES.replace("ParseOption<int>(optarg);", "ParseOption<int>(optarg); if (a < 2 || a > 9)"),
    ),
    "r23.09": (SCRIPT, OPTIONS.replace("OPTION_MODE", "OPTION_NONE").replace('"mode"', '"modes"') + CASES),
    "some-work": (SCRIPT, "{}"),
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    path = tmp_path / "server"
    (path / "docker/sagemaker").mkdir(parents=True)
    (path / "src").mkdir()
    git(path, "init", "--quiet")
    for branch, (script, parser) in RELEASES.items():
        git(path, "checkout", "--quiet", "-b", branch)
        (path / "docker/sagemaker/serve").write_text(script)
        if parser is not None:
            (path / PARSER).write_text(parser)
        git(path, "add", ".")
        git(path, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", branch)
    return path


def git(clone: Path, *command: str) -> None:
    subprocess.run(["git", "-C", clone, *command], check=True)


def rows(*kinds: tuple[str, str, str]) -> list[dict[str, Any]]:
    return [{"kind": kind, "releases": [[first, last]]} for kind, first, last in kinds]


def test_every_option_has_the_way_in_which_each_release_reads_it(clone: Path) -> None:
    table = table_of(clone, UNKNOWN)
    assert table["releases"] == ["22.12", "23.07", "23.08", "23.09"]
    port = rows(("int32", "23.07", "23.07"), ("int32 from 2 to 9", "23.08", "23.08"))
    port[0]["releases"].append(["23.09", "23.09"])
    assert table["options"] == {
        "backend-config": rows(("backend-config", "23.07", "23.09")),
        "help": rows(("flag", "23.07", "23.09")),
        "http-port": port,
        "id": rows(("text", "23.07", "23.09")),
        "log-verbose": rows(("bool|int32", "23.07", "23.09")),
        "mode": rows(("choice:on|off", "23.07", "23.08")),
        "modes": rows(("text", "23.09", "23.09")),
        "name": rows(("text", "23.07", "23.09")),
        "pool": rows(("int32:uint64", "23.07", "23.09")),
    }
    assert table["variables"] == {
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": [["23.07", "23.09"]],
        "SAGEMAKER_TRITON_LOG_INFO": [["22.12", "23.09"]],
    }


def test_the_header_describes_the_table(clone: Path) -> None:
    table = table_of(clone, UNKNOWN)
    assert list(header_faults(table)) == []
    assert table["content_sha256"] == content_sha256(table)
    assert table["retrieved"] == datetime.datetime.now(datetime.UTC).date().isoformat()


def test_the_date_stays_with_the_same_input(clone: Path) -> None:
    table = {**table_of(clone, UNKNOWN), "retrieved": "2026-01-02"}
    assert table_of(clone, table)["retrieved"] == "2026-01-02"


def test_a_folder_that_is_no_clone(messages: Messages, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with messages.raises(GenerateError):
        table_of(tmp_path, UNKNOWN)
