"""`cdk-triton artifacts build`: the plan of a stack, run before the stack is deployed."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from tests.cli.artifacts.conftest import ASSETS, PSEUDO

from artifacts import failure
from cdk_triton.cli.artifacts import publishing, running
from cdk_triton.cli.artifacts.assembly import read_stack
from cdk_triton.cli.artifacts.intrinsics import resolve
from cdk_triton.cli.artifacts.store import open_store
from cdk_triton.errors import ConfigurationError
from cdk_triton.protocol import layout
from cdk_triton.protocol.plan import (
    BuildInput,
    BuildMachine,
    EnsembleBuild,
    PlannedRehearsal,
    ServedArchives,
    ServedCopy,
    StackPlan,
)

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import Synthesise, World

    from golden_messages import Messages


@pytest.mark.slow
def test_what_the_stack_needs_is_in_the_store_afterwards(
    messages: Messages, run: Any, world: World, synthesise: Synthesise
) -> None:
    app = synthesise(b"one archive", b"another archive")

    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", app)

    assert outcome.status == 0
    messages.record("cdk-triton artifacts", outcome.out.rstrip("\n"))
    keys = [hashlib.sha256(content).hexdigest() for content in (b"one archive", b"another archive")]
    assert world.stored() == {f"artifacts/text/{k}/{f}" for k in keys for f in ("manifest.json", "model.tar.gz")}
    assert all(f"triton-{key}.gz" in outcome.err for key in keys)


@pytest.mark.slow
def test_a_second_time_uploads_and_writes_nothing(run: Any, world: World, synthesise: Synthesise) -> None:
    app = synthesise(b"one archive")
    run("artifacts", "build", "Models", "--store", world.stack, "--app", app)
    before = world.s3.list_object_versions(Bucket=world.bucket)["Versions"]

    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", app)

    assert (outcome.status, outcome.err) == (0, "")
    assert world.s3.list_object_versions(Bucket=world.bucket)["Versions"] == before


def test_what_is_in_the_store_need_not_be_uploaded(run: Any, world: World, synthesise: Synthesise) -> None:
    app = synthesise(b"one archive")
    run("artifacts", "build", "Models", "--store", world.stack, "--app", app)
    key = hashlib.sha256(b"one archive").hexdigest()
    world.s3.delete_object(Bucket=ASSETS, Key=f"triton-{key}.gz")
    (app / f"asset.triton-{key}.gz").unlink()

    assert run("artifacts", "build", "Models", "--store", world.stack, "--app", app).status == 0


def test_what_is_in_the_store_under_another_name_is_uploaded(run: Any, world: World, synthesise: Synthesise) -> None:
    """Two directories of the same content have one key, and an archive each."""
    run("artifacts", "build", "Models", "--store", world.stack, "--app", synthesise(b"one archive"))
    key = hashlib.sha256(b"one archive").hexdigest()
    world.s3.delete_object(Bucket=ASSETS, Key=f"triton-{key}.gz")
    app = synthesise(b"one archive", fleet=ServedArchives("fleet", "index.json", ()))
    (file,) = app.glob("asset.triton-plan-*")
    plan = StackPlan.parse(file.read_bytes())
    (commit,) = plan.commits
    archive, manifest = layout.archive_key("copy", key), layout.manifest_key("copy", key)
    copy = replace(commit, repository="copy", archive=archive, manifest=manifest)
    file.write_bytes(replace(plan, commits=(commit, copy)).text())

    assert run("artifacts", "build", "Models", "--store", world.stack, "--app", app).status == 0

    files = ("manifest.json", "model.tar.gz")
    assert world.stored() == {f"artifacts/{name}/{key}/{file}" for name in ("copy", "text") for file in files}


def test_a_fleet_is_left_to_its_deployment(run: Any, world: World, synthesise: Synthesise) -> None:
    """Its index says what is deployed: listing what never was would push out what is."""
    key = hashlib.sha256(b"one archive").hexdigest()
    copy = ServedCopy("text", key, layout.archive_key("text", key), "fleets/fleet/25.09-a10g/text-0123456789.tar.gz")
    fleet = ServedArchives("fleet", layout.index_key("fleet", "25.09-a10g"), (copy,))

    outcome = run(
        "artifacts", "build", "Models", "--store", world.stack, "--app", synthesise(b"one archive", fleet=fleet)
    )

    assert outcome.status == 0
    assert {each.split("/")[0] for each in world.stored()} == {"artifacts"}


def test_a_large_file_is_uploaded_in_parts(
    run: Any, world: World, synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytes(range(256)) * 20 * 1024 * 3  # three parts of 5 MiB, which S3 takes at least
    monkeypatch.setattr(publishing, "_PART_BYTES", 5 << 20)

    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", synthesise(content))

    assert outcome.status == 0
    key = f"triton-{hashlib.sha256(content).hexdigest()}.gz"
    head = world.s3.head_object(Bucket=ASSETS, Key=key)
    assert (head["ContentLength"], head["ETag"][-3:]) == (len(content), '-3"')
    assert world.s3.get_object(Bucket=ASSETS, Key=key)["Body"].read() == content


def test_what_the_handler_says_is_the_sentence(
    messages: Messages, run: Any, world: World, synthesise: Synthesise
) -> None:
    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", synthesise(b""))
    assert (outcome.status, outcome.out) == (1, "")
    last = outcome.err.splitlines()[-1]
    assert last.startswith("error: ")
    messages.record("cdk-triton artifacts", last)


@pytest.mark.parametrize("place", ["another stack", "the stack itself"])
def test_a_store_that_the_stack_does_not_use_is_a_usage_error(
    messages: Messages, run: Any, world: World, synthesise: Synthesise, place: str
) -> None:
    app = synthesise(b"one archive")
    manifest = json.loads((app / "manifest.json").read_text())
    if place == "another stack":
        manifest["artifacts"]["Home"] = {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": "Home.template.json"},
        }
        bucket = {"Type": "AWS::S3::Bucket", "Metadata": {layout.USED_BY_METADATA: ["Models"]}}
        (app / "Home.template.json").write_text(json.dumps({"Resources": {"Bucket": bucket}}))
    else:
        models = json.loads((app / "Models.template.json").read_text())
        handler = {"Type": "AWS::Lambda::Function", "Properties": {"Handler": "artifacts.is_complete"}}
        models["Resources"]["Handler"] = handler
        (app / "Models.template.json").write_text(json.dumps(models))
    (app / "manifest.json").write_text(json.dumps(manifest))

    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", app)

    assert outcome.status == 2
    messages.record("cdk-triton artifacts", outcome.said)
    assert world.stored() == set()


@pytest.mark.parametrize("stack", ["Nothing", "models"])
def test_an_unknown_stack_is_a_usage_error(run: Any, world: World, synthesise: Synthesise, stack: str) -> None:
    outcome = run("artifacts", "build", stack, "--store", world.stack, "--app", synthesise(b"one"))
    assert (outcome.status, outcome.out) == (2, "")
    assert repr(stack) in outcome.said  # the path of the assembly is folded
    assert "Models" in outcome.said


def test_a_directory_that_is_no_cloud_assembly_is_a_usage_error(run: Any, world: World, tmp_path: Path) -> None:
    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", tmp_path)
    assert outcome.status == 2
    assert "`cdk synth`" in outcome.said  # the path is folded


@pytest.mark.slow
def test_a_stack_for_another_account_is_a_usage_error(
    messages: Messages, run: Any, world: World, synthesise: Synthesise
) -> None:
    app = synthesise(b"one", environment="aws://999999999999/us-east-1")
    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", app)
    assert outcome.status == 2
    messages.record("cdk-triton artifacts", outcome.said)


def test_a_file_that_the_assembly_lost_is_a_sentence(
    messages: Messages, run: Any, world: World, synthesise: Synthesise
) -> None:
    app = synthesise(b"one")
    next(app.glob("asset.*.gz")).unlink()
    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", app)
    assert (outcome.status, outcome.out) == (1, "")
    messages.record("cdk-triton artifacts", outcome.err.splitlines()[-1].replace(str(app), "APP"))


@pytest.mark.parametrize("content", [None, b"{"], ids=["missing", "damaged"])
def test_a_plan_that_cannot_be_read_is_a_sentence(
    run: Any, world: World, synthesise: Synthesise, content: bytes | None
) -> None:
    app = synthesise(b"one")
    (plan,) = app.glob("**/*triton-plan-*.json")
    plan.unlink() if content is None else plan.write_bytes(content)
    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", app)
    assert (outcome.status, outcome.out) == (2, "")
    assert "run `cdk synth` again" in outcome.said


def test_a_plan_of_a_newer_version_asks_for_that_version(run: Any, world: World, synthesise: Synthesise) -> None:
    app = synthesise(b"one")
    (plan,) = app.glob("**/*triton-plan-*.json")
    plan.write_bytes(b'{"schema": 3}')
    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", app)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.said.endswith(": update cdk-triton")


def test_ctrl_c_says_that_the_build_goes_on(
    messages: Messages, run: Any, world: World, synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(running, "_pause", interrupt)

    outcome = run("artifacts", "build", "Models", "--store", world.stack, "--app", synthesise(b"one"))

    assert (outcome.status, outcome.out) == (130, "")
    messages.record("cdk-triton artifacts", outcome.err.splitlines()[-1])


def test_the_handler_never_loses_patience_and_hears_of_rejections() -> None:
    assert failure.PROPAGATION_SECONDS < running.WAITED_SECONDS < failure.PATIENCE_SECONDS


class SlowHandler:
    """A double of the store's function, which needs as many polls as it gives answers; it keeps the events.

    A text among the answers is the code of an error with which Lambda does not run the function.
    """

    def __init__(self, *answers: dict[str, Any] | str) -> None:
        self._answers = list(answers)
        self.events: list[dict[str, Any]] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            raise ClientError({"Error": {"Code": answer, "Message": "not now"}}, "Invoke")
        self.events.append(json.loads(Payload))
        return {"Payload": Body(json.dumps(answer).encode())}


class Body:
    def __init__(self, content: bytes) -> None:
        self.read = lambda: content


def test_it_asks_until_it_is_done_as_the_provider_does(
    messages: Messages, world: World, synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(world.stack)
    polls = [{"IsComplete": False, "Seconds": seconds} for seconds in (2, 30)]
    handler = SlowHandler(*polls, {"IsComplete": True})
    client = store.aws.client
    monkeypatch.setattr(store.aws, "client", lambda service: handler if service == "lambda" else client(service))
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    lines: list[str] = []
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        world.lock(hashlib.sha256(b"one").hexdigest())
        now[0] += 2000

    count = running.run(
        store, read_stack(synthesise(b"one"), "Models", PSEUDO), "123456789012", wait=wait, say=lines.append
    )

    assert count == 1
    assert pauses == [2, 30]
    assert [event["StartedAt"] for event in handler.events] == [1000, 3000 - 2000, 5000 - 2400]
    event = handler.events[0]
    assert (event["RequestType"], event["ResourceType"]) == ("Create", "Custom::TritonArtifacts")
    properties = event["ResourceProperties"]
    assert properties["PlanBucket"] == ASSETS
    assert event["PhysicalResourceId"] == properties["PlanSha256"]
    plan = world.s3.get_object(Bucket=ASSETS, Key=properties["PlanKey"])["Body"].read()
    assert hashlib.sha256(plan).hexdigest() == properties["PlanSha256"]
    assert ("0 min" in lines[-2], "33 min" in lines[-1]) == (True, True)
    for line in lines[-2:]:
        messages.record("cdk-triton artifacts", line)


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        (["ResourceNotReadyException", "CodeArtifactUserPendingException", {"IsComplete": True}], [10, 10]),
        (["ResourceNotReadyException"] * 61, [10] * 60),
        (["KMSDisabledException"], []),
    ],
    ids=["ready in time", "never ready", "another error"],
)
def test_a_function_that_was_idle_for_weeks_is_called_again(
    messages: Messages,
    world: World,
    synthesise: Synthesise,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[dict[str, Any] | str],
    pauses: list[float],
) -> None:
    store = open_store(world.stack)
    handler, client = SlowHandler(*answers), store.aws.client
    monkeypatch.setattr(store.aws, "client", lambda service: handler if service == "lambda" else client(service))
    lines: list[str] = []
    waited: list[float] = []
    stack = read_stack(synthesise(b"one"), "Models", PSEUDO)

    with nullcontext() if isinstance(answers[-1], dict) else pytest.raises(ClientError):
        running.run(store, stack, "123456789012", wait=waited.append, say=lines.append)

    assert waited == pauses
    for line in (each for each in lines if each.startswith("Lambda")):
        messages.record("cdk-triton artifacts", line.replace(store.function, "FUNCTION"))


def test_a_plan_that_builds_needs_its_sources_and_the_program(synthesise: Synthesise) -> None:
    app = synthesise(b"one")
    (plan,) = app.glob("asset.triton-plan-*")
    (commit,) = StackPlan.parse(plan.read_bytes()).commits
    inputs = BuildInput(None, "triton-sources.gz", "sources/a.tar.gz"), BuildInput("users", "bert.onnx", "inputs/b")
    built = replace(commit, asset=None, build=EnsembleBuild(inputs, {}))
    machine = BuildMachine("codebuild", 120, {}, BuildInput(None, "triton-program.pyz", "program.pyz"))
    plan.write_bytes(StackPlan((built,), builder=machine).text())

    (planned,) = read_stack(app, "Models", PSEUDO).planned

    assert planned.needs(committed=()) == {"triton-sources.gz", "triton-program.pyz"}
    assert planned.needs(committed={commit.artifact_key}) == set()


def test_a_plan_that_rehearses_needs_its_golden_requests_and_the_program(synthesise: Synthesise) -> None:
    app = synthesise(b"one")
    (plan,) = app.glob("asset.triton-plan-*")
    (commit,) = StackPlan.parse(plan.read_bytes()).commits
    golden = (BuildInput(None, "triton-golden.zip", "rehearsals/r.zip"),)
    rehearsal = PlannedRehearsal("text", commit.artifact_key, "r", "tritonserver:25.09", golden, "g", {})
    machine = BuildMachine("codebuild", 120, {}, BuildInput(None, "triton-program.pyz", "program.pyz"))
    plan.write_bytes(StackPlan((commit,), builder=machine, rehearsals=(rehearsal,)).text())

    (planned,) = read_stack(app, "Models", PSEUDO).planned

    assert planned.needs({commit.artifact_key}) == {"triton-golden.zip", "triton-program.pyz"}
    assert planned.needs({commit.artifact_key, "r"}) == set()


def test_stacks_within_stages_and_nested_stacks_are_found(synthesise: Synthesise, tmp_path: Path) -> None:
    inner = synthesise(b"one")
    template = json.loads((inner / "Models.template.json").read_text())
    (inner / "Child.nested.template.json").write_text(json.dumps(template))
    nested = {"Type": "AWS::CloudFormation::Stack", "Metadata": {"aws:asset:path": "Child.nested.template.json"}}
    (inner / "Models.template.json").write_text(json.dumps({"Resources": {"Child": nested}}))
    manifest = json.loads((inner / "manifest.json").read_text())
    models = manifest["artifacts"].pop("Models")
    models["displayName"] = "Prod/Models (Prod-Models)"
    models["properties"]["stackName"] = "Prod-Models"
    manifest["artifacts"]["ProdModels123"] = models
    (inner / "manifest.json").write_text(json.dumps(manifest))
    outer = tmp_path / "outer"
    shutil.copytree(inner, outer / "assembly-Prod")
    stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-Prod"}}
    (outer / "manifest.json").write_text(json.dumps({"artifacts": {"assembly-Prod": stage}}))

    for name in ("Prod/Models", "Prod-Models", "ProdModels123"):
        found = read_stack(outer, name, PSEUDO)
        assert (found.name, [each.name for each in found.planned]) == ("Prod-Models", ["Artifacts"])


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("literal", "literal"),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Fn::Sub": "a-${AWS::AccountId}-${!Literal}"}, "a-123456789012-${Literal}"),
        ({"Fn::Sub": ["${A}.${AWS::URLSuffix}", {"A": {"Ref": "AWS::Partition"}}]}, "aws.amazonaws.com"),
        ({"Fn::Join": ["", ["x", {"Fn::FindInMap": ["Accounts", {"Ref": "AWS::Region"}, "dlc"]}]]}, "x763"),
        ({"Fn::Select": [1, {"Fn::Split": ["-", {"Ref": "AWS::Region"}]}]}, "east"),
    ],
)
def test_a_property_is_resolved_as_cloudformation_does(value: Any, resolved: str) -> None:
    assert resolve(value, PSEUDO, {"Accounts": {"us-east-1": {"dlc": "763"}}}, "Artifacts.BuildImage") == resolved


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"Ref": "Bucket"}, id="Ref"),
        pytest.param({"Fn::GetAtt": ["Bucket", "Arn"]}, id="Fn::GetAtt"),
        pytest.param({"Fn::Sub": "${Bucket.Arn}"}, id="Fn::Sub"),
        pytest.param({"Fn::FindInMap": ["Accounts", "mars-1", "dlc"]}, id="Fn::FindInMap"),
    ],
)
def test_what_only_a_deployment_knows_is_rejected(messages: Messages, value: Any) -> None:
    with messages.raises(ConfigurationError):
        resolve(value, PSEUDO, {}, "Artifacts.PlanBucket")
