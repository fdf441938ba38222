"""Rules of another distribution are active at synth, and a change of theirs is not hidden by the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.hosting.conftest import World

APP = """
import sys
import aws_cdk as cdk
from cdk_triton import ModelRepository, ServingPlatform, TritonModel

app = cdk.App(outdir=sys.argv[1], builtin_cloud_formation_validation=False)
stack = cdk.Stack(app, "Stack")
platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
TritonModel(stack, "Model", repository=ModelRepository.from_directory(sys.argv[2]), platform=platform)
print(*(message.entry.data for message in app.synth().get_stack_by_name("Stack").messages), sep="\\n")
"""
RULES = """
from cdk_triton.checks import Problem, Severity, rule


@rule("XACME01", Severity.WARNING, "a model has no owner", source="https://wiki.acme.example/triton")
def owner_missing(context):
    for model in context.loaded_models:
        yield Problem(model.config_path, "{message}", "add the parameter owner", "parameters")
"""


def write(file: Path, text: str) -> None:
    """Write a file as if that was long ago: the cache does not trust what was just written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (1_700_000_000, 1_700_000_000))


def test_an_own_rule_is_active_at_synth_and_its_change_too(world: World) -> None:
    repository, site = world.repository("text").root, world.directory / "site"
    for file in repository.rglob("*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    environment = {**os.environ, "PYTHONPATH": str(site), "XDG_CACHE_HOME": str(world.directory / "cache")}
    environment.pop("CDK_TRITON_NO_CACHE", None)

    def warnings() -> str:
        command = [sys.executable, "-c", APP, str(world.directory / "out"), str(repository)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert "owner" not in warnings()

    write(site / "acme_triton-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: acme-triton\nVersion: 1.0\n")
    write(site / "acme_triton-1.0.dist-info" / "entry_points.txt", "[cdk_triton.rules]\nacme = acme_rules\n")
    write(site / "acme_rules.py", RULES.format(message="it has no owner"))
    assert "it has no owner" in warnings()

    write(site / "acme_rules.py", RULES.format(message="its owner is missing"))
    assert "its owner is missing" in warnings()
