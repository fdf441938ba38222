"""What `cdk-triton doctor --app` reports about updates of deployed stacks."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA
from cdk_triton.cli.doctor.changes import dangerous_changes

if TYPE_CHECKING:
    from golden_messages import Messages

KEY, OTHER_KEY = "arn:aws:kms:us-east-1:111122223333:key/a", "arn:aws:kms:us-east-1:111122223333:key/b"
CANARY = {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": {"Type": "CANARY"}}}
ALL_AT_ONCE = {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE"}}}
ROLLING = {"RollingUpdatePolicy": {"WaitIntervalInSeconds": 60}}
Template = dict[str, Any]
Change = Callable[[Template], object]


def _template() -> Template:
    """An endpoint with two variants, of which one is scaled, and a store with a key."""
    join = ["", ["endpoint/", {"Fn::GetAtt": ["Endpoint", "EndpointName"]}, "/variant/Scaled"]]
    encryption = [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}}]
    variants = [
        {"VariantName": name, "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1, "InitialVariantWeight": 1}
        for name in ("Scaled", "Fixed")
    ]
    resources = {
        "Config": ("AWS::SageMaker::EndpointConfig", {"ProductionVariants": variants}),
        "Endpoint": (
            "AWS::SageMaker::Endpoint",
            {"EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}, "EndpointName": "search"},
        ),
        "Target": ("AWS::ApplicationAutoScaling::ScalableTarget", {"ResourceId": {"Fn::Join": join}}),
        "Bucket": ("AWS::S3::Bucket", {"BucketEncryption": {"ServerSideEncryptionConfiguration": encryption}}),
        "Handler": (
            "AWS::Lambda::Function",
            {"Handler": "artifacts.is_complete", "Environment": {"Variables": {"STORE_BUCKET": {"Ref": "Bucket"}}}},
        ),
    }
    return {"Resources": {id: {"Type": kind, "Properties": each} for id, (kind, each) in resources.items()}}


def _properties(template: Template, id: str) -> dict[str, Any]:
    found: dict[str, Any] = template["Resources"][id]["Properties"]
    return found


def _variants(template: Template) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _properties(template, "Config")["ProductionVariants"]
    return found


def _renamed(old: str, new: str) -> Change:
    """Another construct id; `GetAtt` and `Ref` follow."""

    def change(template: Template) -> None:
        text = json.dumps(template["Resources"]).replace(f'"{old}"', f'"{new}"')
        template["Resources"] = json.loads(text)

    return change


def _with(id: str, **properties: object) -> Change:
    return lambda template: _properties(template, id).update(properties)


def _key(key: str) -> Change:
    def change(template: Template) -> None:
        rules = _properties(template, "Bucket")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        rules[0]["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] = key

    return change


def _all(*changes: Change) -> Change:
    return lambda template: [change(template) for change in changes]


def _variant(number: int, **properties: object) -> Change:
    return lambda template: _variants(template)[number].update(properties)


def _pools(number: int, *types: str) -> Change:
    """Instance pools in place of an instance type, listed from the last priority to the first."""

    def change(template: Template) -> None:
        variant = _variants(template)[number]
        variant.pop("InstanceType", None)
        pools = [{"InstanceType": each, "Priority": at} for at, each in enumerate(types, start=1)]
        variant["InstancePools"] = pools[::-1]

    return change


def _exported(template: Template) -> None:
    """The bucket's name is exported, as for a strong reference of another stack."""
    output = {"Value": {"Ref": "Bucket"}, "Export": {"Name": "Home:ExportsOutputRefBucket"}}
    template["Outputs"] = {"ExportsOutputRefBucket": output}


def _former_key(template: Template) -> None:
    statement = {"Action": "kms:Decrypt", "Resource": [OTHER_KEY, KEY]}
    template["Resources"]["Policy"] = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"Statement": [statement]}}


def _published(template: Template) -> None:
    """The stack has a publisher, which publishes for a next platform, too."""
    for name, is_next in (("Machine", False), ("Next", True)):
        metadata = {PUBLISHER_METADATA: {"multi_model": "Fleet", "is_next": is_next}}
        template["Resources"][name] = {"Type": "AWS::StepFunctions::StateMachine", "Metadata": metadata}


def _republished(name: str) -> Change:
    def change(template: Template) -> None:
        for id in ("Machine", "Next"):
            template["Resources"][id]["Metadata"][PUBLISHER_METADATA]["multi_model"] = name

    return change


