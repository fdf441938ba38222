"""What `make` says on a machine that lacks something."""

import os
import subprocess
import sys
from pathlib import Path

CHECK = Path(__file__).parents[2] / "tools/check_machine.py"


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECK], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_this_machine_has_everything() -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")


def test_without_gcc_the_sentence_names_the_packages(tmp_path: Path) -> None:
    done = run(PATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == ("cdk-triton cannot be installed here: gcc is missing: apt-get install gcc libc6-dev\n")
