"""A jsii without the internals that make a synthesis fast gets the same templates."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from tests.security.everything import IRELAND, add_everything

from cdk_triton import TritonArtifactStore, TritonEndpoint, TritonModel
from cdk_triton._jsii import has_internals

if TYPE_CHECKING:
    from tests.hosting.conftest import World

PROGRAM = """
import sys
from pathlib import Path

import jsii

del jsii.kernel

from cdk_triton import _jsii

_jsii.parts_of = lambda value: (value,)
assert not _jsii.has_internals()

from tests.hosting.conftest import World
from tests.hosting.test_without_jsii_internals import synthesise

synthesise(World(Path(sys.argv[1])), sys.argv[2])
"""


def synthesise(world: World, name: str) -> dict[str, Any]:
    """The templates of an app with every resource of the library, a build, a nested stack and a stack's own store."""
    app = world.app(name)
    _, serving = add_everything(world, app)
    alone = cdk.Stack(app, "Alone", env=IRELAND)
    store = TritonArtifactStore(alone, "Store")
    model = TritonModel(
        alone, "Model", repository=world.repository_with_plan("built"), platform=world.platform, store=store
    )
    TritonEndpoint(alone, "Endpoint", model=model)
    nested = cdk.NestedStack(serving, "Nested")
    TritonEndpoint(
        nested,
        "Endpoint",
        model=TritonModel(nested, "Model", repository=world.repository(), platform=world.platform),
    )
    app.synth()
    return {path.name: json.loads(path.read_text()) for path in (world.directory / name).glob("*.template.json")}


def test_the_installed_jsii_has_the_internals() -> None:
    assert has_internals()


def test_the_templates_are_the_same_without_the_internals(world: World) -> None:
    fast = synthesise(world, "fast")
    command = [sys.executable, "-c", PROGRAM, str(world.directory), "plain"]
    done = subprocess.run(command, cwd=world.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    plain = {path.name: json.loads(path.read_text()) for path in (world.directory / "plain").glob("*.template.json")}
    assert len(fast) == 4
    assert plain == fast
