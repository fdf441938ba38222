"""What a change of an endpoint replaces: a change set of each, none of which is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from tests.local_aws.models import NOTHING, Model

from cdk_triton import AlarmThresholds, AllAtOnce, DataCapture, TritonEndpoint, TritonVariant

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

STACK = "Replacements"
MODEL, CONFIG, ENDPOINT = (f"AWS::SageMaker::{kind}" for kind in ("Model", "EndpointConfig", "Endpoint"))
TARGET, ALARM = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::CloudWatch::Alarm"


def template(
    directory: Path,
    *,
    environment: dict[str, str] | None = None,
    instance_type: str = "ml.g5.12xlarge",
    weight: float = 1,
    deployment_policy: AllAtOnce | None = None,
    capture: bool = False,
    endpoint_name: str = "search",
    max_capacity: int = 4,
    disk_percent: float = 85,
    tag: str = "search",
) -> dict[str, Any]:
    app = cdk.App(outdir=str(directory), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, STACK, synthesizer=cdk.BootstraplessSynthesizer())
    scaled = Model(stack, "Scaled", environment=environment or NOTHING, instance_type=instance_type)
    bucket = s3.Bucket.from_bucket_name(stack, "Captured", "captured")
    endpoint = TritonEndpoint(
        stack,
        "Endpoint",
        variants=[TritonVariant(model=scaled, initial_weight=weight)],
        endpoint_name=endpoint_name,
        deployment_policy=deployment_policy,
        data_capture=DataCapture(bucket=bucket, sampling_percentage=5) if capture else None,
    )
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=max_capacity)
    count.scale_on_invocations("Requests", max_requests_per_second=40)
    endpoint.monitor(thresholds=AlarmThresholds(disk_percent=disk_percent))
    cdk.Tags.of(stack).add("team", tag)
    return dict(Template.from_stack(stack).to_json())


@pytest.fixture(name="deployed", scope="module")
def _deployed(deployer: Deployer, tmp_path_factory: pytest.TempPathFactory) -> Deployer:
    assert deployer.deploy(template(tmp_path_factory.mktemp("before")), STACK) == "CREATE_COMPLETE"
    return deployer


@pytest.mark.parametrize(
    ("change", "told"),
    [
        # Another model has another name, so that there is another configuration, to which the endpoint is pointed.
        ({"environment": {"VERSION": "2"}}, {MODEL: "True", CONFIG: "Conditional", ENDPOINT: "False"}),
        ({"instance_type": "ml.g6.12xlarge"}, {CONFIG: "True", ENDPOINT: "False"}),
        ({"weight": 2}, {CONFIG: "True", ENDPOINT: "False"}),
        ({"capture": True}, {CONFIG: "True", ENDPOINT: "False"}),
        ({"deployment_policy": AllAtOnce(termination_wait=cdk.Duration.minutes(5))}, {ENDPOINT: "False"}),
        ({"max_capacity": 8}, {TARGET: "False"}),
        ({"disk_percent": 70}, {ALARM: "False"}),
        ({"tag": "ads"}, dict.fromkeys((MODEL, CONFIG, ENDPOINT, TARGET, ALARM), "False")),
        ({"endpoint_name": "ads"}, {ENDPOINT: "True", TARGET: "Conditional", ALARM: "False"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) and "::" not in next(iter(value)) else "",
)
def test_a_change_replaces_what_cannot_be_changed_and_updates_the_endpoint_in_place(
    deployed: Deployer, tmp_path: Path, change: dict[str, Any], told: dict[str, str]
) -> None:
    """`Conditional` is what CloudFormation says of a property that follows from another resource."""
    changes = change_set(deployed, template(tmp_path, **change))

    assert {kind: changes[kind] for kind in (MODEL, CONFIG, ENDPOINT, TARGET, ALARM) if kind in changes} == told


def change_set(deployer: Deployer, template: dict[str, Any]) -> dict[str, str]:
    """Type to replacement, of the resources that an update with the template would change."""
    made = deployer.client.create_change_set(
        StackName=STACK,
        ChangeSetName="change",
        ChangeSetType="UPDATE",
        TemplateBody=json.dumps(template),
        Capabilities=["CAPABILITY_NAMED_IAM"],
    )
    found = deployer.client.describe_change_set(ChangeSetName=made["Id"])["Changes"]
    deployer.client.delete_change_set(ChangeSetName=made["Id"])
    changes = [each["ResourceChange"] for each in found]
    return {each["ResourceType"]: each["Replacement"] for each in changes if each["Action"] == "Modify"}
