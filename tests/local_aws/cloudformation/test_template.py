"""Reading templates, intrinsic functions, parameters, rules, and the order of resources."""

from __future__ import annotations

import contextlib
import graphlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.intrinsics import UNKNOWN, Environment, Resolver, references
from cdk_triton_local.cloudformation.order import creation_order
from cdk_triton_local.cloudformation.parameters import ParameterValue, check_rules, resolve_parameters
from cdk_triton_local.cloudformation.template import parse_template

if TYPE_CHECKING:
    from golden_messages import Messages

HERE = Environment(region="eu-west-1", account="123456789012", stack_name="Shop", stack_id="arn:shop")


@pytest.fixture
def resolver() -> Resolver:
    return Resolver(
        environment=HERE,
        parameters={"Stage": "prod", "Zones": ["a", "b"]},
        mappings={"Accounts": {"eu-west-1": {"id": "42"}}},
        conditions={
            "IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
            "Not": {"Fn::Not": [{"Condition": "IsProd"}]},
        },
        reference=lambda name: {"Bucket": "shop-bucket"}.get(name, UNKNOWN),
        attribute=lambda name, attribute: f"{name}/{attribute}" if name == "Bucket" else UNKNOWN,
        exports={"Other:Name": "exported"},
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "AWS::Region"}, "eu-west-1"),
        ({"Ref": "Zones"}, ["a", "b"]),
        ({"Fn::GetAtt": ["Bucket", "Arn"]}, "Bucket/Arn"),
        ({"Fn::GetAtt": "Bucket.Arn"}, "Bucket/Arn"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Bucket"}, 3, True]]}, "a-shop-bucket-3-true"),
        (
            {"Fn::Sub": "${Bucket}.${Bucket.Arn}.${!Literal}.${AWS::AccountId}"},
            "shop-bucket.Bucket/Arn.${Literal}.123456789012",
        ),
        ({"Fn::Sub": ["${x}-${Stage}", {"x": {"Ref": "Bucket"}}]}, "shop-bucket-prod"),
        ({"Fn::Select": ["1", {"Fn::Split": [",", "a,b,c"]}]}, "b"),
        ({"Fn::If": ["IsProd", 1, 2]}, 1),
        ({"Fn::If": ["Not", 1, 2]}, 2),
        ({"a": {"Fn::If": ["Not", 1, {"Ref": "AWS::NoValue"}]}, "b": [{"Ref": "AWS::NoValue"}, 1]}, {"b": [1]}),
        ({"Fn::FindInMap": ["Accounts", {"Ref": "AWS::Region"}, "id"]}, "42"),
        ({"Fn::FindInMap": ["Accounts", "nowhere", "id", {"DefaultValue": "0"}]}, "0"),
        ({"Fn::ImportValue": {"Fn::Sub": "Other:Name"}}, "exported"),
        ({"Fn::Base64": "text"}, "dGV4dA=="),
        ({"Fn::GetAZs": ""}, ["eu-west-1a", "eu-west-1b", "eu-west-1c"]),
        ({"Fn::ToJsonString": {"name": {"Ref": "Bucket"}}}, '{"name":"shop-bucket"}'),
        ({"Fn::Length": {"Ref": "Zones"}}, 2),
        ({"Fn::Join": ["", ["a", {"Ref": "NotYet"}]]}, UNKNOWN),
        ({"Fn::Sub": "${NotYet.Arn}"}, UNKNOWN),
        ({"Ref": "Stage", "And": "more"}, {"Ref": "Stage", "And": "more"}),
    ],
    ids=lambda value: json.dumps(value, default=str)[:60],
)
def test_an_intrinsic_function_gives_what_cloudformation_gives(resolver: Resolver, value: Any, expected: Any) -> None:
    assert resolver.resolve(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Fn::FindInMap": ["Accounts", "mars", "id"]}, "Unable to get mapping for Accounts::mars::id"),
        ({"Fn::ImportValue": "Nobody"}, "No export named Nobody found."),
    ],
    ids=["mapping", "export"],
)
def test_a_name_that_there_is_not_is_told_in_cloudformations_words(
    resolver: Resolver, value: Any, message: str
) -> None:
    with pytest.raises(TemplateError, match=re.escape(message)):
        resolver.resolve(value)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        pytest.param({"Fn::Cidr": ["10.0.0.0/16", 2]}, "'Fn::Cidr'", id="function not modelled"),
        pytest.param({"Fn::Select": [3, ["a"]]}, "Fn::Select", id="index out of range"),
        pytest.param({"Fn::If": ["Undefined", 1, 2]}, "'Undefined'", id="undefined condition"),
        pytest.param({"Fn::GetAtt": ["OnlyName"]}, "Fn::GetAtt", id="no attribute"),
        pytest.param("{{resolve:secretsmanager:x}}", "'{{resolve:secretsmanager:x}}'", id="dynamic reference"),
    ],
)
def test_what_cannot_be_resolved_is_a_sentence(messages: Messages, resolver: Resolver, value: Any, named: str) -> None:
    with messages.raises(TemplateError) as caught:
        resolver.resolve(value)
    assert named in str(caught.value)


