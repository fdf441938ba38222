"""Faults of a repository, each with its sentence; `tests/cli/rehearsal` has those that `validate --load` shows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.gpu_build.rehearsal.rehearsing import CONFIG, MODEL, Rehearse, answered, asked, write_input

from cdk_triton.artifacts.program import write_program
from cdk_triton_local import build_tools

if TYPE_CHECKING:
    from golden_messages import Messages

pytestmark = pytest.mark.server

WIDER = json.dumps({"outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [2.0, 2.0]}]}).encode()
INTEGERS = json.dumps({"outputs": [{"name": "y", "datatype": "INT32", "shape": [1, 1], "data": [2]}]}).encode()
UNKNOWN = json.dumps({"outputs": [{"name": "z", "datatype": "FP32", "shape": [1, 1], "data": [2.0]}]}).encode()


@pytest.mark.parametrize(
    "given",
    [
        {"execute": "y = np.zeros((1, 2), np.float32)"},
        {"execute": "y = np.zeros((1, 1), np.int32)"},
        {"execute": "y = y + 0.5"},
        {"requests": [(asked(), WIDER)]},
        {"requests": [(asked(), INTEGERS)]},
        {"requests": [(asked(), UNKNOWN)]},
        {"requests": [(asked(), b"no answer")]},
        {"requests": [(b"no", answered(2.0))]},
    ],
    ids=[
        "another shape",
        "another type",
        "changed weights",
        "another shape expected",
        "another type expected",
        "an output that the model lacks",
        "a golden answer that is none",
        "a golden request that is none",
    ],
)
def test_an_answer_that_is_not_expected(messages: Messages, rehearsed: Rehearse, given: dict[str, Any]) -> None:
    messages.record("rehearsal", rehearsed(**given)["reason"])


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root can mount a small /dev/shm")
def test_a_full_shared_memory(tmp_path: Path) -> None:
    model = tmp_path / "in/repository/model"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(
        CONFIG.replace("backend:", "instance_group { count: 4 kind: KIND_CPU } backend:")
    )
    (model / "1/model.py").write_text(MODEL.replace("INITIALIZE", "pass").replace("EXECUTE", "pass"))
    document = write_input(tmp_path / "in", [(asked(), answered(2.0))])
    (tmp_path / "in/rehearsal.json").write_text(json.dumps(document))
    (tmp_path / "root").mkdir()
    write_program(tmp_path / "program.pyz")
    program = f"{sys.executable} program.pyz rehearse in out root"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=40m tmpfs /dev/shm && exec {program}"],
        cwd=tmp_path,
        env={
            "PATH": f"{build_tools.tools_directory()}:{os.environ['PATH']}",
            "CDK_TRITON_STAND_IN_PYTHON": sys.executable,
        },
        check=False,
    )
    if not (tmp_path / "out").exists():
        pytest.skip("this machine does not allow mounts")
    assert done.returncode == 1
    reason = json.loads((tmp_path / "out/rehearsal.json").read_text())["reason"]
    needs = (
        "model 'model' does not load: Python models need more than the 40 MiB of /dev/shm: lower shm_default_byte_size"
    )
    assert reason.startswith(needs)
