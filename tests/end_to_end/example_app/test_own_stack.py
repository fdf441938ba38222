"""Two projects of `cdk-triton init` on two local AWSs at once, and a mistake in the models of one."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

TEXT = "Der Himmel ist blau und die Sonne scheint."


def write_project(shell: Any, directory: Path, name: str) -> None:
    """A project whose ensemble, and its golden request, call German by this name."""
    shell.run("cdk-triton", "init", str(directory))
    for file in ("label/1/model.py", "cdk-triton.toml"):
        path = directory / "models" / file
        path.write_text(path.read_text().replace("German", name))


@pytest.fixture
def two_projects(shell: Any, local_aws: Any) -> Iterator[dict[str, Any]]:
    """The name of German → a shell in the project that calls it so, led to an AWS of its own."""
    with ExitStack() as running:
        shells = {}
        for name in ("Deutsch", "Allemand"):
            directory = shell.directory / name.lower()
            write_project(shell, directory, name)
            shells[name] = running.enter_context(local_aws(directory))
        yield shells


@pytest.mark.long
def test_two_projects_deploy_side_by_side_and_share_nothing(two_projects: dict[str, Any]) -> None:
    for shell in two_projects.values():
        shell.deploy("--all", "--outputs-file", "outputs.json")
    for name, shell in two_projects.items():
        assert shell.run("python", "ask.py", TEXT).startswith(f"{name} (")
    first, second = two_projects.values()
    assert first.variables["AWS_ENDPOINT_URL"] != second.variables["AWS_ENDPOINT_URL"]
    first.cdk("destroy", "--all", "--force")
    assert first.client("sagemaker").list_endpoints()["Endpoints"] == []
    assert len(second.client("sagemaker").list_endpoints()["Endpoints"]) == 1


def test_a_mistake_in_the_configuration_stops_the_synthesis_with_a_sentence(shell: Any) -> None:
    shell.run("cdk-triton", "init")
    config = shell.directory / "models" / "letters" / "config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size", "max_batchsize"))
    printed = shell.cdk("synth", "--quiet", status=1)
    assert "max_batchsize" in printed
    assert "max_batch_size" in printed
    assert "Traceback" not in printed
