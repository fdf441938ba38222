"""Rehearsals in this process, on the real server."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.gpu_build.rehearsal.rehearsing import CONFIG, MODEL, Rehearse, answered, asked, run_in

from cdk_triton_local import build_tools


@pytest.fixture
def rehearsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rehearse:
    """Rehearse a repository with one Python model, on the server of this machine."""
    monkeypatch.setenv("PATH", f"{build_tools.tools_directory()}:{os.environ['PATH']}")
    monkeypatch.setenv("CDK_TRITON_STAND_IN_PYTHON", sys.executable)

    def run(
        initialize: str = "pass",
        execute: str = "pass",
        requests: Sequence[tuple[bytes, bytes | None]] = ((asked(), answered(2.0)),),
        config: str = CONFIG,
        **changed: Any,
    ) -> dict[str, Any]:
        model = tmp_path / "in/repository/model"
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(config)
        (model / "1/model.py").write_text(MODEL.replace("INITIALIZE", initialize).replace("EXECUTE", execute))
        return run_in(tmp_path, requests, **changed)

    return run