def _component(name: Any) -> Change:
    """A component whose copies are scaled."""

    def change(template: Template) -> None:
        component = {"InferenceComponentName": name, "RuntimeConfig": {"CopyCount": 1}}
        target = {"ResourceId": {"Fn::Join": ["", ["inference-component/", name]]}, "MinCapacity": 0}
        if isinstance(name, dict):
            target["ResourceId"] = {"Fn::Join": ["", ["inference-component/text-", *name["Fn::Join"][1][1:]]]}
        kinds = {"Text": "SageMaker::InferenceComponent", "Copies": "ApplicationAutoScaling::ScalableTarget"}
        for id, properties in (("Text", component), ("Copies", target)):
            template["Resources"][id] = {"Type": f"AWS::{kinds[id]}", "Properties": properties}

    return change


def _found(change: Change, before: Change | None = None, *, taken: tuple[str, ...] = ("search",)) -> list[Any]:
    old = _template()
    if before is not None:
        before(old)
    new = copy.deepcopy(old)
    change(new)
    return list(dangerous_changes(old, new, taken.__contains__))


DANGEROUS: dict[str, tuple[str, Change, Change | None]] = {
    "variant added, canary": (
        "error",
        lambda t: _variants(t).append({**_variants(t)[1], "VariantName": "New"}),
        _with("Endpoint", DeploymentConfig=CANARY),
    ),
    "variant removed, rolling": ("error", lambda t: _variants(t).pop(), _with("Endpoint", DeploymentConfig=ROLLING)),
    "variant renamed, canary": (
        "error",
        _variant(1, VariantName="Better"),
        _with("Endpoint", DeploymentConfig=CANARY),
    ),
    "another type of a scaled variant": ("error", _variant(0, InstanceType="ml.g6.xlarge"), None),
    "another type, scaling removed at once": (
        "error",
        _all(_variant(0, InstanceType="ml.g6.xlarge"), lambda t: t["Resources"].pop("Target")),
        None,
    ),
    "pools in place of the type of a scaled variant": ("warning", _pools(0, "ml.g5.xlarge", "ml.g6.xlarge"), None),
    "other pools of a scaled variant": (
        "warning",
        _pools(0, "ml.g5.xlarge", "ml.g4dn.xlarge"),
        _pools(0, "ml.g5.xlarge", "ml.g6.xlarge"),
    ),
    "count of a scaled endpoint": (
        "warning",
        _variant(0, InitialInstanceCount=2),
        _with("Endpoint", RetainAllVariantProperties=True),
    ),
    "asynchronous no longer": (
        "error",
        lambda t: _properties(t, "Config").pop("AsyncInferenceConfig"),
        _with("Config", AsyncInferenceConfig={}),
    ),
    "asynchronous now": ("warning", _with("Config", AsyncInferenceConfig={}), None),
    "another name": ("warning", _with("Endpoint", EndpointName="find"), None),
    "another bucket id": ("warning", _renamed("Bucket", "Store2"), None),
    "another bucket id, imported by another stack": ("error", _renamed("Bucket", "Store2"), _exported),
    "another bucket name": ("warning", _with("Bucket", BucketName="second"), _with("Bucket", BucketName="first")),
    "another bucket name, imported by another stack": ("error", _with("Bucket", BucketName="second"), _exported),
    "another key": ("warning", _key(OTHER_KEY), None),
    "publisher removed": ("warning", lambda t: [t["Resources"].pop(id) for id in ("Machine", "Next")], _published),
    "another id of a model with a publisher": ("warning", _republished("Fleet2"), _published),
    "component scaled no longer": ("warning", lambda t: t["Resources"].pop("Copies"), _component("Text")),
    "component with a name of the stack, scaled no longer": (
        "warning",
        lambda t: t["Resources"].pop("Copies"),
        _component({"Fn::Join": ["", ["text-", {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}]]}),
    ),
    "another id without a name": (
        "warning",
        _renamed("Endpoint", "Search"),
        lambda t: _properties(t, "Endpoint").pop("EndpointName"),
    ),
}


@pytest.mark.parametrize(("state", "change", "before"), DANGEROUS.values(), ids=DANGEROUS)
def test_a_dangerous_change_is_one_sentence_with_its_fix(
    messages: Messages, state: str, change: Change, before: Change | None
) -> None:
    (found,) = _found(change, before)

    assert found.state == state
    messages.record("cdk-triton doctor", f"{found.found}; {found.fix}")


def test_another_id_with_the_same_name_fails_and_moves_nobody(messages: Messages) -> None:
    taken, moved = _found(_renamed("Endpoint", "Search"))

    assert (taken.state, moved.state) == ("error", "warning")
    messages.record("cdk-triton doctor", f"{taken.found}; {taken.fix}")


