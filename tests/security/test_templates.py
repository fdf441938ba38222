"""The linters on the templates of every example: cfn-lint, and CDK's own validation with errors on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import aws_cdk as cdk
import pytest
from tests.hosting.conftest import ROOT, World
from tests.security.examples import EXAMPLES


class ValidatedWorld(World):
    """Its apps are validated."""

    def app(self, name: str = "cdk.out", *, validated: bool = True, **context: object) -> cdk.App:
        return super().app(name, validated=validated, **context)


@pytest.mark.parametrize("example", EXAMPLES)
def test_cfn_lint_and_cdks_own_validation_find_nothing(tmp_path: Path, example: str) -> None:
    app = EXAMPLES[example](ValidatedWorld(tmp_path))
    app.synth()  # raises where CDK's validation finds an error

    templates = sorted(Path(app.outdir).glob("**/*.template.json"))
    # W3005: CDK makes every Lambda function and state machine depend on the role that it refers to.
    lint = subprocess.run(
        [ROOT / ".venv" / "bin" / "cfn-lint", "--ignore-checks", "W3005", "--", *templates],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    assert len(templates) >= 2
    assert (lint.returncode, lint.stdout) == (0, "")
    assert report["pluginReports"] == []
