"""The resources that the platform team has put into each account. Parameters of Systems Manager name them."""

from __future__ import annotations

from aws_cdk import Annotations, Environment, Fn, Stack, Stage
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_triton import TritonArtifactStore

__all__ = ["artifact_store", "pager", "private_network"]


def _parameter(scope: Construct, name: str) -> str:
    return ssm.StringParameter.value_for_string_parameter(scope, f"/acme/ml/{name}")


def private_network(scope: Construct) -> ec2.IVpc:
    """The account's VPC, with its two private subnets."""
    vpc = ec2.Vpc.from_vpc_attributes(
        scope,
        "Vpc",
        vpc_id=_parameter(scope, "vpc"),
        availability_zones=[Fn.select(number, Fn.get_azs()) for number in (0, 1)],
        private_subnet_ids=[_parameter(scope, "subnet-a"), _parameter(scope, "subnet-b")],
    )
    Annotations.of(vpc).acknowledge_warning("@aws-cdk/aws-ec2:noSubnetRouteTableId", "the platform team routes")
    return vpc


def pager(scope: Construct) -> sns.ITopic:
    """The topic that calls the person on duty."""
    return sns.Topic.from_topic_arn(scope, "Pager", _parameter(scope, "pager"))


def artifact_store(scope: Construct, team: str) -> TritonArtifactStore:
    """The team's store, in a stack of its own that outlives its endpoints; made at its first use."""
    stack = Stack.of(scope)
    stage = Stage.of(scope)
    assert stage is not None, f"{scope.node.path} is not within an App"
    found = stage.node.try_find_child(f"{team}-artifacts")
    if found is None:
        found = Stack(stage, f"{team}-artifacts", env=Environment(account=stack.account, region=stack.region))
        key = kms.Key.from_key_arn(found, "Key", _parameter(found, "key"))
        logs = s3.Bucket.from_bucket_name(found, "AccessLogs", _parameter(found, "access-logs"))
        made = TritonArtifactStore(found, "Store", encryption_key=key, access_logs_bucket=logs)
        Annotations.of(made).acknowledge_warning("@aws-cdk/aws-s3:accessLogsPolicyNotAdded", "its policy allows it")
        Annotations.of(made).acknowledge_warning("cdk-triton:KeyNotGranted", "the platform team has opened it to logs")
    store = found.node.find_child("Store")
    assert isinstance(store, TritonArtifactStore)
    return store
