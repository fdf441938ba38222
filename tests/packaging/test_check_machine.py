"""What `make` says on a machine that lacks something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from golden_messages import Messages


CHECK = Path(__file__).parents[2] / "tools/check_machine.py"


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECK], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_this_machine_has_everything() -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")


def test_without_gcc_the_sentence_names_the_packages(messages: Messages, tmp_path: Path) -> None:
    done = run(PATH=str(tmp_path))
    assert done.returncode == 1
    messages.record("tools/check_machine.py", done.stderr.rstrip("\n"))
