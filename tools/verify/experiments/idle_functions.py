"""A deployment after weeks in which nobody called the functions of a store in a VPC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import PLATFORM, repository, store
from tools.verify.trial import Trial, prefix_of

from cdk_triton import TritonModel
from cdk_triton.errors import LocalError


def _stacks(app: cdk.App) -> None:
    stack = cdk.Stack(app, prefix_of("idle_functions"))
    isolated = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0, subnet_configuration=[isolated])
    # The only endpoint is that of S3, which costs nothing during the weeks, and is all that a copy needs.
    vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
    place = store(stack, vpc=vpc)
    if app.node.try_get_context("model"):
        TritonModel(stack, "Model", store=place, platform=PLATFORM, repository=repository())


def _observe(trial: Trial) -> Iterator[Observation]:
    pages = trial.client("lambda").get_paginator("list_functions").paginate()
    ours = [
        each["FunctionName"]
        for page in pages
        for each in page["Functions"]
        if each["FunctionName"].startswith(trial.prefix)
    ]
    states = {trial.client("lambda").get_function_configuration(FunctionName=name)["State"] for name in ours}
    try:
        trial.deploy(model="yes")
    except LocalError as error:
        yield Observation("deployment", False, f"functions {states}: {error}")
        return
    yield Observation(
        "deployment", True if "Inactive" in states else None, f"deployed; before it, functions were {states}"
    )


EXPERIMENT = Experiment(
    parts=("deployment",),
    minutes=60,
    dollars=0.01,
    spends="some requests to S3",
    observe=_observe,
    stacks=_stacks,
    rest=timedelta(days=30),
)
