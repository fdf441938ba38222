"""What an endpoint says of updates and callers, deployed on the local AWS and read back through the services' APIs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from moto.events.models import EventPattern
from tests.local_aws.models import Model

from cdk_triton import Canary, Capacity, DataCapture, TritonEndpoint, TritonVariant
from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer

MINUTE = cdk.Duration.minutes(1)


class Search:
    """The stack in several versions, and what AWS has of it."""

    def __init__(self, deployer: Deployer, directory: Path) -> None:
        self.aws: LocalAws = deployer.aws
        self._deployer = deployer
        self._directory = directory
        self._version = 0

    def deploy(self, *, weight: float = 1, text: str = "text-0000000001.tar.gz", **environment: str) -> str:
        self._version += 1
        template = self._template(weight, text, {"VERSION": str(self._version), **environment})
        return self._deployer.deploy(template, "Search")

    def _template(self, weight: float, text: str, environment: Mapping[str, str]) -> dict[str, Any]:
        outdir = str(self._directory / str(self._version))
        app = cdk.App(outdir=outdir, builtin_cloud_formation_validation=False)
        stack = cdk.Stack(app, "Search", synthesizer=cdk.BootstraplessSynthesizer())
        bucket = s3.Bucket(stack, "Captured", bucket_name="captured-of-search")
        key = kms.Key(stack, "Key")
        fleet = Model(stack, "Fleet", target_models={"text": text}, environment=environment)
        endpoint = TritonEndpoint(
            stack,
            "Endpoint",
            variants=[
                TritonVariant(model=fleet, variant_name="Blue", initial_instance_count=2),
                TritonVariant(model=fleet, variant_name="Green", initial_instance_count=2, initial_weight=weight),
            ],
            endpoint_name="Search",
            deployment_policy=Canary(size=Capacity(50), wait=MINUTE, maximum_time=cdk.Duration.minutes(10)),
            data_capture=DataCapture(bucket=bucket, sampling_percentage=100, encryption_key=key),
            ssm_parameter_path="/search/production",
        )
        green = endpoint.monitor().variants["Green"]
        endpoint.roll_back_on(green.server_errors, green.model_latency)
        endpoint.variant("Green").auto_scale_instance_count(min_capacity=1, max_capacity=8)
        endpoint.add_rollback_notification()
        return dict(Template.from_stack(stack).to_json())

    def endpoint(self) -> dict[str, Any]:
        return dict(self.aws.client("sagemaker").describe_endpoint(EndpointName="Search"))

    def pattern(self) -> Any:
        events = self.aws.client("events")
        (rule,) = events.list_rules()["Rules"]
        return json.loads(rule["EventPattern"])

    def events(self, since: int) -> list[str]:
        return self._deployer.events("Search", since)

    def count(self) -> int:
        return self._deployer.count("Search")


@pytest.fixture(scope="module")
def search(deployer: Deployer, tmp_path_factory: pytest.TempPathFactory) -> Search:
    search = Search(deployer, tmp_path_factory.mktemp("search"))
    assert search.deploy() == "CREATE_COMPLETE"
    return search


def test_sagemaker_has_the_policy_and_its_alarms(search: Search) -> None:
    config = search.endpoint()["LastDeploymentConfig"]

    assert config["BlueGreenUpdatePolicy"] == {
        "TrafficRoutingConfiguration": {
            "Type": "CANARY",
            "WaitIntervalInSeconds": 60,
            "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 50},
        },
        "MaximumExecutionTimeoutInSeconds": 600,
    }
    known = {alarm["AlarmName"] for alarm in search.aws.client("cloudwatch").describe_alarms()["MetricAlarms"]}
    named = {alarm["AlarmName"] for alarm in config["AutoRollbackConfiguration"]["Alarms"]}
    assert len(named) == 2
    assert named <= known


def test_callers_find_names_in_the_parameter_store(search: Search) -> None:
    found = search.aws.client("ssm").get_parameters_by_path(Path="/search/production", Recursive=True)["Parameters"]

    assert {each["Name"]: each["Value"] for each in found} == {
        "/search/production/endpoint-name": "Search",
        "/search/production/endpoint-arn": search.endpoint()["EndpointArn"],
        "/search/production/target-models/text": "text-0000000001.tar.gz",
    }


def test_what_callers_send_is_captured(search: Search) -> None:
    runtime, bucket = search.aws.client("sagemaker-runtime"), search.aws.client("s3")
    content_type = "application/vnd.sagemaker-triton.binary+json;json-header-size=2"
    runtime.invoke_endpoint(EndpointName="Search", TargetModel="text", ContentType=content_type, Body=b"{}\x00\xff")

    (found,) = bucket.list_objects_v2(Bucket="captured-of-search", Prefix="data-capture/Search/")["Contents"]
    line = json.loads(bucket.get_object(Bucket="captured-of-search", Key=found["Key"])["Body"].read())
    assert base64.b64decode(line["captureData"]["endpointInput"]["data"]) == b"{}\x00\xff"


def test_the_rule_knows_the_configuration_in_service(search: Search) -> None:
    expected = {"EndpointStatus": ["IN_SERVICE"], "EndpointConfigName": [{"anything-but": config_name(search)}]}

    assert expected in search.pattern()["detail"]["$or"]
    assert search.pattern()["detail"]["EndpointName"] == ["Search"]


def matches(search: Search, **detail: Any) -> bool:
    """Whether the rule takes an event, shaped as SageMaker's guide shows it, of the configuration in service."""
    event = {
        "source": "aws.sagemaker",
        "detail-type": "SageMaker Endpoint State Change",
        "resources": ["arn:aws:sagemaker:us-east-1:123456789012:endpoint/search"],
        "detail": {
            "EndpointName": "Search",
            "EndpointConfigName": config_name(search),
            "EndpointStatus": "IN_SERVICE",
            "Tags": {},
            **detail,
        },
    }
    return bool(EventPattern(None, search.pattern()).matches_event(event))  # type: ignore[arg-type]  # no time, no id


