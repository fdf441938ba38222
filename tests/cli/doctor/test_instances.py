"""What `cdk-triton doctor --app` says of the instances that the app's endpoints need."""

from __future__ import annotations

from typing import Any

import pytest

TYPE = "ml.g5.xlarge"
QUOTA = f"{TYPE} for endpoint usage"
SUBJECT = "instances of the app"
ROLLING = {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 30}}}
BATCH_OF_ONE = {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1}}}


def _endpoint(id: str, count: object, *, most: int = 0, policy: object = None) -> dict[str, Any]:
    """The resources of an endpoint with one variant, which is scaled to `most`."""
    variant = {"VariantName": "AllTraffic", "InstanceType": TYPE, "InitialInstanceCount": count}
    join = ["", ["endpoint/", {"Fn::GetAtt": [id, "EndpointName"]}, "/variant/AllTraffic"]]
    target = {"ResourceId": {"Fn::Join": join}, "MaxCapacity": most}
    endpoint = {"EndpointConfigName": {"Fn::GetAtt": [f"{id}Config", "EndpointConfigName"]}}
    if policy:
        endpoint["DeploymentConfig"] = policy  # type: ignore[assignment]  # another shape of value
    found = {
        id: ("AWS::SageMaker::Endpoint", endpoint),
        f"{id}Config": ("AWS::SageMaker::EndpointConfig", {"ProductionVariants": [variant]}),
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
        pytest.param([_endpoint("Search", 2), _endpoint("Other", 1)], 5, "ok", id="room for an update of either"),
        pytest.param([_endpoint("Search", 2, most=4)], 4, "warning", id="no room for an update when scaled out"),
        pytest.param([_endpoint("Search", 2, most=4)], 8, "ok", id="room for an update when scaled out"),
        pytest.param([_endpoint("Search", 4, policy=ROLLING)], 5, "warning", id="no room for a batch"),
        pytest.param([_endpoint("Search", 4, policy=ROLLING)], 6, "ok", id="room for a batch"),
        pytest.param([_endpoint("Search", 4, policy=BATCH_OF_ONE)], 5, "ok", id="room for a batch of one"),
    ],
)
def test_a_quota(endpoints: list[dict[str, Any]], quota: int, grade: str, doctor: Any, aws: Any, assembly: Any) -> None:
    listed = {"QuotaName": QUOTA, "QuotaCode": "L-12345678", "Value": float(quota)}
    aws.answers("ListServiceQuotas", {"Quotas": [listed]})
    assert doctor("--app", assembly("Served", _template(*endpoints))).graded(SUBJECT) == grade


def test_a_count_that_only_a_deployment_knows_is_left_out(doctor: Any, aws: Any, assembly: Any) -> None:
    outcome = doctor("--app", assembly("Served", _template(_endpoint("Search", {"Ref": "Count"}))))
    assert SUBJECT not in outcome.out


def test_a_quota_that_no_list_has_is_unknown(doctor: Any, aws: Any, assembly: Any) -> None:
    for operation in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas"):
        aws.answers(operation, {"Quotas": []})
    assert doctor("--app", assembly("Served", _template(_endpoint("Search", 1)))).graded(SUBJECT) == "unknown"
