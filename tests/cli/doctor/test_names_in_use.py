"""What `cdk-triton doctor --app` reports about exports and parameters that deployed stacks still use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from cdk_triton.cli.doctor.names_in_use import moved_parameters, removed_exports

if TYPE_CHECKING:
    from golden_messages import Messages

Template = dict[str, Any]
KEYS = ("Home:KeyA", "Home:KeyB")


def _exporting(*names: str) -> Template:
    return {"Outputs": {f"Output{n}": {"Value": "arn", "Export": {"Name": name}} for n, name in enumerate(names)}}


def _importing(*names: str) -> Template:
    statements = [{"Action": "kms:Decrypt", "Resource": {"Fn::ImportValue": name}} for name in names]
    return {"Resources": {"Policy": {"Type": "AWS::IAM::Policy", "Properties": {"Statement": statements}}}}


def _with_parameter(id: str, name: object) -> Template:
    return {"Resources": {id: {"Type": "AWS::SSM::Parameter", "Properties": {"Name": name, "Value": "v"}}}}


class TestRemovedExports:
    @pytest.mark.parametrize(
        ("used_by", "new", "is_enough"),
        [
            pytest.param(["Serve"], {"Serve": _importing(KEYS[0])}, True, id="former key removed"),
            pytest.param(["Serve"], {"Serve": _importing(*KEYS)}, False, id="still imported"),
            pytest.param(["Serve"], {"Serve": _importing("Home:New")}, False, id="import of an export that is new"),
            pytest.param(["Other", "Serve"], {"Serve": _importing(KEYS[0])}, False, id="used by another app too"),
        ],
    )
    def test_one_in_use_is_an_error_with_the_order(
        self, messages: Messages, used_by: Sequence[str], new: Mapping[str, Template], is_enough: bool
    ) -> None:
        """A deployment of the importing stack alone is enough if it needs neither old nor new exports of the other."""
        deployed = {"Home": _exporting(*KEYS), "Serve": _importing(*KEYS)}
        exports = [KEYS[0], "Home:New"]

        ((stack, change),) = removed_exports(
            deployed, {"Home": _exporting(*exports), **new}, [], {KEYS[1]: used_by}.__getitem__
        )

        assert (stack, change.state) == ("Home", "error")
        assert ("--exclusively" in change.fix) is is_enough
        messages.record("cdk-triton doctor", f"{change.found}; {change.fix}")

    def test_of_several_importing_stacks_the_last_one_goes_first(self, messages: Messages) -> None:
        store = {**_importing("Home:Key"), **_exporting("Artifacts:Bucket")}
        deployed = {"Home": _exporting("Home:Key"), "Artifacts": store}
        deployed["Serve"] = _importing("Home:Key", "Artifacts:Bucket")
        new = {"Home": {}, "Artifacts": _exporting("Artifacts:Bucket"), "Serve": _importing("Artifacts:Bucket")}
        users = {"Home:Key": ["Artifacts", "Serve"], "Artifacts:Bucket": ["Serve"]}

        ((_, change),) = removed_exports(deployed, new, [], users.__getitem__)

        messages.record("cdk-triton doctor", f"{change.found}; {change.fix}")
        assert change.fix.startswith("first deploy Serve, Artifacts alone, in this order")

    def test_one_that_nothing_imports_is_none(self) -> None:
        old, new = {"Home": _exporting(*KEYS)}, {"Home": _exporting(KEYS[0])}

        assert list(removed_exports(old, new, [], lambda _: [])) == []

    @pytest.mark.parametrize(("imported", "is_enough"), [(KEYS[0], True), (KEYS[1], False)])
    def test_the_imports_of_a_nested_stack_count(self, imported: str, is_enough: bool) -> None:
        old, new = {"Home": _exporting(*KEYS), "Serve": {}}, {"Home": _exporting(KEYS[0]), "Serve": {}}

        ((_, change),) = removed_exports(old, new, [("Serve", _importing(imported))], {KEYS[1]: ["Serve"]}.__getitem__)

        assert ("--exclusively" in change.fix) is is_enough


class TestMovedParameters:
    @pytest.mark.parametrize(
        "new",
        [
            pytest.param({"Serve": _with_parameter("New", "/search/name")}, id="another logical id"),
            pytest.param({"Serve": {}, "Next": _with_parameter("Old", "/search/name")}, id="another stack"),
        ],
    )
    def test_one_that_exists_is_an_error(self, messages: Messages, new: Mapping[str, Template]) -> None:
        ((stack, change),) = moved_parameters({"Serve": _with_parameter("Old", "/search/name")}, new)

        assert (stack, change.state) == (list(new)[-1], "error")
        messages.record("cdk-triton doctor", f"{change.found}; {change.fix}")

    @pytest.mark.parametrize(
        "new", [_with_parameter("Old", "/search/name"), _with_parameter("New", "/other"), _with_parameter("New", {})]
    )
    def test_any_other_is_none(self, new: Template) -> None:
        assert list(moved_parameters({"Serve": _with_parameter("Old", "/search/name")}, {"Serve": new})) == []


@pytest.mark.slow
def test_cloudformation_knows_who_imports(messages: Messages, doctor: Any, aws: Any, assembly: Any) -> None:
    topic = {"Type": "AWS::SNS::Topic"}
    home = {"Resources": {"Topic": topic}, **_exporting("Home:Used", "Home:Unused")}
    uses = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::ImportValue": "Home:Used"}}}
    s3, cloudformation = aws.local.client("s3"), aws.local.client("cloudformation")
    s3.create_bucket(Bucket="templates", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.put_object(Bucket="templates", Key="nested.json", Body=json.dumps({"Resources": {"Topic": uses}}))
    url = "https://s3.eu-west-1.amazonaws.com/templates/nested.json"
    nested = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}
    for name, template in {"Home": home, "Serve": {"Resources": {"Nested": nested}}}.items():
        cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})

    outcome = doctor("--app", assembly("Home", {"Resources": {"Topic": topic}}))

    assert outcome.graded("updates") == "error"
    assert "Home:Unused" not in outcome.said("updates")
    assert "which Serve still imports" in outcome.said("updates")
