"""What `TritonEndpoint.monitor` makes, deployed on the local AWS and read back through the services' APIs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template
from tests.local_aws.models import Model

from cdk_triton import AlarmThresholds, MetricsConfig, TritonEndpoint, TritonVariant
from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer


def template(directory: Path, thresholds: AlarmThresholds | None = None) -> dict[str, Any]:
    """Two variants and a fleet, each endpoint monitored; one topic."""
    app = cdk.App(outdir=str(directory), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Monitored", synthesizer=cdk.BootstraplessSynthesizer())
    topic = sns.Topic(stack, "Topic", master_key=kms.Key(stack, "Key"), enforce_ssl=True)
    single, fleet = Model(stack, "Single"), Model(stack, "Fleet", target_models={"text": "text-0123456789.tar.gz"})
    variants = [TritonVariant(model=single, variant_name=name) for name in ("Blue", "Green")]
    tested = TritonEndpoint(stack, "Tested", variants=variants, metrics_config=MetricsConfig(enhanced_metrics=True))
    tested.monitor(topic=topic, thresholds=thresholds)
    served = TritonEndpoint(stack, "Served", model=fleet)
    served.monitor(topic=topic)
    for name, endpoint in {"Tested": tested, "Served": served}.items():
        cdk.CfnOutput(stack, f"{name}Name", value=endpoint.endpoint_name)
    cdk.CfnOutput(stack, "TopicArn", value=topic.topic_arn)
    return dict(Template.from_stack(stack).to_json())


@pytest.fixture(name="outputs", scope="module")
def _outputs(deployer: Deployer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    assert deployer.deploy(template(tmp_path_factory.mktemp("first")), "Monitored") == "CREATE_COMPLETE"
    return {each["OutputKey"]: each["OutputValue"] for each in deployer.describe("Monitored")["Outputs"]}


def alarms(aws: LocalAws, endpoint: str, variant: str) -> dict[str, dict[str, Any]]:
    """The alarms of a variant by the names that the construct has for them."""
    dimensions = [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}]
    return {
        re.split(r"Alarms", each["AlarmName"])[1][: -len("12345678-123456789012")]: each
        for each in aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
        if each["Dimensions"] == dimensions
    }


def test_cloudwatch_has_the_alarms_of_each_variant(local_aws: LocalAws, outputs: dict[str, str]) -> None:
    blue, green = (alarms(local_aws, outputs["TestedName"], name) for name in ("Blue", "Green"))
    fleet = alarms(local_aws, outputs["ServedName"], "AllTraffic")

    assert set(blue) == set(green)
    assert len(blue) == 8
    assert set(fleet) - set(blue) == {"CacheMisses", "LoadingWait"}
    gpu = blue["GpuUtilization"]
    assert (gpu["Namespace"], gpu["MetricName"]) == ("/aws/sagemaker/Endpoints", "GPUUtilization")
    assert (gpu["Threshold"], gpu["Period"], gpu["EvaluationPeriods"]) == (360, 300, 3)
    assert blue["ModelLatency"]["ExtendedStatistic"] == "p99"
    assert all(each["AlarmActions"] == [outputs["TopicArn"]] for each in (blue | green | fleet).values())


def test_cloudwatch_has_a_dashboard_of_each_endpoint(local_aws: LocalAws, outputs: dict[str, str]) -> None:
    cloudwatch = local_aws.client("cloudwatch")
    names = [each["DashboardName"] for each in cloudwatch.list_dashboards()["DashboardEntries"]]
    bodies = [json.loads(cloudwatch.get_dashboard(DashboardName=name)["DashboardBody"]) for name in names]

    shown = {body["widgets"][0]["properties"]["markdown"].split("\n")[0]: body["widgets"] for body in bodies}
    assert set(shown) == {f"# {outputs['TestedName']}", f"# {outputs['ServedName']}"}
    tested = shown[f"# {outputs['TestedName']}"]
    assert sum(each["type"] == "alarm" for each in tested) == 2
    metrics = [metric for each in tested if each["type"] == "metric" for metric in each["properties"]["metrics"]]
    # Namespace, metric, and two dimensions by name and value; an expression stands alone.
    assert {tuple(metric[2:6]) for metric in metrics if len(metric) > 1} == {
        ("EndpointName", outputs["TestedName"], "VariantName", variant) for variant in ("Blue", "Green")
    }


def test_the_scheduler_has_the_retention_of_each_log_group(local_aws: LocalAws, outputs: dict[str, str]) -> None:
    scheduler = local_aws.client("scheduler")
    targets = [scheduler.get_schedule(Name=each["Name"])["Target"] for each in scheduler.list_schedules()["Schedules"]]

    assert {target["Arn"] for target in targets} == {"arn:aws:scheduler:::aws-sdk:cloudwatchlogs:putRetentionPolicy"}
    groups = {f"/aws/sagemaker/Endpoints/{outputs[name]}" for name in ("TestedName", "ServedName")}
    inputs = [json.loads(target["Input"]) for target in targets]
    assert {each["LogGroupName"] for each in inputs} == groups
    assert {each["RetentionInDays"] for each in inputs} == {90}
    # What the schedule is going to ask is a request that CloudWatch Logs takes.
    local_aws.client("logs").create_log_group(logGroupName=inputs[0]["LogGroupName"])
    parameters = {key[0].lower() + key[1:]: value for key, value in inputs[0].items()}
    local_aws.client("logs").put_retention_policy(**parameters)


def test_a_changed_threshold_changes_the_alarm_and_a_dropped_one_goes(
    local_aws: LocalAws, deployer: Deployer, outputs: dict[str, str], tmp_path: Path
) -> None:
    thresholds = AlarmThresholds(model_latency=cdk.Duration.seconds(1), disk_percent=None)
    assert deployer.deploy(template(tmp_path, thresholds), "Monitored") == "UPDATE_COMPLETE"

    found = alarms(local_aws, outputs["TestedName"], "Blue")
    assert found["ModelLatency"]["Threshold"] == 1_000_000
    assert "Disk" not in found


def test_everything_goes_with_the_stack(local_aws: LocalAws, deployer: Deployer, outputs: dict[str, str]) -> None:
    assert outputs
    assert deployer.delete("Monitored") == "DELETE_COMPLETE"

    cloudwatch = local_aws.client("cloudwatch")
    assert not cloudwatch.describe_alarms()["MetricAlarms"]
    assert not cloudwatch.list_dashboards()["DashboardEntries"]
    assert not local_aws.client("scheduler").list_schedules()["Schedules"]
