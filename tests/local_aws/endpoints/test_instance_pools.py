"""Instance pools on the local AWS: what CreateEndpointConfig takes, and which pool a deployment gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints.capacity import Capacity

if TYPE_CHECKING:
    from tests.local_aws.conftest import EndpointDouble, Rejected

A10G, L4, T4 = "ml.g5.2xlarge", "ml.g6.2xlarge", "ml.g4dn.2xlarge"
LEAST: dict[str, Any] = {"RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}}


@pytest.fixture(name="log", scope="module")
def _log() -> list[str]:
    return []


@pytest.fixture(name="own_aws", scope="module")
def _own_aws(
    tmp_path_factory: pytest.TempPathFactory, endpoint_double: EndpointDouble, log: list[str]
) -> Iterator[LocalAws]:
    directory = tmp_path_factory.mktemp("pools")
    with LocalAws(directory, host_factory=lambda _: endpoint_double, log=log.append) as aws:
        yield aws


@pytest.fixture(name="sagemaker", scope="module")
def _sagemaker(own_aws: LocalAws) -> Any:
    client = own_aws.client("sagemaker")
    for name in (A10G, L4, T4):
        container = {"Image": "example.com/triton:1", "ModelDataUrl": f"s3://models/{name}.tar.gz"}
        client.create_model(ModelName=name.replace(".", "-"), PrimaryContainer=container)
    fleet = {"Image": "example.com/triton:1", "Mode": "MultiModel", "ModelDataUrl": "s3://models/fleet/"}
    client.create_model(ModelName="fleet", PrimaryContainer=fleet)
    return client


@pytest.fixture(name="capacity")
def _capacity(own_aws: LocalAws) -> Iterator[Capacity]:
    capacity = Capacity(own_aws.directory)
    yield capacity
    capacity.clear()


def pool(instance_type: str, priority: int, *, override: bool = True) -> dict[str, Any]:
    model = {"ModelNameOverride": instance_type.replace(".", "-")} if override else {}
    return {"InstanceType": instance_type, "Priority": priority, **model}


def variant(*pools: dict[str, Any], count: int = 1, model: str = A10G, **more: Any) -> dict[str, Any]:
    return {
        "VariantName": "AllTraffic",
        "ModelName": model.replace(".", "-"),
        "InitialInstanceCount": count,
        "InitialVariantWeight": 1.0,
        "InstancePools": list(pools),
        **LEAST,
        **more,
    }


THREE = (pool(T4, 5), pool(A10G, 1, override=False), pool(L4, 2))
"""Listed in another order than that of their priorities."""


def configure(sagemaker: Any, name: str, *variants: dict[str, Any], **more: Any) -> None:
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=list(variants), **more)


def settled(sagemaker: Any, name: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = sagemaker.describe_endpoint(EndpointName=name)
        if found["EndpointStatus"] not in ("Creating", "Updating"):
            return found
        threading.Event().wait(0.01)


def created(sagemaker: Any, name: str, *variants: dict[str, Any]) -> dict[str, Any]:
    configure(sagemaker, name, *variants)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    return settled(sagemaker, name)


def counts(endpoint: dict[str, Any]) -> dict[str, int]:
    (found,) = endpoint["ProductionVariants"]
    return {each["InstanceType"]: each["CurrentInstanceCount"] for each in found["InstancePools"]}


def archive(double: EndpointDouble, name: str) -> str:
    (found,) = double.endpoints[name].variants
    return found.container.model_data_url


# Which pool serves.


@pytest.mark.parametrize(
    ("free", "served"),
    [({}, A10G), ({A10G: 0}, L4), ({A10G: 0, L4: 0}, T4), ({L4: 0}, A10G)],
    ids=["all", "no A10G", "neither A10G nor L4", "no L4"],
)
def test_the_first_pool_with_capacity_serves(
    sagemaker: Any,
    capacity: Capacity,
    endpoint_double: EndpointDouble,
    log: list[str],
    free: dict[str, int],
    served: str,
) -> None:
    for instance_type, instances in free.items():
        capacity.set(instance_type, instances)
    name = f"first-{len(free)}-{served.replace('.', '-')}"
    found = created(sagemaker, name, variant(*THREE))

    assert found["EndpointStatus"] == "InService"
    assert counts(found) == {A10G: 0, L4: 0, T4: 0} | {served: 1}
    assert archive(endpoint_double, name) == f"s3://models/{served}.tar.gz"
    assert [line for line in log if line.startswith(f"endpoint {name}: variant AllTraffic runs on {served} with s3://")]


def test_a_number_of_instances_is_spread_over_the_pools(sagemaker: Any, capacity: Capacity) -> None:
    capacity.set(A10G, 2)
    capacity.set(L4, 0)
    found = created(sagemaker, "spread", variant(*THREE, count=3))

    assert counts(found) == {A10G: 2, L4: 0, T4: 1}
    assert found["ProductionVariants"][0]["CurrentInstanceCount"] == 3


def test_an_endpoint_keeps_its_pool_until_it_is_updated(
    sagemaker: Any, capacity: Capacity, endpoint_double: EndpointDouble
) -> None:
    capacity.set(A10G, 0)
    assert counts(created(sagemaker, "kept", variant(*THREE))) == {A10G: 0, L4: 1, T4: 0}

    capacity.set(A10G, None)
    assert counts(settled(sagemaker, "kept")) == {A10G: 0, L4: 1, T4: 0}

    configure(sagemaker, "kept-2", variant(*THREE))
    sagemaker.update_endpoint(EndpointName="kept", EndpointConfigName="kept-2")
    assert counts(settled(sagemaker, "kept")) == {A10G: 1, L4: 0, T4: 0}
    assert archive(endpoint_double, "kept") == f"s3://models/{A10G}.tar.gz"


def test_without_capacity_an_endpoint_fails_as_on_sagemaker(
    sagemaker: Any, capacity: Capacity, endpoint_double: EndpointDouble
) -> None:
    for instance_type in (A10G, L4, T4):
        capacity.set(instance_type, 0)
    found = created(sagemaker, "none", variant(*THREE))
    one = {key: value for key, value in variant(InstanceType=A10G).items() if key != "InstancePools"}
    alone = created(sagemaker, "alone", one)

    for each in (found, alone):
        assert each["EndpointStatus"] == "Failed"
        assert "InsufficientInstanceCapacity error" in each["FailureReason"]
        assert "cdk-triton local capacity" in each["FailureReason"]
    assert not {"none", "alone"} & endpoint_double.endpoints.keys()


def test_an_update_without_capacity_leaves_the_old_instances(sagemaker: Any, capacity: Capacity) -> None:
    created(sagemaker, "update", variant(*THREE))
    for instance_type in (A10G, L4, T4):
        capacity.set(instance_type, 0)
    configure(sagemaker, "update-2", variant(*THREE))
    sagemaker.update_endpoint(EndpointName="update", EndpointConfigName="update-2")
    found = settled(sagemaker, "update")

    assert (found["EndpointStatus"], found["EndpointConfigName"]) == ("InService", "update")
    assert "InsufficientInstanceCapacity" in found["FailureReason"]
    assert counts(found) == {A10G: 1, L4: 0, T4: 0}


def test_scaling_adds_to_the_pool_that_serves_and_releases_fallbacks_first(sagemaker: Any, capacity: Capacity) -> None:
    capacity.set(A10G, 1)
    created(sagemaker, "scaled", variant(*THREE, count=2))

    def scaled(count: int) -> dict[str, int]:
        wanted = [{"VariantName": "AllTraffic", "DesiredInstanceCount": count}]
        sagemaker.update_endpoint_weights_and_capacities(EndpointName="scaled", DesiredWeightsAndCapacities=wanted)
        return counts(settled(sagemaker, "scaled"))

    assert scaled(4) == {A10G: 3, L4: 1, T4: 0}
    assert scaled(2) == {A10G: 2, L4: 0, T4: 0}


def test_an_update_that_keeps_the_count_places_as_many(sagemaker: Any, capacity: Capacity) -> None:
    created(sagemaker, "retained", variant(*THREE))
    wanted = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 3}]
    sagemaker.update_endpoint_weights_and_capacities(EndpointName="retained", DesiredWeightsAndCapacities=wanted)
    settled(sagemaker, "retained")
    capacity.set(A10G, 2)
    configure(sagemaker, "retained-2", variant(*THREE))
    sagemaker.update_endpoint(EndpointName="retained", EndpointConfigName="retained-2", RetainAllVariantProperties=True)

    assert counts(settled(sagemaker, "retained")) == {A10G: 2, L4: 1, T4: 0}


def test_other_pools_of_a_scaled_variant_are_rejected(own_aws: LocalAws, sagemaker: Any) -> None:
    created(sagemaker, "target", variant(*THREE))
    own_aws.client("application-autoscaling").register_scalable_target(
        ServiceNamespace="sagemaker",
        ResourceId="endpoint/target/variant/AllTraffic",
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        MinCapacity=1,
        MaxCapacity=2,
    )
    settled(sagemaker, "target")
    configure(sagemaker, "target-2", variant(*THREE[:2]))
    with pytest.raises(ClientError, match=f"cannot change from {A10G}, {L4}, {T4} to {A10G}, {T4}"):
        sagemaker.update_endpoint(EndpointName="target", EndpointConfigName="target-2")
    configure(sagemaker, "target-3", variant(*THREE, InitialVariantWeight=2.0))
    sagemaker.update_endpoint(EndpointName="target", EndpointConfigName="target-3")
    assert settled(sagemaker, "target")["EndpointConfigName"] == "target-3"


# What CreateEndpointConfig takes.


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        (variant(pool(A10G, 1), InstanceType=A10G), "InstanceType"),
        (variant(pool(A10G, 1), pool(L4, 1)), "priorities"),
        (variant(pool(A10G, 1), pool(A10G, 2)), "several InstancePools of one InstanceType"),
        (variant(pool(A10G, 1), RoutingConfig={"RoutingStrategy": "RANDOM"}), "LEAST_OUTSTANDING_REQUESTS"),
        ({k: v for k, v in variant(pool(A10G, 1)).items() if k != "RoutingConfig"}, "LEAST_OUTSTANDING_REQUESTS"),
        (variant(pool(A10G, 1, override=False), model="fleet"), "multi-model"),
        (variant({"InstanceType": A10G, "Priority": 1, "ModelNameOverride": "nobody"}), "Could not find model"),
    ],
    ids=["a type too", "one priority", "one type", "random", "no routing", "multi-model", "no model"],
)
def test_what_sagemaker_does_not_take_is_rejected(
    sagemaker: Any, rejected: Rejected, faulty: dict[str, Any], said: str
) -> None:
    with rejected("ValidationException") as caught:
        configure(sagemaker, "rejected", faulty)
    assert said in str(caught.value)


@pytest.mark.parametrize("pools", [(), tuple(pool(A10G, 1) for _ in range(6)), (pool(A10G, 6),)])
def test_no_pools_more_than_five_and_a_sixth_priority_are_rejected(
    own_aws: LocalAws, pools: tuple[dict[str, Any], ...]
) -> None:
    with pytest.raises(ClientError, match=r"ValidationException.*InstancePools"):
        unchecked(own_aws).create_endpoint_config(EndpointConfigName="many", ProductionVariants=[variant(*pools)])


def unchecked(aws: LocalAws) -> Any:
    """A client that sends whatever it is told to."""
    import boto3
    from botocore.config import Config

    names = aws.environment()
    return boto3.client(
        "sagemaker",
        endpoint_url=aws.url,
        region_name=aws.region,
        aws_access_key_id=names["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=names["AWS_SECRET_ACCESS_KEY"],
        config=Config(parameter_validation=False, proxies={}),
    )


def test_the_capacity_of_a_directory_is_not_that_of_another(tmp_path: Path) -> None:
    Capacity(tmp_path / "one").set(A10G, 0)
    assert Capacity(tmp_path / "two").of(A10G) is None