def test_yaml_short_forms_and_dates_read_like_their_json() -> None:
    template = parse_template(
        """
        Conditions:
          Always: !Equals [a, a]
        Resources:
          Bucket:
            Type: AWS::S3::Bucket
            Condition: Always
            DependsOn: Topic
            DeletionPolicy: Retain
            Properties:
              BucketName: !Sub "${AWS::StackName}-x"
              Tags: [{Key: k, Value: !GetAtt Topic.TopicArn}, {Key: d, Value: 2012-10-17}]
          Topic: {Type: AWS::SNS::Topic}
        """
    )
    bucket = template.resources["Bucket"]
    assert bucket.properties == {
        "BucketName": {"Fn::Sub": "${AWS::StackName}-x"},
        "Tags": [
            {"Key": "k", "Value": {"Fn::GetAtt": ["Topic", "TopicArn"]}},
            {"Key": "d", "Value": "2012-10-17"},
        ],
    }
    assert (bucket.depends_on, bucket.condition, bucket.deletion_policy) == (("Topic",), "Always", "Retain")
    assert template.conditions == {"Always": {"Fn::Equals": ["a", "a"]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Template format error: JSON not well-formed."),
        ("a: [", "Template format error: YAML not well-formed."),
        ("{}", "Template format error: At least one Resources member must be defined."),
    ],
    ids=["JSON", "YAML", "no resource"],
)
def test_a_template_that_is_none_is_rejected_in_cloudformations_words(text: str, message: str) -> None:
    with pytest.raises(TemplateError, match=f"^{re.escape(message)}"):
        parse_template(text)


@pytest.mark.parametrize(
    ("template", "named"),
    [
        pytest.param({"Transform": "x", "Resources": {"A": {"Type": "T"}}}, "'Transform'", id="section"),
        pytest.param({"Resources": {"A": {}}}, "'A'", id="no type"),
        pytest.param({"Resources": {"A": {"Type": "T", "UpdatePolicy": {}}}}, "'UpdatePolicy'", id="attribute"),
        pytest.param({"Resources": {"A": {"Type": "T", "DeletionPolicy": "Snapshot"}}}, "'Snapshot'", id="policy"),
        pytest.param({"Resources": {"A": {"Type": "T"}}, "Outputs": {"O": {}}}, "'O'", id="output without a value"),
        pytest.param({"Resources": {f"R{i}": {"Type": "T"} for i in range(501)}}, "501", id="too many resources"),
        pytest.param(
            {"Resources": {"A": {"Type": "T", "Metadata": {"x": "y" * 2**20}}}}, "1,048,576", id="too many bytes"
        ),
    ],
)
def test_a_template_that_is_rejected_gets_a_sentence(messages: Messages, template: Any, named: str) -> None:
    with messages.raises(TemplateError) as caught:
        parse_template(json.dumps(template))
    assert named in str(caught.value)


def test_references_of_a_value_are_found_wherever_they_stand() -> None:
    value = {
        "a": [{"Ref": "One"}, {"Fn::GetAtt": ["Two", "Arn"]}],
        "b": {"Fn::Sub": ["${Three} ${Four.Arn} ${local} ${!Not}", {"local": {"Ref": "Five"}}]},
    }
    assert set(references(value)) == {("One", None), ("Two", "Arn"), ("Three", None), ("Four", "Arn"), ("Five", None)}


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=3)))
def test_every_resource_comes_after_what_it_depends_on_or_there_is_a_cycle(graph: dict[str, list[str]]) -> None:
    try:
        order = creation_order(graph)
    except TemplateError:
        assert _has_cycle(graph)
        return
    assert sorted(order) == sorted(graph)
    for name, dependencies in graph.items():
        assert all(order.index(each) < order.index(name) for each in dependencies if each in graph)


