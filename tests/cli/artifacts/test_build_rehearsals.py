"""`cdk-triton artifacts build` with golden requests: what it uploads, and what it counts as passed."""

from __future__ import annotations

import hashlib
import json
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.artifacts.conftest import ASSETS, PSEUDO

from cdk_triton.cli.artifacts import running
from cdk_triton.cli.artifacts.assembly import read_stack
from cdk_triton.cli.artifacts.store import open_store
from cdk_triton.protocol import layout
from cdk_triton.protocol.plan import BuildInput, BuildMachine, PlannedRehearsal, StackPlan
from cdk_triton.protocol.rehearsal import RehearsalPass, RehearsedArchive

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import Synthesise, World

    from golden_messages import Messages

KEY = hashlib.sha256(b"one").hexdigest()


class Handler:
    """The store's function: it asks for a second poll."""

    def __init__(self) -> None:
        self.answers = [{"IsComplete": False, "Seconds": 2}, {"IsComplete": True}]

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        return {"Payload": BytesIO(json.dumps(self.answers.pop(0)).encode())}


@pytest.mark.parametrize(
    ("is_stale", "uploaded", "passed"), [(True, {"triton-golden.zip", "triton-program.pyz"}, 0), (False, set(), 1)]
)
def test_a_pass_counts_for_its_own_archive_only(
    messages: Messages,
    world: World,
    synthesise: Synthesise,
    monkeypatch: pytest.MonkeyPatch,
    is_stale: bool,
    uploaded: set[str],
    passed: int,
) -> None:
    app = synthesise(b"one")
    rehearse(app)
    etag = world.put(layout.archive_key("text", KEY), b"one", {"artifact-key": KEY})
    world.put(layout.manifest_key("text", KEY), b"{}")
    archive = RehearsedArchive(3, "of the archive before" if is_stale else etag, KEY)
    found = RehearsalPass("text", KEY, "r", "tritonserver:25.09", archive, KEY, {}, {})
    world.put(layout.pass_key("text", KEY, "r"), found.text())
    store, handler = open_store(world.stack), Handler()
    client = store.aws.client
    monkeypatch.setattr(store.aws, "client", lambda service: handler if service == "lambda" else client(service))
    lines: list[str] = []

    running.run(store, read_stack(app, "Models", PSEUDO), "123456789012", wait=lambda seconds: None, say=lines.append)

    keys = {each["Key"] for each in world.s3.list_objects_v2(Bucket=ASSETS).get("Contents", [])}
    assert keys & {"triton-golden.zip", "triton-program.pyz", f"triton-{KEY}.gz"} == uploaded
    assert f"{passed} of 1 rehearsals have passed" in lines[-1]
    messages.record("cdk-triton artifacts", lines[-1])


def rehearse(app: Path) -> None:
    """Add a rehearsal to the plan of the stack, and its assets to those of the stack."""
    (file,) = app.glob("asset.triton-plan-*")
    golden = (BuildInput(None, "triton-golden.zip", "rehearsals/r.zip"),)
    machine = BuildMachine("codebuild", 120, {}, BuildInput(None, "triton-program.pyz", "program.pyz"))
    rehearsal = PlannedRehearsal("text", KEY, "r", "tritonserver:25.09", golden, KEY, {})
    plan = StackPlan.parse(file.read_bytes())
    file.write_bytes(StackPlan(plan.commits, builder=machine, rehearsals=(rehearsal,)).text())
    manifest = app / "Models.assets.json"
    files = json.loads(manifest.read_text())["files"]
    (place,) = next(iter(files.values()))["destinations"].items()
    for name in ("triton-golden.zip", "triton-program.pyz"):
        (app / f"asset.{name}").write_bytes(name.encode())
        source = {"path": f"asset.{name}", "packaging": "file"}
        files[name] = {"source": source, "destinations": {place[0]: {**place[1], "objectKey": name}}}
    manifest.write_text(json.dumps({"files": files}))
