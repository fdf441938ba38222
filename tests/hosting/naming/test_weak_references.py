"""Weak references between stacks, which `cdk init` sets: templates, cdk-nag, and a warning."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from cdk_nag import AwsSolutionsChecks

from cdk_triton import DataCapture, TritonArtifactStore, TritonEndpoint, TritonModel, TritonMultiModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

IRELAND = cdk.Environment(account="111122223333", region="eu-west-1")
STRENGTH = "@aws-cdk/core:defaultCrossStackReferences"
CODE = "cdk-triton:WeakStoreReference"


def synthesised(
    world: World, strength: str, *, env: cdk.Environment | None = IRELAND, produced: cdk.ReferenceStrength | None = None
) -> dict[str, cdk.Stack]:
    app = world.app(strength, **{STRENGTH: strength})  # type: ignore[arg-type]  # the name has dots
    stacks = {name: cdk.Stack(app, name, env=env) for name in ("Artifacts", "Buckets", "Serving")}
    logs = s3.Bucket.from_bucket_name(stacks["Artifacts"], "Logs", "access-logs")
    store = TritonArtifactStore(stacks["Artifacts"], "Store", builders=[], access_logs_bucket=logs)
    if produced is not None:
        cdk.CrossStackReferences.of(store).produce(produced)
    captured = s3.Bucket(
        stacks["Buckets"],
        "Captured",
        enforce_ssl=True,
        server_access_logs_bucket=s3.Bucket.from_bucket_name(stacks["Buckets"], "Logs", "access-logs"),
    )
    options: dict[str, Any] = {"platform": world.platform, "store": store}
    repository = world.repository()
    TritonMultiModel(stacks["Serving"], "Fleet", ensembles={"a": repository}, **options)
    model = TritonModel(stacks["Serving"], "Model", repository=repository, **options)
    capture = DataCapture(bucket=captured, sampling_percentage=5)
    TritonEndpoint(stacks["Serving"], "Endpoint", model=model, data_capture=capture)
    return stacks


@pytest.mark.parametrize("env", [IRELAND, None], ids=["known region", "unknown region"])
@pytest.mark.parametrize("strength", ["weak", "both", "strong"])
def test_cdk_nag_finds_nothing_whatever_the_references_are(
    strength: str, env: cdk.Environment | None, world: World
) -> None:
    stacks = synthesised(world, strength, env=env)
    app = stacks["Serving"].node.root
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks())

    used = json.dumps(world.template(stacks["Serving"]))  # raises if cdk-nag finds anything
    assert ("Fn::GetStackOutput" in used) == (strength != "strong")
    assert ("Fn::ImportValue" in used) == (strength == "strong")


def test_cdk_nag_finds_nothing_where_the_references_to_the_store_alone_are_strong(world: World) -> None:
    stacks = synthesised(world, "weak", produced=cdk.ReferenceStrength.STRONG)
    cdk.Validations.of(stacks["Serving"].node.root).add_plugins(AwsSolutionsChecks())

    used = json.dumps(world.template(stacks["Serving"]))
    assert "Fn::ImportValue" in used


def test_logical_ids_do_not_depend_on_the_strength(world: World) -> None:
    ids = {
        strength: set(world.template(synthesised(world, strength)["Serving"])["Resources"])
        for strength in ("strong", "both", "weak")
    }
    assert ids["strong"] == ids["both"] == ids["weak"]


def test_a_weak_reference_leaves_no_export(world: World) -> None:
    template = world.template(synthesised(world, "weak")["Artifacts"])
    assert not [each for each in template["Outputs"].values() if "Export" in each]


def warnings(stack: cdk.Stack) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(f"\\[ack: {CODE}\\]"))
    return [str(each.entry.data) for each in found]


def test_a_warning_says_what_weak_references_do_not_protect(world: World, messages: Messages) -> None:
    (found,) = warnings(synthesised(world, "weak")["Artifacts"])
    messages.record(CODE, found)


@pytest.mark.parametrize("strength", ["both", "strong"])
def test_no_warning_where_exports_protect_the_store(strength: str, world: World) -> None:
    assert warnings(synthesised(world, strength)["Artifacts"]) == []


def test_no_warning_for_a_store_of_the_same_stack(world: World) -> None:
    stack = cdk.Stack(world.app("one", **{STRENGTH: "weak"}), "Search", env=IRELAND)  # type: ignore[arg-type]
    TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    assert warnings(stack) == []
