"""A store in a VPC that promotes from another region: S3 rejects the copy, and the handler reads and writes instead."""

from __future__ import annotations

import os
from collections.abc import Iterator

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import PLATFORM, outputs, repository, store
from tools.verify.trial import Trial, prefix_of

from cdk_triton import TritonArtifactStore, TritonModel
from cdk_triton.errors import LocalError

_SOURCE = "source_bucket"


def _stacks(app: cdk.App) -> None:
    """The source first; the receiving stack needs the name of its bucket."""
    prefix, account, region = (
        prefix_of("promotion_in_a_vpc"),
        os.environ["CDK_DEFAULT_ACCOUNT"],
        os.environ["CDK_DEFAULT_REGION"],
    )
    other = "us-west-2" if region == "us-east-1" else "us-east-1"
    source = cdk.Stack(app, f"{prefix}-Source", env=cdk.Environment(account=account, region=other))
    TritonModel(source, "Model", store=store(source), platform=PLATFORM, repository=repository())
    bucket = app.node.try_get_context(_SOURCE)
    if bucket is None:
        return
    stack = cdk.Stack(app, f"{prefix}-Receiver", env=cdk.Environment(account=account, region=region))
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=1)
    vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
    tested = TritonArtifactStore.from_bucket(stack, "Tested", s3.Bucket.from_bucket_name(stack, "Bucket", bucket))
    receiver = TritonArtifactStore(
        stack,
        "Store",
        promotes_from=tested,
        vpc=vpc,
        removal_policy=cdk.RemovalPolicy.DESTROY,
        auto_delete_objects=True,
    )
    model = TritonModel(stack, "Model", store=receiver, platform=PLATFORM, repository=repository())
    outputs(stack, Promoted=model.model_name)


def _observe(trial: Trial) -> Iterator[Observation]:
    bucket = trial.deploy()["Bucket"]
    try:
        promoted = trial.deploy(**{_SOURCE: bucket})["Promoted"]
    except LocalError as error:
        yield Observation("without_policy", None, f"the deployment failed: {error}")
        yield Observation("reads_and_writes", False, f"the deployment failed: {error}")
        return
    yield Observation("without_policy", True, f"the archive of {promoted} is a copy from another region")
    yield Observation(
        "reads_and_writes", True, "the functions are in a VPC with the VPC endpoint for S3 and a NAT gateway"
    )


EXPERIMENT = Experiment(
    parts=("without_policy", "reads_and_writes"),
    minutes=70,
    dollars=0.10,
    spends="a NAT gateway for an hour",
    observe=_observe,
    stacks=_stacks,
)
