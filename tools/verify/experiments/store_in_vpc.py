"""The functions of a store in a VPC without a way to the internet, with the VPC endpoints of this library."""

from __future__ import annotations

from collections.abc import Iterator

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import PLATFORM, outputs, repository, store
from tools.verify.trial import Trial, prefix_of

from cdk_triton import TritonModel, add_vpc_endpoints
from cdk_triton.errors import LocalError


def _stacks(app: cdk.App) -> None:
    stack = cdk.Stack(app, prefix_of("store_in_vpc"))
    isolated = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0, subnet_configuration=[isolated])
    add_vpc_endpoints(vpc, store_functions=True)
    model = TritonModel(
        stack, "Model", store=store(stack, vpc=vpc), platform=PLATFORM, repository=repository(), vpc=vpc
    )
    outputs(stack, Model=model.model_name)


def _observe(trial: Trial) -> Iterator[Observation]:
    try:
        name = trial.deploy()["Model"]
    except LocalError as error:
        yield Observation("functions", False, f"the deployment failed: {error}")
        return
    network = trial.client("sagemaker").describe_model(ModelName=name)["VpcConfig"]
    yield Observation("functions", True, f"the archive was copied, and the model is in {network['Subnets']}")


EXPERIMENT = Experiment(
    parts=("functions",),
    minutes=60,
    dollars=0.25,
    spends="10 interface endpoints in two zones, for an hour: Lambda keeps its network interfaces for so long",
    observe=_observe,
    stacks=_stacks,
)
