"""One ensemble that fails: what it leaves."""

from __future__ import annotations

import hashlib
import io
import json
import time
from pathlib import Path

from build_program.ensemble import build_ensemble
from build_program.log import Log
from build_program.plan import BuildPlan, Ensemble
from build_program.product import Machine
from build_program.stop import Stop

KEY = hashlib.sha256(b"text").hexdigest()


class Watching(io.StringIO):
    """A stream that looks at the workspace when a failure is told."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self.found: list[str] | None = None
        self._workspace = workspace

    def write(self, line: str) -> int:
        if json.loads(line)["event"] == "ensemble failed":
            self.found = [path.name for path in self._workspace.iterdir()]
        return super().write(line)


def test_what_a_failed_ensemble_wrote_is_gone_before_its_reason_is_written(tmp_path: Path) -> None:
    # A full disk would otherwise have no room for the reason, and the next ensemble none at all.
    workspace, out = tmp_path / "workspace", tmp_path / "out"
    workspace.mkdir()
    out.mkdir()
    stream = Watching(workspace)
    machine = Machine(tmp_path, out, workspace, {}, [], [], Log(stream), Stop(time.monotonic() + 60))
    ensemble = Ensemble("text", KEY, "sources/none.tar.gz", {}, (), (), ())

    assert not build_ensemble(ensemble, BuildPlan("cdk-triton-0", 60, {}, (ensemble,), ()), machine)

    assert stream.found == []
    assert json.loads((out / KEY / "failure.json").read_text())["repository"] == "text"
