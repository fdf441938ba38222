"""CloudWatch's alarms on the local AWS, whose time moves only when a test moves it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.local_aws.conftest import Deployer, EndpointDouble

from cdk_triton_local import Clock, LocalAws

if TYPE_CHECKING:
    from golden_messages import Messages

TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")
GONE, KEPT = "INSUFFICIENT_DATA", "OK"  # `KEPT`: the state that the test has set before

# Periods and datapoints, the last five values (X breaches, 0 does not, - is missing), and the states for the four ways
# to treat missing data: the tables of "Configuring how CloudWatch alarms treat missing data" in the user guide.
TABLE = [
    (3, 3, "0-X-X", ("OK", "OK", "OK", "OK")),
    (3, 3, "0----", ("OK", "OK", "OK", "OK")),
    (3, 3, "-----", (GONE, KEPT, "ALARM", "OK")),
    (3, 3, "0XX-X", ("ALARM", "ALARM", "ALARM", "ALARM")),
    (3, 3, "--X--", ("ALARM", KEPT, "ALARM", "OK")),
    (3, 2, "0-X-X", ("ALARM", "ALARM", "ALARM", "ALARM")),
    (3, 2, "00X0X", ("ALARM", "ALARM", "ALARM", "ALARM")),
    (3, 2, "0-X--", ("OK", "OK", "ALARM", "OK")),
    (3, 2, "----0", ("OK", "OK", "ALARM", "OK")),
    (3, 2, "---X-", ("ALARM", KEPT, "ALARM", "OK")),
]


class Watched:
    """A local AWS, and the alarms of a test by the names of their metrics."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.cloudwatch = aws.client("cloudwatch")

    def put(self, name: str, values: list[float | None], *, period: int = 60, **dimensions: str) -> None:
        """Publish the values of the last periods before the next minute; the last one is the latest."""
        end = (math.floor(self.aws.clock.now / 60) + 1) * 60
        data = [
            {
                "MetricName": name,
                "Value": value,
                "Timestamp": datetime.fromtimestamp(end - period * age + 1 - self.aws.clock.gained, UTC),
                "Dimensions": [{"Name": key, "Value": each} for key, each in dimensions.items()],
            }
            for age, value in enumerate(reversed(values), 1)
            if value is not None
        ]
        if data:
            self.cloudwatch.put_metric_data(Namespace="Test", MetricData=data)

    def alarm(self, name: str, **more: Any) -> None:
        """An alarm above 0.5 on the metric of the same name."""
        metric = {"Namespace": "Test", "MetricName": name, "Statistic": "Average", "Period": 60}
        if "ExtendedStatistic" in more:
            del metric["Statistic"]
        self.cloudwatch.put_metric_alarm(
            **{
                "AlarmName": name,
                "EvaluationPeriods": 1,
                "Threshold": 0.5,
                "ComparisonOperator": "GreaterThanThreshold",
                **({} if "Metrics" in more else metric),
                **more,
            }
        )

    def state(self, name: str) -> str:
        (alarm,) = self.cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        return str(alarm["StateValue"])


@pytest.fixture(name="watched", scope="module")
def _watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    clock = Clock(only_moved=True)
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: EndpointDouble(), clock=clock) as aws:
        yield Watched(aws)


@pytest.mark.slow
def test_the_state_is_that_of_the_tables_in_the_guide(watched: Watched) -> None:
    for number, (periods, datapoints, values, _) in enumerate(TABLE):
        watched.put(f"row {number}", [{"X": 1.0, "0": 0.0, "-": None}[each] for each in values])
        for treatment in TREATMENTS:
            name = f"row {number} {treatment}"
            watched.alarm(
                name,
                MetricName=f"row {number}",
                EvaluationPeriods=periods,
                DatapointsToAlarm=datapoints,
                TreatMissingData=treatment,
            )
            watched.cloudwatch.set_alarm_state(AlarmName=name, StateValue=KEPT, StateReason="the test")

    watched.aws.clock.advance(60)

    found = {
        values: tuple(watched.state(f"row {number} {treatment}") for treatment in TREATMENTS)
        for number, (_, datapoints, values, _) in enumerate(TABLE)
        if datapoints == 3
    } | {
        f"{values} of 2": tuple(watched.state(f"row {number} {treatment}") for treatment in TREATMENTS)
        for number, (_, datapoints, values, _) in enumerate(TABLE)
        if datapoints == 2
    }
    assert found == {values + (" of 2" if needed == 2 else ""): states for _, needed, values, states in TABLE}