def _has_cycle(graph: dict[str, list[str]]) -> bool:
    try:
        tuple(graphlib.TopologicalSorter({name: set(each) & set(graph) for name, each in graph.items()}).static_order())
    except graphlib.CycleError:
        return True
    return False


@given(st.text(alphabet="ab$ {}!.:", max_size=20))
def test_sub_never_fails_with_anything_but_a_template_error(text: str) -> None:
    resolver = Resolver(environment=HERE)
    with contextlib.suppress(TemplateError):
        resolver.resolve({"Fn::Sub": text})


def read_ssm(name: str) -> str | None:
    return {"/cdk-bootstrap/hnb659fds/version": "33"}.get(name)


def test_a_parameter_comes_from_the_caller_or_the_last_deployment_or_its_default() -> None:
    declared: dict[str, dict[str, Any]] = {
        "Given": {"Type": "String"},
        "Previous": {"Type": "CommaDelimitedList"},
        "Default": {"Type": "Number", "Default": 3},
        "Bootstrap": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk-bootstrap/hnb659fds/version"},
    }
    previous = {"Previous": ParameterValue("Previous", "a, b", ["a", "b"])}
    values = resolve_parameters(declared, {"Given": "x", "Previous": None}, previous, read_ssm)
    assert {key: value.resolved for key, value in values.items()} == {
        "Given": "x",
        "Previous": ["a", "b"],
        "Default": "3",
        "Bootstrap": "33",
    }
    assert values["Bootstrap"].from_ssm
    assert values["Bootstrap"].given == "/cdk-bootstrap/hnb659fds/version"


@pytest.mark.parametrize(
    ("declaration", "value", "message"),
    [
        ({"Type": "String"}, None, "Parameters: [P] must have values"),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "A", "failed to satisfy constraint"),
        ({"Type": "AWS::SSM::Parameter::Value<String>"}, "/nowhere", "Unable to fetch parameters [/nowhere]"),
    ],
    ids=["missing", "pattern", "not stored"],
)
def test_a_wrong_parameter_is_told_in_cloudformations_words(
    declaration: dict[str, Any], value: str | None, message: str
) -> None:
    with pytest.raises(TemplateError, match=re.escape(message)):
        resolve_parameters({"P": declaration}, {} if value is None else {"P": value}, {}, read_ssm)


@pytest.mark.parametrize(
    ("declaration", "value"),
    [
        pytest.param({"Type": "String", "AllowedValues": ["a", "b"]}, "c", id="another value"),
        pytest.param({"Type": "String", "MinLength": 2}, "a", id="too short"),
        pytest.param({"Type": "Number", "MaxValue": 2}, "3", id="too large"),
        pytest.param({"Type": "Number"}, "three", id="no number"),
        pytest.param({"Type": "Strin"}, "x", id="unknown type"),
    ],
)
def test_a_wrong_parameter_is_a_sentence(messages: Messages, declaration: dict[str, Any], value: str) -> None:
    with messages.raises(TemplateError):
        resolve_parameters({"P": declaration}, {"P": value}, {}, read_ssm)


def test_an_undeclared_parameter_is_rejected_in_cloudformations_words() -> None:
    with pytest.raises(TemplateError, match=r"\[Typo\] do not exist in the template"):
        resolve_parameters({}, {"Typo": "x"}, {}, read_ssm)


def test_the_bootstrap_rule_of_the_cdk_rejects_old_versions_with_its_own_words() -> None:
    rules = {
        "CheckBootstrapVersion": {
            "Assertions": [
                {
                    "Assert": {"Fn::Not": [{"Fn::Contains": [["1", "2", "3", "4", "5"], {"Ref": "BootstrapVersion"}]}]},
                    "AssertDescription": "CDK bootstrap stack version 6 required.",
                }
            ]
        }
    }
    check_rules(rules, Resolver(environment=HERE, parameters={"BootstrapVersion": "33"}).predicate)
    with pytest.raises(TemplateError, match="CDK bootstrap stack version 6 required"):
        check_rules(rules, Resolver(environment=HERE, parameters={"BootstrapVersion": "5"}).predicate)
