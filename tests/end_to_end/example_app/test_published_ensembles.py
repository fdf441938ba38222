"""The walk through docs/publishing.md: an app without an ensemble, to which a tenant is published and called."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from tests.docs.blocks import ROOT, blocks_of, of_kind

APP, DEPLOY, CALL = (block.text for block in of_kind("end_to_end/example_app/test_published_ensembles.py"))
(PUBLISH,) = (block.text for block in of_kind("end_to_end/test_publisher.py"))
STEPS, NETWORK, ENSEMBLE = (
    block.text
    for block in blocks_of(ROOT / "docs" / "getting_started.md")
    if block.text.startswith(("mkdir -p models", "cat > models/fraud")) or "onnx.save" in block.text
)


@pytest.mark.long
def test_an_ensemble_that_no_stack_names_is_published_and_answers(shell: Any, local_aws: Any) -> None:
    payments, published = shell.directory / "payments", shell.directory / "published"
    for each in (payments, published):
        each.mkdir()
    of_tutorial = replace(shell, directory=payments)
    of_tutorial.run("bash", "-euc", STEPS + ENSEMBLE)
    of_tutorial.run(sys.executable, "-c", NETWORK)
    (published / "app.py").write_text(APP)

    *files, deploy = DEPLOY.splitlines()
    replace(shell, directory=published).run("bash", "-euc", "\n".join(files))
    with local_aws(published) as led:
        deploy = deploy.replace("local up --detach", "local status")
        led.run("bash", "-euc", f"{deploy} --require-approval never")
        assert "1 published" in led.run("bash", "-euc", PUBLISH)
        assert led.run(sys.executable, "-c", CALL) == "[[b'fine']]\n"
