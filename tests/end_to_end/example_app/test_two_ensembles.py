"""The main job: two ensembles on one multi-model endpoint, deployed by the unmodified CLI, asked with real input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.docs.blocks import of_kind

COMMANDS, CALL = of_kind("end_to_end/example_app/test_two_ensembles.py")
SENTENCES = [["A man is eating food."], ["A man is eating a piece of bread."]]
PUBLISHED_COSINE = 0.7553  # model card of all-MiniLM-L6-v2
EGYPTIAN_CAT = 285


@pytest.fixture
def jpeg() -> Any:
    photograph = Path(__file__).parents[3] / "examples/photographs/chelsea.jpg"
    return np.frombuffer(photograph.read_bytes(), dtype=np.uint8)[np.newaxis]


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_text_ensemble_reproduces_the_published_cosine(example_app: Any, binary: bool) -> None:
    outputs = example_app.outputs("TwoEnsembles")
    first, second = example_app.ask(
        outputs["EndpointName"], "finaloutput", {"INPUT0": SENTENCES}, target_model=outputs["TextModel"], binary=binary
    )
    assert first @ second == pytest.approx(PUBLISHED_COSINE, abs=5e-5)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_image_ensemble_recognises_the_cat_of_a_photograph(example_app: Any, jpeg: Any, binary: bool) -> None:
    outputs = example_app.outputs("TwoEnsembles")
    answer = example_app.ask(
        outputs["EndpointName"], "OUTPUT", {"INPUT": jpeg}, target_model=outputs["ImageModel"], binary=binary
    )
    assert answer.shape == (1, 1000)
    assert answer.sum() == pytest.approx(1, abs=1e-4)
    assert answer.argmax() == EGYPTIAN_CAT


def test_application_auto_scaling_has_the_limits_and_policies_of_the_stack(example_app: Any) -> None:
    endpoint = example_app.outputs("TwoEnsembles")["EndpointName"]
    scaling = example_app.client("application-autoscaling")
    variant = {"ServiceNamespace": "sagemaker", "ScalableDimension": "sagemaker:variant:DesiredInstanceCount"}
    resource = f"endpoint/{endpoint}/variant/AllTraffic"
    (target,) = scaling.describe_scalable_targets(**variant, ResourceIds=[resource])["ScalableTargets"]
    stored = scaling.describe_scaling_policies(**variant, ResourceId=resource)["ScalingPolicies"]
    tracked = [policy["TargetTrackingScalingPolicyConfiguration"] for policy in stored]
    requests, gpu = sorted(tracked, key=lambda each: each["TargetValue"], reverse=True)

    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 4)
    assert target["RoleARN"].endswith("/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint")
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    assert (requests["PredefinedMetricSpecification"], requests["TargetValue"]) == (metric, 1200)
    custom = gpu["CustomizedMetricSpecification"]
    assert (custom["Namespace"], custom["MetricName"]) == ("/aws/sagemaker/Endpoints", "GPUUtilization")
    assert custom["Dimensions"] == dimensions(endpoint)
    assert (gpu["TargetValue"], gpu["ScaleInCooldown"], gpu["ScaleOutCooldown"]) == (60, 600, 300)


def test_cloudwatch_has_the_alarms_and_the_dashboard_of_the_stack(example_app: Any) -> None:
    endpoint = example_app.outputs("TwoEnsembles")["EndpointName"]
    cloudwatch = example_app.client("cloudwatch")
    alarms = cloudwatch.describe_alarms()["MetricAlarms"]
    (entry,) = cloudwatch.list_dashboards()["DashboardEntries"]
    widgets = json.loads(cloudwatch.get_dashboard(DashboardName=entry["DashboardName"])["DashboardBody"])["widgets"]
    (topic,) = example_app.client("sns").list_topics()["Topics"]

    assert {alarm["MetricName"] for alarm in alarms} >= {"Invocation5XXErrors", "GPUUtilization", "ModelCacheHit"}
    assert {json.dumps(alarm["Dimensions"]) for alarm in alarms} == {json.dumps(dimensions(endpoint))}
    assert {action for alarm in alarms for action in alarm["AlarmActions"]} == {topic["TopicArn"]}
    (shown,) = (widget["properties"]["alarms"] for widget in widgets if widget["type"] == "alarm")
    assert set(shown) == {alarm["AlarmArn"] for alarm in alarms}


def dimensions(endpoint: str) -> list[dict[str, str]]:
    return [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": "AllTraffic"}]


def test_the_call_of_the_page_prints_what_its_comments_promise(example_app: Any, run_call: Any) -> None:
    cosine, number = run_call(CALL, example_app.outputs("TwoEnsembles"))
    assert cosine.startswith(str(PUBLISHED_COSINE))
    assert number == str(EGYPTIAN_CAT)


def test_the_commands_of_the_readme_deploy_and_change_nothing_the_second_time(run_commands: Any) -> None:
    assert "(no changes)" in run_commands(COMMANDS)


def test_diff_of_an_unchanged_app_is_empty(example_app: Any) -> None:
    assert "Number of stacks with differences: 0" in example_app.cdk("diff", "TwoEnsembles")


def test_the_single_model_stack_deploys_answers_and_goes_without_touching_the_other(
    example_app: Any, jpeg: Any
) -> None:
    app = f"--app={example_app.assembly}"
    example_app.deploy("ImageClassification", app)
    single = example_app.outputs("ImageClassification")["EndpointName"]
    fleet = example_app.outputs("TwoEnsembles")
    alone = example_app.ask(single, "OUTPUT", {"INPUT": jpeg})
    shared = example_app.ask(fleet["EndpointName"], "OUTPUT", {"INPUT": jpeg}, target_model=fleet["ImageModel"])
    np.testing.assert_allclose(alone, shared, atol=1e-6)
    example_app.cdk("destroy", "ImageClassification", "--force", app)
    names = [endpoint["EndpointName"] for endpoint in example_app.client("sagemaker").list_endpoints()["Endpoints"]]
    assert names == [fleet["EndpointName"]]
