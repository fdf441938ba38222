"""The linters on the templates of an app with every option; those of the example app have tests of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.security.everything import add_everything

if TYPE_CHECKING:
    from tests.hosting.conftest import World


def test_cfn_lint_and_cdks_own_validation_find_nothing(world: World) -> None:
    app = world.app(validated=True)
    add_everything(world, app)
    app.synth()  # raises where CDK's validation finds an error

    templates = sorted(Path(app.outdir).glob("*.template.json"))
    # W3005: CDK makes every Lambda function and state machine depend on the role that it refers to.
    lint = subprocess.run(
        [world.root / ".venv" / "bin" / "cfn-lint", "--ignore-checks", "W3005", "--", *templates],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    assert len(templates) == 2
    assert (lint.returncode, lint.stdout) == (0, "")
    assert report["pluginReports"] == []
