"""`TritonEndpoint.monitor`: alarms as the user guide's table has them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_triton import (
    AlarmThresholds,
    AllAtOnce,
    AsyncInference,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
    TritonVariant,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

DOCS = Path(__file__).parents[4] / "docs"

ALARM = "AWS::CloudWatch::Alarm"

Row = tuple[str, str, str, float, int, int, int]
"""Metric, statistic, comparison, threshold, period in seconds, datapoints, of how many."""


def documented(gpus: int) -> dict[str, dict[str, Row]]:
    """Kind of endpoint to alarm to row, of the page's table, in the units of the metrics."""
    kinds: dict[str, dict[str, Row]] = {"single-model": {}, "multi-model": {}, "asynchronous": {}, "components": {}}
    of_kind = {
        "all": ["single-model", "multi-model", "asynchronous"],
        "real-time": ["single-model", "multi-model"],
        "single-model": ["single-model", "asynchronous"],
    }
    pattern = (
        r"^\| \[`(\w+)`\]\(runbook\.md#(\w+)\) \| `(\w+)` \| (\w+) \| "
        r"(above|below) (\d+) (%|s|requests)( of each GPU)? \| "
        r"(\d+) minutes? \| (\d+) of (\d+) \| ([\w-]+) \|$"
    )
    for name, anchor, metric, statistic, side, number, unit, each, minutes, breaching, of, kind in re.findall(
        pattern, (DOCS / "monitoring.md").read_text(), re.MULTILINE
    ):
        assert anchor == name.lower()
        comparison = {"above": "GreaterThanThreshold", "below": "LessThanThreshold"}[side]
        is_share = unit == "%" and (metric.startswith("Invocation") or metric == "ModelCacheHit")
        is_latency = unit == "s" and metric.startswith("Model")
        factor = 1_000_000 if is_latency else 0.01 if is_share else gpus if each else 1
        row = (metric, statistic, comparison, int(number) * factor, int(minutes) * 60, int(breaching), int(of))
        for each_kind in of_kind.get(kind, [kind]):
            kinds[each_kind][name] = row
    return kinds


def alarms(stack: cdk.Stack, construct: str) -> dict[str, dict[str, Any]]:
    """The alarms of an endpoint by name; of several variants, those of the last."""
    found = {}
    for logical_id, resource in Template.from_stack(stack).find_resources(ALARM).items():
        if match := re.fullmatch(rf"{construct}Variant\w+?Alarms(\w+)[0-9A-F]{{8}}", logical_id):
            found[match[1]] = dict(resource["Properties"])
    return found


def row(alarm: dict[str, Any]) -> Row:
    return (
        alarm["MetricName"],
        alarm.get("Statistic") or alarm["ExtendedStatistic"],
        alarm["ComparisonOperator"],
        alarm["Threshold"],
        alarm["Period"],
        alarm["DatapointsToAlarm"],
        alarm["EvaluationPeriods"],
    )


