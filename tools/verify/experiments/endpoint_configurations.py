"""Which endpoint configurations SageMaker accepts; none of them starts an instance."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import PLATFORM, outputs, repository, store
from tools.verify.trial import Trial, error_of, prefix_of

from cdk_triton import TritonModel, TritonMultiModel
from cdk_triton.sagemaker import gpu_instances, instance_storage

_TYPE = "ml.g5.xlarge"


def _stacks(app: cdk.App) -> None:
    stack = cdk.Stack(app, prefix_of("endpoint_configurations"))
    place = store(stack)
    isolated = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0, subnet_configuration=[isolated])
    vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
    single = TritonModel(stack, "Model", store=place, platform=PLATFORM, repository=repository())
    in_vpc = TritonModel(stack, "InVpc", store=place, platform=PLATFORM, repository=repository(), vpc=vpc)
    multi = TritonMultiModel(stack, "Multi", store=place, platform=PLATFORM, ensembles={"one": repository()})
    outputs(
        stack,
        Model=single.model_name,
        InVpc=in_vpc.model_name,
        Multi=multi.model_name,
        Role=single.role.role_arn,
    )


class _Configurations:
    """Creates endpoint configurations, and deletes each at once."""

    def __init__(self, trial: Trial, deployed: dict[str, str]) -> None:
        self._sagemaker = trial.client("sagemaker")
        self._name = trial.prefix
        self._deployed = deployed

    def error(self, *variants: dict[str, Any], **rest: Any) -> str:
        """The error with which SageMaker rejects a configuration; an empty text if it accepts it."""
        named = [{"VariantName": f"v{number}", **each} for number, each in enumerate(variants)]
        code, message = error_of(
            self._sagemaker.create_endpoint_config, EndpointConfigName=self._name, ProductionVariants=named, **rest
        )
        if not code:
            self._sagemaker.delete_endpoint_config(EndpointConfigName=self._name)
        return shorten(message or code, 200, placeholder=" …")  # some messages list every instance type

    def variant(self, model: str = "Model", **changes: Any) -> dict[str, Any]:
        """A variant with one instance; `changes` replaces members, and None removes them."""
        variant = {"ModelName": self._deployed[model], "InstanceType": _TYPE, "InitialInstanceCount": 1} | changes
        return {key: value for key, value in variant.items() if value is not None}

    def pools(self, model: str = "Model", **changes: Any) -> dict[str, Any]:
        """A variant with two instance pools."""
        pools = [{"InstanceType": _TYPE, "Priority": 1}, {"InstanceType": "ml.g6.xlarge", "Priority": 2}]
        routing = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
        return self.variant(model, **{"InstanceType": None, "InstancePools": pools, "RoutingConfig": routing} | changes)


def _observe(trial: Trial) -> Iterator[Observation]:
    deployed = trial.deploy()
    configurations = _Configurations(trial, deployed)
    error, variant, pools = configurations.error, configurations.variant, configurations.pools

    def accepted(part: str, found: str) -> Observation:
        return Observation(part, not found, found or "accepted")

    def rejected(part: str, found: dict[str, str]) -> Observation:
        return Observation(
            part, all(found.values()), "; ".join(f"{key}: {each or 'accepted'}" for key, each in found.items())
        )

    yield _volume_sizes(configurations)
    yield accepted("networks", error(variant(), variant("InVpc")))
    in_region = error(pools())
    yield accepted("pools_in_region", in_region)
    if in_region:
        for part in ("pools_routing", "pools_exclude", "pools_and_variants", "pools_of_components"):
            yield Observation(part, None, f"{trial.place.region} has no instance pools")
    else:
        yield rejected("pools_routing", {"without RoutingConfig": error(pools(RoutingConfig=None))})
        yield rejected(
            "pools_exclude",
            {
                "with InstanceType": error(pools(InstanceType=_TYPE)),
                "multi-model": error(pools("Multi")),
                "as a shadow": error(variant(), ShadowProductionVariants=[pools() | {"VariantName": "shadow"}]),
            },
        )
        yield accepted("pools_and_variants", error(pools(), variant()))
        without_model = pools(ModelName=None, RoutingConfig={"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"})
        yield accepted("pools_of_components", error(without_model, ExecutionRoleArn=deployed["Role"]))
    managed = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 1}
    yield accepted(
        "no_instance",
        error(variant(ModelName=None, ManagedInstanceScaling=managed), ExecutionRoleArn=deployed["Role"]),
    )
    sns = trial.client("sns")
    topic = sns.create_topic(Name=f"{trial.prefix}.fifo", Attributes={"FifoTopic": "true"})["TopicArn"]
    trial.at_end.callback(sns.delete_topic, TopicArn=topic)
    asynchronous = {
        "OutputConfig": {
            "S3OutputPath": f"s3://{deployed['Bucket']}/async/",
            "NotificationConfig": {"SuccessTopic": topic},
        }
    }
    found = error(variant(), AsyncInferenceConfig=asynchronous)
    yield Observation("fifo_topic", True if found else None, found or "accepted; only a request would show it")


def _volume_sizes(configurations: _Configurations) -> Observation:
    """One instance type of each family, with a volume of 50 GB."""
    differs, unknown = [], []
    types = {each.family: each for each in gpu_instances().values()}
    for family, instance in types.items():
        found = configurations.error(configurations.variant(InstanceType=instance.name, VolumeSizeInGB=50))
        taken = instance_storage(instance).takes_volume_size
        if taken is None:
            unknown.append(f"{family}: {found or 'accepted'}")
        elif taken is bool(found):
            differs.append(f"{family}: {found or 'accepted'}")
    seen = f"of {len(types)} families, other than the table: {'; '.join(differs) or 'none'}"
    return Observation("volume_sizes", not differs, f"{seen}; not in the table: {', '.join(unknown) or 'none'}")


EXPERIMENT = Experiment(
    parts=(
        "volume_sizes",
        "networks",
        "pools_in_region",
        "pools_routing",
        "pools_exclude",
        "pools_and_variants",
        "pools_of_components",
        "no_instance",
        "fifo_topic",
    ),
    minutes=15,
    dollars=0.01,
    spends="some requests to S3",
    observe=_observe,
    stacks=_stacks,
)
