"""What `cdk-triton doctor --app` says of the instances that the app's endpoints need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages

TYPE = "ml.g5.xlarge"
QUOTA = f"{TYPE} for endpoint usage"
SECOND = "ml.g4dn.xlarge"
SUBJECT = "instances of the app"
SUBJECT_OF_ALL = "all instances of the app"
ACROSS = "Number of instances across active endpoints"
ROLLING = {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 30}}}
BATCH_OF_ONE = {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1}}}


MANAGED = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 3}
POOLS = [{"InstanceType": SECOND, "Priority": 2}, {"InstanceType": TYPE, "Priority": 1}]


def _endpoint(
    id: str, count: object, *, most: int = 0, policy: object = None, shadow: int = 0, **more: object
) -> dict[str, Any]:
    """The resources of an endpoint with one variant, which is scaled to `most`, and with a shadow.

    The variant has an instance type unless `more` contains `InstancePools`; `AsyncInferenceConfig` belongs to the
    endpoint configuration.
    """
    machine = {} if "InstancePools" in more else {"InstanceType": TYPE}
    asynchronous = {"AsyncInferenceConfig": more.pop("AsyncInferenceConfig")} if "AsyncInferenceConfig" in more else {}
    variant = {"VariantName": "AllTraffic", "InitialInstanceCount": count, **machine, **more}
    copied = {"VariantName": "Shadow", "InitialInstanceCount": shadow, "InstanceType": TYPE}
    shadows = {"ShadowProductionVariants": [copied]} if shadow else {}
    join = ["", ["endpoint/", {"Fn::GetAtt": [id, "EndpointName"]}, "/variant/AllTraffic"]]
    target = {"ResourceId": {"Fn::Join": join}, "MaxCapacity": most}
    endpoint = {"EndpointConfigName": {"Fn::GetAtt": [f"{id}Config", "EndpointConfigName"]}}
    if policy:
        endpoint["DeploymentConfig"] = policy  # type: ignore[assignment]  # another shape of value
    found: dict[str, tuple[str, dict[str, Any]]] = {
        id: ("AWS::SageMaker::Endpoint", endpoint),
        f"{id}Config": (
            "AWS::SageMaker::EndpointConfig",
            {"ProductionVariants": [variant], **shadows, **asynchronous},
        ),
    }
    if most:
        found[f"{id}Target"] = ("AWS::ApplicationAutoScaling::ScalableTarget", target)
    return {id: {"Type": kind, "Properties": properties} for id, (kind, properties) in found.items()}


def _template(*endpoints: dict[str, Any]) -> dict[str, Any]:
    return {"Resources": {id: each for endpoint in endpoints for id, each in endpoint.items()}}


@pytest.mark.parametrize(
    ("endpoints", "quota", "grade"),
    [
        pytest.param([_endpoint("Search", 2)], 1, "error", id="fewer than the endpoint begins with"),
        pytest.param([_endpoint("Search", 2), _endpoint("Other", 1)], 2, "error", id="fewer than both begin with"),
        pytest.param([_endpoint("Search", 2)], 3, "warning", id="no room for an update"),
        pytest.param([_endpoint("Search", 2)], 4, "ok", id="room for an update"),
        pytest.param([_endpoint("Search", 2), _endpoint("Other", 1)], 5, "warning", id="room for an update of one"),
        pytest.param([_endpoint("Search", 2), _endpoint("Other", 1)], 6, "ok", id="room for an update of both"),
        pytest.param([_endpoint("Search", 2, most=4)], 4, "warning", id="no room for an update when scaled out"),
        pytest.param([_endpoint("Search", 2, most=4)], 8, "ok", id="room for an update when scaled out"),
        pytest.param([_endpoint("Search", 4, policy=ROLLING)], 5, "warning", id="no room for a batch"),
        pytest.param([_endpoint("Search", 4, policy=ROLLING)], 6, "ok", id="room for a batch"),
        pytest.param([_endpoint("Search", 4, policy=BATCH_OF_ONE)], 5, "ok", id="room for a batch of one"),
        pytest.param([_endpoint("Search", 1, shadow=1)], 1, "error", id="fewer than with the shadow"),
        pytest.param([_endpoint("Search", 1, shadow=1)], 4, "ok", id="room for an update with the shadow"),
        pytest.param([_endpoint("Batch", 1, most=3, AsyncInferenceConfig={})], 5, "warning", id="asynchronous"),
        pytest.param([_endpoint("Batch", 1, most=3, AsyncInferenceConfig={})], 6, "ok", id="asynchronous, room"),
        pytest.param([_endpoint("Parts", 1, ManagedInstanceScaling=MANAGED)], 5, "warning", id="components"),
        pytest.param([_endpoint("Parts", 1, ManagedInstanceScaling=MANAGED)], 6, "ok", id="components, room"),
        pytest.param(
            [_endpoint("Parts", 1, ManagedInstanceScaling={**MANAGED, "Status": "DISABLED"})],
            2,
            "ok",
            id="components that are not scaled",
        ),
    ],
)
def test_a_quota(endpoints: list[dict[str, Any]], quota: int, grade: str, doctor: Any, aws: Any, assembly: Any) -> None:
    listed = {"QuotaName": QUOTA, "QuotaCode": "L-12345678", "Value": float(quota)}
    aws.answers("ListServiceQuotas", {"Quotas": [listed]})
    assert doctor("--app", assembly("Served", _template(*endpoints))).graded(SUBJECT) == grade


def test_the_instances_of_an_update_are_told_from_those_that_serve(doctor: Any, aws: Any, assembly: Any) -> None:
    aws.answers("ListServiceQuotas", {"Quotas": [{"QuotaName": QUOTA, "QuotaCode": "L-12345678", "Value": 4.0}]})
    outcome = doctor("--app", assembly("Served", _template(_endpoint("Search", 1))))
    assert "instances of the app: 1 ml.g5.xlarge at most, 2 while an update runs, and the quota" in outcome.out


def test_an_endpoint_may_start_without_instances(messages: Messages, doctor: Any, aws: Any, assembly: Any) -> None:
    aws.answers("ListServiceQuotas", {"Quotas": [{"QuotaName": QUOTA, "QuotaCode": "L-12345678", "Value": 2.0}]})
    out = doctor("--app", assembly("Served", _template(_endpoint("Batch", 0, most=3, AsyncInferenceConfig={})))).out

    (line,) = (line for line in _unfolded(out) if f" {SUBJECT}: " in line and QUOTA in line)
    messages.record("cdk-triton doctor", line)
    assert "start with 0 ml.g5.xlarge, and may scale out to 3" in line


@pytest.mark.parametrize(
    ("quotas", "grades"),
    [
        pytest.param({TYPE: 1, SECOND: 4}, {TYPE: "error", SECOND: "ok"}, id="fewer than the first pool begins with"),
        pytest.param({TYPE: 4, SECOND: 0}, {TYPE: "ok", SECOND: "warning"}, id="none of the second pool"),
        pytest.param({TYPE: 4, SECOND: 3}, {TYPE: "ok", SECOND: "warning"}, id="no room for an update there"),
        pytest.param({TYPE: 4, SECOND: 4}, {TYPE: "ok", SECOND: "ok"}, id="room in both"),
    ],
)
def test_each_pool_needs_room_for_all_instances(
    messages: Messages, quotas: dict[str, int], grades: dict[str, str], doctor: Any, aws: Any, assembly: Any
) -> None:
    listed = [
        {"QuotaName": f"{kind} for endpoint usage", "QuotaCode": "L-12345678", "Value": float(value)}
        for kind, value in quotas.items()
    ]
    aws.answers("ListServiceQuotas", {"Quotas": listed})

    out = doctor("--app", assembly("Served", _template(_endpoint("Search", 2, InstancePools=POOLS)))).out

    for kind, grade in grades.items():
        (line,) = (line for line in _unfolded(out) if f" {SUBJECT}: " in line and f"'{kind} for" in line)
        messages.record("cdk-triton doctor", line)
        assert line.split()[0] == grade


def test_a_type_may_be_needed_by_one_variant_and_be_the_fallback_of_another(
    messages: Messages, doctor: Any, aws: Any, assembly: Any
) -> None:
    listed = {"QuotaName": QUOTA, "QuotaCode": "L-12345678", "Value": 2.0}
    aws.answers("ListServiceQuotas", {"Quotas": [listed]})
    falling = _endpoint("Other", 3, InstancePools=[{**pool, "Priority": 3 - pool["Priority"]} for pool in POOLS])  # type: ignore[operator]

    out = doctor("--app", assembly("Served", _template(_endpoint("Search", 1), falling))).out

    (line,) = (line for line in _unfolded(out) if f" {SUBJECT}: " in line and QUOTA in line and "start" in line)
    messages.record("cdk-triton doctor", line)
    assert line.split()[0] == "warning"


@pytest.mark.parametrize("pools", [{"Fn::If": ["Large", [], []]}, [{"InstanceType": {"Ref": "Type"}, "Priority": 1}]])
def test_pools_that_only_a_deployment_knows_are_left_out(pools: object, doctor: Any, aws: Any, assembly: Any) -> None:
    outcome = doctor("--app", assembly("Served", _template(_endpoint("Search", 1, InstancePools=pools))))
    assert SUBJECT not in outcome.out


@pytest.mark.parametrize(("value", "grade"), [(3, "error"), (4, "warning"), (8, "ok")])
def test_all_types_together_have_a_quota_that_counts_a_pool_once(
    value: int, grade: str, doctor: Any, aws: Any, assembly: Any
) -> None:
    aws.answers("ListServiceQuotas", {"Quotas": [{"QuotaName": ACROSS, "QuotaCode": "L-7A3DF611", "Value": value}]})
    app = _template(_endpoint("Search", 2, InstancePools=POOLS), _endpoint("Other", 2))

    assert doctor("--app", assembly("Served", app)).graded(SUBJECT_OF_ALL) == grade


def _unfolded(out: str) -> list[str]:
    """The lines of a report, in which a line that goes on is indented."""
    return out.replace("\n    ", " ").splitlines()


def test_a_count_that_only_a_deployment_knows_is_left_out(doctor: Any, aws: Any, assembly: Any) -> None:
    outcome = doctor("--app", assembly("Served", _template(_endpoint("Search", {"Ref": "Count"}))))
    assert SUBJECT not in outcome.out


def test_a_quota_that_no_list_has_is_unknown(doctor: Any, aws: Any, assembly: Any) -> None:
    for operation in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas"):
        aws.answers(operation, {"Quotas": []})
    assert doctor("--app", assembly("Served", _template(_endpoint("Search", 1)))).graded(SUBJECT) == "unknown"