def test_a_new_alarm_has_too_few_data_and_a_changed_one_keeps_its_state(watched: Watched) -> None:
    watched.alarm("changed")
    assert watched.state("changed") == "INSUFFICIENT_DATA"
    watched.put("changed", [1.0])
    watched.aws.clock.advance(60)

    watched.alarm("changed", Threshold=7)

    assert watched.state("changed") == "ALARM"


@pytest.mark.slow
def test_a_percentile_is_that_of_single_requests(watched: Watched) -> None:
    for name, slow in (("one in 50", 2), ("one in 200", 0.5)):
        for number in range(200):
            value = 9.0 if number < 2 * slow else 0.1
            watched.aws.metrics.record(name, "v", "ModelLatency", value)
        watched.alarm(
            name,
            Namespace="AWS/SageMaker",
            MetricName="ModelLatency",
            Dimensions=[{"Name": "EndpointName", "Value": name}],
            ExtendedStatistic="p99",
            Threshold=5e6,
        )

    watched.aws.clock.advance(60)

    assert watched.state("one in 50") == "ALARM"
    assert watched.state("one in 200") == "OK"


def test_the_highest_type_of_a_pool_counts_and_one_without_instances_counts_as_zero(watched: Watched) -> None:
    """The expression of the constructs for GPUs of unequal instance types."""

    def query(id: str, instance_type: str) -> dict[str, Any]:
        dimensions = [{"Name": "InstanceType", "Value": instance_type}]
        metric = {"Namespace": "Test", "MetricName": "GPUUtilization", "Dimensions": dimensions}
        return {"Id": id, "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Average"}, "ReturnData": False}

    watched.put("GPUUtilization", [360.0], InstanceType="four")
    for name, threshold in (("above 89", 89), ("above 91", 91)):
        watched.alarm(
            name,
            Threshold=threshold,
            Metrics=[
                {"Id": "expr_1", "Expression": "MAX([FILL(m0, 0) / 4, FILL(m1, 0) / 1])"},
                query("m0", "four"),
                query("m1", "one"),
            ],
        )

    watched.aws.clock.advance(60)

    assert watched.state("above 89") == "ALARM"
    assert watched.state("above 91") == "OK"


def test_a_period_of_half_a_minute_is_evaluated_every_ten_seconds(watched: Watched) -> None:
    watched.alarm("short", Period=30)
    watched.alarm("long")
    watched.aws.clock.advance(60 - watched.aws.clock.now % 60)
    watched.put("short", [None, 1.0, None], period=30)
    watched.put("long", [None, 1.0, None], period=30)

    watched.aws.clock.advance(32)

    assert [watched.state(name) for name in ("short", "long")] == ["ALARM", "INSUFFICIENT_DATA"]


