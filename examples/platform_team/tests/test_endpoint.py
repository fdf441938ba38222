"""The properties of every product team's endpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx.parser
import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Match, Template
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks

from acme_triton import AcmeEndpoint
from cdk_triton import ModelRepository

NETWORK = """
<ir_version: 8, opset_import: ["" : 17]>
graph (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }
"""
CONFIGURATION = """
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""


def repository(directory: Path) -> ModelRepository:
    model = directory / "models" / "network"
    (model / "1").mkdir(parents=True, exist_ok=True)
    (model / "config.pbtxt").write_text(CONFIGURATION)
    (model / "1" / "model.onnx").write_bytes(onnx.parser.parse_model(NETWORK).SerializeToString())
    return ModelRepository.from_directory(directory / "models")


@pytest.fixture(name="app")
def _app(tmp_path: Path) -> App:
    return App(outdir=str(tmp_path / "cdk.out"), builtin_cloud_formation_validation=False)


@pytest.fixture(name="search")
def _search(app: App, tmp_path: Path) -> AcmeEndpoint:
    return AcmeEndpoint(Stack(app, "Search"), "Search", team="search", ensembles={"text": repository(tmp_path)})


@pytest.fixture(name="template")
def _template(search: AcmeEndpoint) -> Template:
    return Template.from_stack(Stack.of(search))


def parameter(template: Template, name: str) -> dict[str, str]:
    """The reference to a parameter of Systems Manager."""
    (found,) = template.find_parameters("*", {"Default": f"/acme/ml/{name}"})
    return {"Ref": found}


def test_the_instances_are_in_the_companys_network(template: Template) -> None:
    subnets = [parameter(template, "subnet-a"), parameter(template, "subnet-b")]

    template.has_resource_properties("AWS::SageMaker::Model", {"VpcConfig": Match.object_like({"Subnets": subnets})})
    template.has_resource_properties("AWS::EC2::SecurityGroup", {"VpcId": parameter(template, "vpc")})


def test_every_alarm_calls_whoever_is_on_duty(template: Template) -> None:
    alarms = template.find_resources("AWS::CloudWatch::Alarm").values()

    assert len(alarms) > 5
    assert all(alarm["Properties"]["AlarmActions"] == [parameter(template, "pager")] for alarm in alarms)
    assert all("https://runbooks.acme.example/triton#" in str(alarm["Properties"]) for alarm in alarms)


def test_everything_that_can_be_tagged_says_whose_it_is(template: Template) -> None:
    kinds = ("AWS::SageMaker::Endpoint", "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Model", "AWS::IAM::Role")
    for kind in kinds:
        for resource in template.find_resources(kind).values():
            tags = {tag["Key"]: tag["Value"] for tag in resource["Properties"]["Tags"]}
            assert tags.items() >= {"acme:team": "search", "acme:service": "triton"}.items()


def test_it_grows_with_the_requests(template: Template) -> None:
    template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalableTarget", {"MinCapacity": 2, "MaxCapacity": 4}
    )
    template.resource_count_is("AWS::ApplicationAutoScaling::ScalingPolicy", 1)


def test_the_teams_endpoints_share_one_store_that_the_companys_key_encrypts(
    app: App, search: AcmeEndpoint, tmp_path: Path
) -> None:
    AcmeEndpoint(Stack(app, "Ads"), "Ads", team="search", ensembles={"text": repository(tmp_path)})
    store = app.node.find_child("search-artifacts")
    assert isinstance(store, Stack)
    template = Template.from_stack(store)

    key: dict[str, Any] = {"KMSMasterKeyID": parameter(template, "key"), "SSEAlgorithm": "aws:kms"}
    rule = Match.object_like({"ServerSideEncryptionByDefault": key})
    template.has_resource_properties(
        "AWS::S3::Bucket", {"BucketEncryption": {"ServerSideEncryptionConfiguration": [rule]}}
    )
    assert store in Stack.of(search).dependencies


def test_the_stacks_pass_the_companys_rules(app: App, search: AcmeEndpoint) -> None:
    app.synth()  # only then references to other stacks are what the template says
    for stack in (Stack.of(search), app.node.find_child("search-artifacts")):
        for rules in (AwsSolutionsChecks, NIST80053R5Checks):
            report = rules().validate_scope(stack)
            assert [violation.rule_name for violation in report.violations or []] == []


def test_callers_know_the_target_models(search: AcmeEndpoint) -> None:
    assert list(search.target_models) == ["text"]


def test_the_example_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDK_VALIDATION", "false")
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)

    exec(compile(example, "README.md", "exec"), {})  # as a team would write it
