"""A name for a store's bucket, so that another account or region knows it before it exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest

from cdk_triton import TritonArtifactStore, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


def test_the_bucket_has_the_name(world: World, stack: cdk.Stack) -> None:
    TritonArtifactStore(stack, "Store", builders=[], bucket_name="bank-artifacts")
    assert world.only(stack, "AWS::S3::Bucket")["Properties"]["BucketName"] == "bank-artifacts"


def test_a_name_may_be_known_during_the_deployment_only(world: World, stack: cdk.Stack) -> None:
    TritonArtifactStore(stack, "Store", builders=[], bucket_name=f"bank-{cdk.Aws.ACCOUNT_ID}")
    assert "Fn::Join" in world.only(stack, "AWS::S3::Bucket")["Properties"]["BucketName"]


@pytest.mark.parametrize(
    "name", ["Bank", "ab", "x" * 64, "-bank", "bank.artifacts", "", "xn--bank", "bank--x-s3", "bank-s3alias"]
)
def test_what_is_no_name_for_a_bucket_is_rejected(name: str, stack: cdk.Stack, messages: Messages) -> None:
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", bucket_name=name)


def test_another_name_asks_the_handler_and_replaces_the_policy(world: World) -> None:
    """The bucket is another one, and empty, while old instances still read the one before."""

    def ids(name: str) -> dict[str, str]:
        stack = cdk.Stack(world.app(name), "Search")
        store = TritonArtifactStore(stack, "Store", builders=[], bucket_name=name)
        TritonModel(stack, "Model", repository=world.repository(), platform=world.platform, store=store)
        found = world.template(stack)["Resources"].items()
        return {each["Type"]: id for id, each in found if id.startswith("Model")}

    before, after = ids("first"), ids("second")
    assert {kind for kind in before if before[kind] != after[kind]} == {
        "Custom::TritonArtifacts",
        "AWS::IAM::ManagedPolicy",
    }