def test_metrics_have_the_time_of_the_machine_after_the_clock_has_hurried(watched: Watched) -> None:
    clock = watched.aws.clock
    began = clock.machine_now
    watched.alarm("hurried")
    clock.advance(100, pace=50)  # in two seconds

    watched.aws.metrics.record("hurried", "v", "Invocations", 1)
    watched.put("hurried", [1.0])
    clock.advance(60)

    found = watched.cloudwatch.get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName="Invocations",
        Dimensions=[{"Name": "EndpointName", "Value": "hurried"}],
        StartTime=datetime.fromtimestamp(began, UTC),
        EndTime=datetime.fromtimestamp(began + 63, UTC),
        Period=60,
        Statistics=["Sum"],
    )["Datapoints"]
    assert [each["Sum"] for each in found] == [1]
    assert watched.state("hurried") == "ALARM"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stat", "expression"),
    [
        pytest.param("Average", "ANOMALY_DETECTION_BAND(m1, 2)", id="ANOMALY_DETECTION_BAND"),
        pytest.param("tm99", "m1", id="tm99"),
    ],
)
def test_what_is_not_computed_of_an_alarm_is_rejected(
    watched: Watched, messages: Messages, request: pytest.FixtureRequest, stat: str, expression: str
) -> None:
    deployer = Deployer(watched.aws)
    metric = {"Metric": {"Namespace": "Test", "MetricName": "any"}, "Period": 60, "Stat": stat}
    queries = [{"Id": "m1", "MetricStat": metric, "ReturnData": False}, {"Id": "e1", "Expression": expression}]
    alarm = {
        "Metrics": queries,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanThreshold",
    }
    resources = {"Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm}}

    name = f"not-computed-{request.node.callspec.id.replace('_', '-')}"
    assert deployer.deploy({"Resources": resources}, name) == "ROLLBACK_COMPLETE"

    reasons = [each.get("ResourceStatusReason", "") for each in deployer.raw_events(name)]
    (sentence,) = {each for each in reasons if request.node.callspec.id in each}
    messages.record("alarm", sentence)


@pytest.mark.slow
def test_an_alarm_that_is_not_computed_does_not_stop_the_others(watched: Watched) -> None:
    metric = {"Metric": {"Namespace": "Test", "MetricName": "rate"}, "Period": 60, "Stat": "Sum"}
    expression = {"Id": "e1", "Expression": "RATE(m1)", "ReturnData": True}
    watched.put("rate", [1.0])
    watched.alarm("a rate", Metrics=[{"Id": "m1", "MetricStat": metric, "ReturnData": False}, expression])
    watched.put("beside it", [1.0])
    watched.alarm("beside it")

    watched.aws.clock.advance(60)

    assert watched.state("beside it") == "ALARM"
    watched.cloudwatch.delete_alarms(AlarmNames=["a rate"])


class Pager:
    """A topic, whose messages a queue collects."""

    def __init__(self, aws: LocalAws, name: str) -> None:
        self._sqs, sns = aws.client("sqs"), aws.client("sns")
        self.topic = sns.create_topic(Name=name)["TopicArn"]
        self._url = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        arn = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        raw = {"RawMessageDelivery": "true"}
        sns.subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=arn, Attributes=raw)

    def states(self) -> list[str]:
        """The states of which there were messages."""
        found = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(each["Body"])["NewStateValue"] for each in found]


@pytest.mark.slow
def test_an_alarm_notifies_its_topic_once(watched: Watched) -> None:
    pager = Pager(watched.aws, "pager")
    watched.put("paged", [1.0, 1.0])
    watched.alarm("paged", AlarmActions=[pager.topic])

    watched.aws.clock.advance(120)

    assert pager.states() == ["ALARM"]


@pytest.mark.parametrize("data", ['{"recentDatapoints": null}', '{"recentDatapoints": 7}'])
def test_an_alarm_is_evaluated_whatever_reason_somebody_gives(watched: Watched, data: str) -> None:
    name = f"with {len(data)} characters"
    watched.alarm(name, TreatMissingData="notBreaching")
    watched.cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="the test", StateReasonData=data)

    watched.aws.clock.advance(60)

    assert watched.state(name) == "OK"


@pytest.mark.slow
def test_a_state_that_somebody_sets_starts_the_actions_until_the_next_evaluation(watched: Watched) -> None:
    pager = Pager(watched.aws, "tested")
    watched.aws.clock.advance(65 - watched.aws.clock.now % 60)
    watched.alarm("tested", AlarmActions=[pager.topic], OKActions=[pager.topic], TreatMissingData="notBreaching")

    for _ in range(2):
        watched.cloudwatch.set_alarm_state(AlarmName="tested", StateValue="ALARM", StateReason="the test")
        watched.aws.clock.advance(10)
    assert (pager.states(), watched.state("tested")) == (["ALARM"], "ALARM")

    watched.aws.clock.advance(60)
    assert (pager.states(), watched.state("tested")) == (["OK"], "OK")