SOUND: dict[str, tuple[Change, Change | None]] = {
    "nothing": (lambda t: None, None),
    "weight": (_variant(0, InitialVariantWeight=3), None),
    "release of the model": (_variant(0, ModelName="other"), None),
    "variant added without a policy": (
        lambda t: _variants(t).append({**_variants(t)[1], "VariantName": "New"}),
        None,
    ),
    "variant added all at once": (
        lambda t: _variants(t).append({**_variants(t)[1], "VariantName": "New"}),
        _with("Endpoint", DeploymentConfig=ALL_AT_ONCE),
    ),
    "variant added, and the policy left out once": (
        _all(
            lambda t: _variants(t).append({**_variants(t)[1], "VariantName": "New"}),
            lambda t: _properties(t, "Endpoint").pop("DeploymentConfig"),
        ),
        _with("Endpoint", DeploymentConfig=CANARY),
    ),
    "variants in another order": (lambda t: _variants(t).reverse(), _with("Endpoint", DeploymentConfig=CANARY)),
    "another type of a fixed variant": (_variant(1, InstanceType="ml.g6.xlarge"), None),
    "pools of a fixed variant": (_pools(1, "ml.g5.xlarge", "ml.g6.xlarge"), None),
    "the same pools of a scaled variant": (
        lambda t: _variants(t)[0]["InstancePools"].reverse(),
        _pools(0, "ml.g5.xlarge", "ml.g6.xlarge"),
    ),
    "other prefixes of an asynchronous endpoint": (
        _with("Config", AsyncInferenceConfig={"OutputConfig": {"S3OutputPath": "s3://bucket/new"}}),
        _with("Config", AsyncInferenceConfig={"OutputConfig": {"S3OutputPath": "s3://bucket/old"}}),
    ),
    "count of an endpoint that is not scaled": (_variant(1, InitialInstanceCount=2), None),
    "another id of the configuration": (_renamed("Config", "Config2"), None),
    "endpoint removed": (_all(lambda t: t["Resources"].pop("Endpoint"), lambda t: t["Resources"].pop("Target")), None),
    "component removed": (lambda t: [t["Resources"].pop(id) for id in ("Text", "Copies")], _component("Text")),
    "component with at least a copy, scaled no longer": (
        lambda t: t["Resources"].pop("Copies"),
        _all(_component("Text"), _with("Copies", MinCapacity=1)),
    ),
    "component scaled no longer, with other copies": (
        _all(lambda t: t["Resources"].pop("Copies"), _with("Text", RuntimeConfig={"CopyCount": 2})),
        _component("Text"),
    ),
    "other limits of a component": (_with("Copies", MinCapacity=1), _component("Text")),
    "next platform removed": (lambda t: t["Resources"].pop("Next"), _published),
    "another key with the former one": (_all(_key(OTHER_KEY), _former_key), None),
}


@pytest.mark.parametrize(("change", "before"), SOUND.values(), ids=SOUND)
def test_any_other_change_is_none(change: Change, before: Change | None) -> None:
    assert _found(change, before) == []


def test_a_first_key_is_harmless() -> None:
    old, new = _template(), _template()
    _properties(old, "Bucket").pop("BucketEncryption")

    assert list(dangerous_changes(old, new, lambda _: True)) == []


def test_a_second_endpoint_with_a_free_name_is_none() -> None:
    def add(template: Template) -> None:
        template["Resources"]["Second"] = copy.deepcopy(template["Resources"]["Endpoint"])
        _properties(template, "Second")["EndpointName"] = "find"

    assert _found(add) == []


@pytest.mark.slow
class TestOfAnAccount:
    """The templates are those of a cloud assembly and of CloudFormation."""

    def test_a_deployed_stack_is_compared(self, messages: Messages, doctor: Any, aws: Any, assembly: Any) -> None:
        topic = {"Type": "AWS::SNS::Topic"}
        template = _template()
        cloudformation = aws.local.client("cloudformation")
        cloudformation.create_stack(StackName="Topics", TemplateBody=json.dumps({"Resources": {"Topic": topic}}))
        cloudformation.get_waiter("stack_create_complete").wait(StackName="Topics", WaiterConfig={"Delay": 1})
        app = assembly("Topics", {"Resources": {"Topic": topic, **template["Resources"]}})

        outcome = doctor("--app", app)

        assert outcome.graded("updates") == "ok"

    def test_a_rejection_is_unknown(self, messages: Messages, doctor: Any, aws: Any, assembly: Any) -> None:
        error = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>"
        aws.answers("DescribeStacks", error, 403)

        outcome = doctor("--app", assembly("Topics", _template()))

        assert outcome.graded("updates") == "unknown"