def test_the_rule_takes_the_events_of_a_rollback_and_no_others(search: Search) -> None:
    assert not matches(search)
    assert not matches(search, EndpointStatus="UPDATING", EndpointConfigName="before")
    assert not matches(search, EndpointName="Other", EndpointConfigName="before")
    assert matches(search, EndpointConfigName="before")
    for status in ("FAILED", "ROLLING_BACK", "UPDATE_ROLLBACK_FAILED"):
        assert matches(search, EndpointStatus=status)


def config_name(search: Search) -> str:
    name: str = search.endpoint()["EndpointConfigName"]
    return name


def test_an_update_keeps_the_counts_takes_the_weights_and_tells_the_rule_first(search: Search) -> None:
    search.aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName="Search",
        DesiredWeightsAndCapacities=[{"VariantName": "Green", "DesiredInstanceCount": 5, "DesiredWeight": 9}],
    )
    before, old = search.count(), config_name(search)

    assert search.deploy(weight=3, text="text-0000000002.tar.gz") == "UPDATE_COMPLETE"

    blue, green = search.endpoint()["ProductionVariants"]
    assert [blue["CurrentInstanceCount"], green["CurrentInstanceCount"]] == [2, 5]
    assert [blue["CurrentWeight"], green["CurrentWeight"]] == [1, 3]
    assert config_name(search) != old
    assert {"anything-but": config_name(search)} in search.pattern()["detail"]["$or"][1]["EndpointConfigName"]
    happened = search.events(before)
    (rule,) = (n for n, e in enumerate(happened) if "RollbackRule" in e and e.endswith("UPDATE_COMPLETE"))
    (endpoint,) = (n for n, e in enumerate(happened) if is_endpoint(e) and e.endswith("UPDATE_IN_PROGRESS"))
    (target,) = (n for n, e in enumerate(happened) if "targetmodels" in e and e.endswith("UPDATE_IN_PROGRESS"))
    (updated,) = (n for n, e in enumerate(happened) if is_endpoint(e) and e.endswith("UPDATE_COMPLETE"))
    (gone,) = (n for n, e in enumerate(happened) if "EndpointConfig" in e and e.endswith("DELETE_COMPLETE"))
    assert rule < endpoint < target
    assert updated < gone  # SageMaker's guide: no configuration is deleted that an endpoint uses


def is_endpoint(event: str) -> bool:
    """Of the endpoint itself and of nothing below it: its logical id ends in eight digits of a hash."""
    return event.startswith("Endpoint") and len(event.split()[0]) == len("Endpoint12345678")


def test_a_failed_update_leaves_rule_and_endpoint_with_the_old_configuration(search: Search) -> None:
    old = config_name(search)

    assert search.deploy(REJECT="the model does not load") == "UPDATE_ROLLBACK_COMPLETE"

    assert config_name(search) == old
    assert search.pattern()["detail"]["$or"][1]["EndpointConfigName"] == [{"anything-but": old}]
