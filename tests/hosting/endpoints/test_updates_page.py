"""The examples of the pages on updates run, and deploy what they show."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import cdk_nag
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_ssm as ssm
from aws_cdk.assertions import Annotations, Match
from constructs import Construct
from tests.docs.blocks import of_kind

from cdk_triton import Canary, Capacity, TritonArtifactStore, TritonEndpoint, TritonMultiModel, TritonVariant
from cdk_triton.hosting import ImportedEndpoint

if TYPE_CHECKING:
    from tests.hosting.conftest import World

PAGES = ("docs/updates.md", "docs/rollback.md", "docs/endpoints.md", "docs/client.md")
MINUTES = cdk.Duration.minutes


def examples(*, of: str = "") -> list[str]:
    """Those of the pages that write an app, and have this text in them."""
    blocks = sorted(of_kind("hosting/endpoints/test_updates_page.py"), key=lambda each: PAGES.index(each.page))
    return [each.text for each in blocks if of in each.text]


def names(world: World, app: cdk.App) -> dict[str, Any]:
    """What the examples take from the app around them."""
    stack = cdk.Stack(app, "Stack")
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    ensembles = {"text": world.repository("text")}
    inline = lambda_.Code.from_inline("def handler(event, context): pass")
    service, other = (
        lambda_.Function(stack, name, runtime=lambda_.Runtime.PYTHON_3_13, handler="index.handler", code=inline)
        for name in ("Service", "Other")
    )
    return {
        "self": stack,
        "model": TritonMultiModel(stack, "Fleet", store=store, ensembles=ensembles, platform=world.platform),
        "topic": sns.Topic(stack, "Topic", enforce_ssl=True),
        "bucket": s3.Bucket(stack, "Bucket"),
        "key": kms.Key(stack, "Key"),
        "service": service,
        "other": other,
        "ssm": ssm,
        "subscriptions": subscriptions,
        "TritonEndpoint": TritonEndpoint,
    }


def alarms_without_action(stack: cdk.Stack) -> list[str]:
    found = cdk_nag.NIST80053R5Checks().validate_scope(stack).violations or []
    return [each.rule_name for each in found if "AlarmAction" in each.rule_name]


def warnings(stack: cdk.Stack) -> list[str]:
    every = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    return [code for each in every for code in re.findall(r"\[ack: cdk-triton:(\w+)\]", str(each.entry.data))]


def test_they_run_and_cdk_validates_what_they_deploy(world: World) -> None:
    app = world.app(validated=True)
    known = names(world, app)
    stack = known["self"]
    own = None
    for number, example in enumerate(examples()):
        known["self"] = Construct(stack, f"Example{number}")
        exec(example, known)
        own = own if isinstance(known["endpoint"], ImportedEndpoint) else known["endpoint"]
        known["endpoint"] = own
    app.synth()

    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    assert [each["violations"] for each in report["pluginReports"] if each["violations"]] == []
    assert alarms_without_action(stack) == []
    for replaced in ("SageMaker::EndpointConfig", "SageMaker::Model", "IAM::ManagedPolicy"):
        found = world.resources(stack, f"AWS::{replaced}").values()
        assert "Retain" in [each.get("UpdateReplacePolicy") for each in found]
    assert set(warnings(stack)) == {"GuardrailsOfMultiModel", "CaptureOfMultiModel"}  # which the page says


def test_the_alarm_of_the_new_instances_is_for_several_variants_as_well(world: World) -> None:
    known = names(world, world.app())
    stack, model = known["self"], known["model"]
    known["endpoint"] = TritonEndpoint(
        stack,
        "Endpoint",
        variants=[TritonVariant(model=model), TritonVariant(model=model, variant_name="Candidate")],
        endpoint_name="search",
        deployment_policy=Canary(size=Capacity(25), wait=MINUTES(10)),
    )
    (example,) = examples(of="SlowUpdate")
    exec(example, known)

    (alarm,) = world.resources(stack, "AWS::CloudWatch::Alarm").values()
    watched = {each["Name"]: each["Value"] for each in alarm["Properties"]["Dimensions"]}
    (config,) = world.resources(stack, "AWS::SageMaker::EndpointConfig")
    assert watched == {
        "EndpointName": "search",
        "VariantName": "AllTraffic",
        "EndpointConfigName": {"Fn::GetAtt": [config, "EndpointConfigName"]},
    }
    assert alarms_without_action(stack) == []