class TestAlarms:
    @pytest.mark.parametrize(("instance_type", "gpus"), [("ml.g5.2xlarge", 1), ("ml.g5.12xlarge", 4)])
    def test_a_single_model_endpoint_has_those_of_the_page(
        self, world: World, stack: cdk.Stack, instance_type: str, gpus: int
    ) -> None:
        platform = replace(world.platform, instance_type=instance_type)
        model = TritonModel(stack, "Model", repository=world.repository(), platform=platform)
        TritonEndpoint(stack, "Endpoint", model=model).monitor()

        rows = {name: row(alarm) for name, alarm in alarms(stack, "Endpoint").items()}
        assert rows == documented(gpus)["single-model"]
        assert rows["GpuUtilization"][3] == 90 * gpus

    def test_a_multi_model_endpoint_has_those_of_the_page(self, stack: cdk.Stack, fleet: TritonMultiModel) -> None:
        TritonEndpoint(stack, "Endpoint", model=fleet).monitor()

        assert {name: row(alarm) for name, alarm in alarms(stack, "Endpoint").items()} == documented(1)["multi-model"]

    def test_an_asynchronous_endpoint_has_those_of_the_page(self, stack: cdk.Stack, model: TritonModel) -> None:
        TritonEndpoint(stack, "Endpoint", model=model, asynchronous=AsyncInference()).monitor()

        found = alarms(stack, "Endpoint")
        assert {name: row(alarm) for name, alarm in found.items()} == documented(1)["asynchronous"]
        # The queue is that of the endpoint; what became of a request is known by variant.
        of_variant = {"ExpiredRequests": True, "FailedRequests": True, "OldestRequest": False}
        for name, has_variant in of_variant.items():
            names = {each["Name"] for each in found[name]["Dimensions"]}
            assert names == {"EndpointName"} | ({"VariantName"} if has_variant else set())
        assert "more than 0 requests failed" in found["FailedRequests"]["AlarmDescription"]

    def test_the_page_has_rows(self) -> None:
        kinds = documented(1)
        assert len(kinds["single-model"]) == 8
        assert set(kinds["multi-model"]) - set(kinds["single-model"]) == {"CacheMisses", "LoadingWait"}
        assert len(kinds["asynchronous"]) == 10

    def test_each_watches_its_variant_and_is_quiet_without_requests(self, stack: cdk.Stack, model: TritonModel) -> None:
        endpoint = TritonEndpoint(
            stack, "Endpoint", variants=[TritonVariant(model=model, variant_name=name) for name in ("Blue", "Green")]
        )
        monitoring = endpoint.monitor()
        made = monitoring.variants

        assert set(made) == {"Blue", "Green"}
        assert len(monitoring.alarms) == 2 * len(documented(1)["single-model"])
        for variant, of_variant in made.items():
            for alarm in of_variant.alarms:
                (found,) = (
                    resource["Properties"]
                    for name, resource in Template.from_stack(stack).find_resources(ALARM).items()
                    if name == stack.resolve(cast(cdk.CfnElement, alarm.node.default_child).logical_id)
                )
                assert found["Dimensions"] == [
                    {"Name": "EndpointName", "Value": stack.resolve(endpoint.endpoint_name)},
                    {"Name": "VariantName", "Value": variant},
                ]
                assert found["TreatMissingData"] == "notBreaching"

    def test_each_says_what_happened_and_where_the_runbook_is(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        TritonEndpoint(stack, "Endpoint", model=model).monitor(runbook_url="https://wiki.example.com/triton")

        found = alarms(stack, "Endpoint")
        for name, alarm in found.items():
            messages.record("alarm", alarm["AlarmDescription"])
            assert alarm["AlarmDescription"].startswith("Stack/Endpoint/VariantAllTraffic: ")
            assert alarm["AlarmDescription"].endswith(f" https://wiki.example.com/triton#{name.lower()}")
            assert f"\n## {name}\n" in (DOCS / "runbook.md").read_text()

    def test_without_a_runbook_each_says_what_to_do_first(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        """Who is called at night has no checkout of this library, and no page of it to open."""
        TritonEndpoint(stack, "Endpoint", model=model).monitor()

        for alarm in alarms(stack, "Endpoint").values():
            messages.record("alarm", alarm["AlarmDescription"])
            assert "Runbook" not in alarm["AlarmDescription"]
            assert len(alarm["AlarmDescription"]) > len(alarm["AlarmDescription"].partition(". ")[0]) + 40
        assert "Runbook" not in json.dumps(Template.from_stack(stack).to_json())

    def test_thresholds_of_ones_own(self, stack: cdk.Stack, model: TritonModel) -> None:
        TritonEndpoint(stack, "Endpoint", model=model).monitor(
            thresholds=AlarmThresholds(model_latency=cdk.Duration.millis(200), memory_percent=75.5, disk_percent=None)
        )

        found = alarms(stack, "Endpoint")
        assert found["ModelLatency"]["Threshold"] == 200_000
        assert "200 millis" in found["ModelLatency"]["AlarmDescription"]
        assert found["Memory"]["Threshold"] == 75.5
        assert "Disk" not in found

    @pytest.mark.parametrize(
        ("threshold", "value"),
        [
            pytest.param("memory_percent", 0, id="nothing"),
            pytest.param("cache_hit_percent", 100.1, id="more than all"),
            pytest.param("server_errors_percent", 100, id="nothing is above that"),
            pytest.param("disk_percent", True, id="a truth value"),
            pytest.param("disk_percent", float("nan"), id="no number"),
            pytest.param("gpu_utilization_percent", cdk.Token.as_number({"Ref": "X"}), id="a token"),
            pytest.param("model_latency", cdk.Duration.seconds(0), id="no time"),
            pytest.param("loading_wait", 30, id="no Duration"),
            pytest.param("model_latency", cdk.Duration.hours(1), id="no request takes that long"),
            pytest.param("oldest_request", cdk.Duration.hours(6), id="no request waits that long"),
            pytest.param("failed_requests", -1, id="fewer than none"),
            pytest.param("failed_requests", 1.5, id="a part of a request"),
            pytest.param("no_capacity_requests", -1, id="fewer requests without a copy than none"),
        ],
    )
    def test_a_threshold_that_means_nothing_is_rejected(self, messages: Messages, threshold: str, value: Any) -> None:
        with pytest.raises(ConfigurationError, match=threshold) as caught:
            AlarmThresholds(**{threshold: value})
        messages.record("ConfigurationError", re.sub(r"-1\.\d+e\+\d+", "<token>", str(caught.value)))

    def test_a_shadow_wakes_nobody(self, stack: cdk.Stack, model: TritonModel) -> None:
        shadow = TritonVariant(model=model, variant_name="Shadow")
        monitoring = TritonEndpoint(stack, "Endpoint", variants=[TritonVariant(model=model)], shadow=shadow).monitor()

        assert set(monitoring.variants) == {"AllTraffic"}
        body = json.dumps(Template.from_stack(stack).find_resources("AWS::CloudWatch::Dashboard"))
        assert "## Variant Shadow: 25.09-a10g on ml.g5.2xlarge" in body

    def test_those_of_every_variant_can_roll_back_an_update(self, stack: cdk.Stack, model: TritonModel) -> None:
        endpoint = TritonEndpoint(
            stack,
            "Endpoint",
            variants=[TritonVariant(model=model, variant_name=name) for name in ("Blue", "Green")],
            endpoint_name="search",
            deployment_policy=AllAtOnce(termination_wait=cdk.Duration.minutes(10)),
        )
        monitoring = endpoint.monitor()
        endpoint.roll_back_on(monitoring.errors, monitoring.latency, monitoring.variants["Blue"].memory)

        template = Template.from_stack(stack)  # which says so where there is a dependency cycle
        (resource,) = template.find_resources("AWS::SageMaker::Endpoint").values()
        alarms = resource["Properties"]["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
        assert [re.sub(r"Endpoint(.*)[0-9A-F]{8}", r"\1", each["AlarmName"]["Ref"]) for each in alarms] == [
            "VariantBlueAlarmsServerErrors",
            "VariantBlueAlarmsModelErrors",
            "VariantGreenAlarmsServerErrors",
            "VariantGreenAlarmsModelErrors",
            "VariantBlueAlarmsModelLatency",
            "VariantGreenAlarmsModelLatency",
            "VariantBlueAlarmsMemory",
        ]

    def test_each_is_an_attribute(self, stack: cdk.Stack, model: TritonModel) -> None:
        alarms = TritonEndpoint(stack, "Endpoint", model=model).monitor().variants["AllTraffic"]

        assert (alarms.server_errors, alarms.model_latency, alarms.gpu_memory, alarms.disk) == tuple(
            each for each in alarms.alarms if each.node.id in {"ServerErrors", "ModelLatency", "GpuMemory", "Disk"}
        )

    def test_one_that_does_not_exist_is_a_sentence(
        self, messages: Messages, stack: cdk.Stack, model: TritonModel
    ) -> None:
        off = AlarmThresholds(disk_percent=None)
        alarms = TritonEndpoint(stack, "Endpoint", model=model).monitor(thresholds=off).variants["AllTraffic"]
        with pytest.raises(ConfigurationError) as caught:
            _ = alarms.disk
        messages.record("ConfigurationError", str(caught.value))
        assert not hasattr(alarms, "disk")

    @pytest.mark.parametrize("kind", ["model", "fleet", "asynchronous"])
    def test_every_alarm_of_an_endpoint_has_one(
        self, request: pytest.FixtureRequest, stack: cdk.Stack, kind: str
    ) -> None:
        served = request.getfixturevalue("fleet" if kind == "fleet" else "model")
        called = AsyncInference() if kind == "asynchronous" else None
        alarms = TritonEndpoint(stack, "Endpoint", model=served, asynchronous=called).monitor().variants["AllTraffic"]
        names = {re.sub("(?<!^)(?=[A-Z])", "_", each.node.id).lower(): each for each in alarms.alarms}
        assert {name: getattr(alarms, name) for name in names} == names


class TestTopic:
    def test_alarms_publish_to_a_topic_that_lets_them(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        topic = sns.Topic(stack, "Topic", master_key=kms.Key(stack, "Key"), enforce_ssl=True)
        TritonEndpoint(stack, "Endpoint", model=model).monitor(topic=topic)

        for alarm in alarms(stack, "Endpoint").values():
            assert alarm["AlarmActions"] == [stack.resolve(topic.topic_arn)]
        alarm_service = {"Service": "cloudwatch.amazonaws.com"}
        policy = world.only(stack, "AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
        assert ("sns:Publish", alarm_service) in [(each["Action"], each.get("Principal")) for each in policy]
        key = world.only(stack, "AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"]
        assert ["kms:Decrypt", "kms:GenerateDataKey*"] in [
            each["Action"] for each in key if each["Principal"] == alarm_service
        ]
        # Alarms of another account are none of the topic's.
        own = {"StringEquals": {"aws:SourceAccount": stack.resolve(stack.account)}}
        assert [each["Condition"] for each in [*policy, *key] if each["Principal"] == alarm_service] == [own, own]

    def test_without_a_topic_alarms_do_nothing(self, stack: cdk.Stack, model: TritonModel) -> None:
        TritonEndpoint(stack, "Endpoint", model=model).monitor()

        assert not any("AlarmActions" in alarm for alarm in alarms(stack, "Endpoint").values())


def test_an_endpoint_is_monitored_once(messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)
    endpoint.monitor()
    with messages.raises(ConfigurationError):
        endpoint.monitor()


@pytest.mark.parametrize(
    "runbook",
    [
        pytest.param("", id="none"),
        pytest.param("https://wiki.example.com/triton#alarms", id="with a fragment"),
        pytest.param("the wiki", id="no address"),
    ],
)
def test_a_runbook_that_cannot_be_added_to_is_rejected(
    messages: Messages, stack: cdk.Stack, model: TritonModel, runbook: str
) -> None:
    with messages.raises(ConfigurationError):
        TritonEndpoint(stack, "Endpoint", model=model).monitor(runbook_url=runbook)
