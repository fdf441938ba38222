"""The steps of an update, and what stops it. The time moves only when a test moves it, and no server runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.local_aws.conftest import EndpointDouble

from cdk_triton_local import Clock, LocalAws
from cdk_triton_local.endpoints import Endpoint, Shift, all_at_once

PERCENT = {"Type": "CAPACITY_PERCENT"}


class Host(EndpointDouble):
    """Remembers the share of the requests that the new instances of an update have got."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[float] = []

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        super().deploy(endpoint, lambda move: shift(self.shares.append))


class Served:
    """An endpoint with four instances."""

    def __init__(self, aws: LocalAws, host: Host) -> None:
        self.aws, self.host = aws, host
        self._sagemaker = aws.client("sagemaker")
        self._versions = iter(range(100))
        container = {"Image": "triton", "ModelDataUrl": "s3://models/model.tar.gz"}
        role = f"arn:aws:iam::{aws.account}:role/r"
        self._sagemaker.create_model(ModelName="m", ExecutionRoleArn=role, PrimaryContainer=container)
        self._sagemaker.create_endpoint(EndpointName="e", EndpointConfigName=self.configuration())
        self.settled()

    def update(self, deployment: Mapping[str, Any]) -> str:
        """Begin an update, and return the name of its configuration."""
        self.host.shares.clear()
        name = self.configuration()
        self._sagemaker.update_endpoint(EndpointName="e", EndpointConfigName=name, DeploymentConfig=deployment)
        for _ in range(3000):
            if self.host.shares:
                return name
            threading.Event().wait(0.01)
        raise AssertionError(f"no request moves: {self._sagemaker.describe_endpoint(EndpointName='e')}")

    def after(self, seconds: float) -> list[float]:
        """The shares so far."""
        self.aws.clock.advance(seconds)
        return list(self.host.shares)

    def settled(self) -> dict[str, Any]:
        """The endpoint when it does not change any more."""
        for _ in range(3000):
            found = dict(self._sagemaker.describe_endpoint(EndpointName="e"))
            if found["EndpointStatus"] in SETTLED:
                return found
            threading.Event().wait(0.01)
        raise AssertionError(f"the endpoint still changes: {found}")

    def instances(self) -> int:
        (variant,) = self._sagemaker.describe_endpoint(EndpointName="e")["ProductionVariants"]
        return int(variant["DesiredInstanceCount"])

    def configuration(self, variant: str = "v") -> str:
        """A new endpoint configuration."""
        name = f"c{next(self._versions)}"
        described = {
            "VariantName": variant,
            "ModelName": "m",
            "InstanceType": "ml.g5.xlarge",
            "InitialInstanceCount": 4,
        }
        self._sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[described])
        return name


SETTLED = ("InService", "Failed")


@pytest.fixture(name="served", scope="module")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    host = Host()
    clock = Clock(only_moved=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: host, clock=clock) as aws:
        yield Served(aws, host)


def blue_green(**routing: Any) -> dict[str, Any]:
    return {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {"WaitIntervalInSeconds": 60, **routing},
            "TerminationWaitInSeconds": 120,
        }
    }


@pytest.mark.parametrize(
    ("deployment", "shares", "last"),
    [
        pytest.param(blue_green(Type="ALL_AT_ONCE"), [1], 120, id="all at once"),
        pytest.param(blue_green(Type="CANARY", CanarySize={**PERCENT, "Value": 25}), [0.25, 1], 120, id="canary"),
        pytest.param(
            blue_green(Type="LINEAR", LinearStepSize={**PERCENT, "Value": 30}), [0.3, 0.6, 0.9, 1], 120, id="linear"
        ),
        pytest.param(
            {
                "RollingUpdatePolicy": {
                    "MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1},
                    "WaitIntervalInSeconds": 60,
                }
            },
            [0.25, 0.5, 0.75, 1],
            60,
            id="rolling",
        ),
    ],
)
def test_an_update_moves_the_requests_step_by_step(
    served: Served, deployment: Mapping[str, Any], shares: list[float], last: float
) -> None:
    name = served.update(deployment)

    for steps in range(1, len(shares)):
        assert served.after(0) == shares[:steps]
        served.after(60)
    assert served.after(last - 1) == shares
    assert served.aws.client("sagemaker").describe_endpoint(EndpointName="e")["EndpointStatus"] == "Updating"
    served.after(1)

    assert served.settled()["EndpointConfigName"] == name


def stopped_by_an_alarm(served: Served) -> None:
    served.aws.client("cloudwatch").set_alarm_state(AlarmName="a", StateValue="ALARM", StateReason="the test")
    served.after(10)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        pytest.param(stopped_by_an_alarm, "the alarm a is in ALARM", id="alarm"),
        pytest.param(lambda served: served.after(610), "it took more than 600 seconds", id="time"),
    ],
)
def test_an_update_that_is_stopped_leaves_the_old_configuration(
    served: Served, stop: Callable[[Served], Any], reason: str
) -> None:
    served.aws.client("cloudwatch").put_metric_alarm(
        AlarmName="a",
        Namespace="Test",
        MetricName="any",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="ignore",
    )
    served.aws.client("cloudwatch").set_alarm_state(AlarmName="a", StateValue="OK", StateReason="the test")
    before = served.settled()["EndpointConfigName"]
    deployment = blue_green(Type="LINEAR", LinearStepSize={**PERCENT, "Value": 50}, WaitIntervalInSeconds=900)
    deployment["BlueGreenUpdatePolicy"]["MaximumExecutionTimeoutInSeconds"] = 600
    served.update({**deployment, "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "a"}]}})

    stop(served)

    found = served.settled()
    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", before)
    assert reason in found["FailureReason"]
    assert served.host.shares[-1] == 0


def test_an_update_to_other_variants_moves_the_requests_at_once(served: Served) -> None:
    sagemaker, name = served.aws.client("sagemaker"), served.configuration("w")
    with pytest.raises(ClientError, match="its variants cannot change from v to w"):
        sagemaker.update_endpoint(
            EndpointName="e",
            EndpointConfigName=name,
            DeploymentConfig=blue_green(Type="CANARY", CanarySize={**PERCENT, "Value": 25}),
        )
    assert served.settled()["EndpointStatus"] == "InService"


def test_limits_that_change_during_an_update_are_kept_after_it(served: Served) -> None:
    """SageMaker rejects the change meanwhile: "auto scaling is blocked while the update operation is in progress"."""
    served.update(blue_green(Type="ALL_AT_ONCE"))
    served.aws.client("application-autoscaling").register_scalable_target(
        ServiceNamespace="sagemaker",
        ResourceId="endpoint/e/variant/v",
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        MinCapacity=6,
        MaxCapacity=8,
    )
    assert served.instances() == 4
    served.after(120)
    served.settled()

    served.after(60)

    assert served.instances() == 6
