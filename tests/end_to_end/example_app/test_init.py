"""The walk through a project of `cdk-triton init`: its test, a deployment on this machine, an answer, a diff."""

from typing import Any

import pytest


@pytest.mark.long
def test_a_new_project_is_tested_deployed_and_answers(shell: Any, local_aws: Any) -> None:
    shell.run("cdk-triton", "init")
    assert "3 passed" in shell.run("pytest", "-q", "-p", "no:cacheprovider")
    with local_aws(shell.directory) as led:
        led.deploy("--all", "--outputs-file", "outputs.json")
        answers = led.run(
            "python",
            "ask.py",
            "The children play in the garden with the neighbours.",
            "Der Himmel ist blau und die Sonne scheint.",
        )
        assert [line.split(" ")[0] for line in answers.splitlines()] == ["English", "German"]
        assert "Number of stacks with differences: 0" in led.cdk("diff")
        led.cdk("destroy", "--all", "--force")
