"""The walk through docs/publishing.md: an app without an ensemble, to which a tenant is published and called."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.docs.blocks import of_kind

APP, DEPLOY, CALL = (block.text for block in of_kind("end_to_end/example_app/test_published_ensembles.py"))
(PUBLISH,) = (block.text for block in of_kind("end_to_end/test_publisher.py"))


@pytest.mark.long
def test_an_ensemble_that_no_stack_names_is_published_and_answers(shell: Any, local_aws: Any) -> None:
    shell.run("cdk-triton", "init")
    (shell.directory / "app.py").write_text(APP)
    with local_aws(shell.directory) as led:
        led.run("bash", "-euc", DEPLOY.replace("local up --detach", "local status"))
        assert "1 published" in led.run("bash", "-euc", PUBLISH)
        assert led.run(sys.executable, "-c", CALL) == "[[b'English']]\n"
