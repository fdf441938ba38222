"""SageMaker's operations on variants: shadows, weights and instance counts, and what an update keeps of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.local_aws.conftest import EndpointDouble, Rejected

    from cdk_triton_local.aws import LocalAws


@pytest.fixture(scope="module")
def sagemaker(local_aws: LocalAws) -> Any:
    client = local_aws.client("sagemaker")
    for mode, url in {"SingleModel": "s3://models/one.tar.gz", "MultiModel": "s3://models/fleet/"}.items():
        container = {"Image": "example.com/triton:1", "Mode": mode, "ModelDataUrl": url}
        client.create_model(ModelName=mode, PrimaryContainer=container)
    return client


def variant(name: str, weight: float = 1.0, count: int = 1, *, model: str = "SingleModel") -> dict[str, Any]:
    return {
        "VariantName": name,
        "ModelName": model,
        "InitialVariantWeight": weight,
        "InitialInstanceCount": count,
        "InstanceType": "ml.g5.xlarge",
    }


def settled(sagemaker: Any, name: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = sagemaker.describe_endpoint(EndpointName=name)
        if found["EndpointStatus"] not in ("Creating", "Updating"):
            return found
        threading.Event().wait(0.01)


def numbers(endpoint: Mapping[str, Any], member: str = "ProductionVariants") -> dict[str, tuple[float, int]]:
    """Weight and instance count by variant; what is desired is what there is."""
    for each in endpoint[member]:
        assert each["DesiredWeight"] == each["CurrentWeight"]
        assert each["DesiredInstanceCount"] == each["CurrentInstanceCount"]
    return {each["VariantName"]: (each["CurrentWeight"], each["CurrentInstanceCount"]) for each in endpoint[member]}


def served(double: EndpointDouble, name: str) -> dict[str, float]:
    """Weight by variant, as the host has it."""
    return {each.name: each.weight for each in double.endpoints[name].variants}


@pytest.fixture
def endpoint(sagemaker: Any, request: pytest.FixtureRequest) -> str:
    """An endpoint with two variants, whose numbers were changed after it had been made."""
    name = f"e{abs(hash(request.node.name))}"[:40]
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant("A"), variant("B", 0, 2)])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    assert numbers(settled(sagemaker, name)) == {"A": (1.0, 1), "B": (0.0, 2)}
    sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=name,
        DesiredWeightsAndCapacities=[
            {"VariantName": "A", "DesiredInstanceCount": 4},
            {"VariantName": "B", "DesiredWeight": 3.0},
        ],
    )
    settled(sagemaker, name)
    return name


def update(sagemaker: Any, endpoint: str, **how: Any) -> dict[str, Any]:
    """Update to a configuration with other numbers and another variant."""
    config = f"{endpoint}-new"
    sagemaker.create_endpoint_config(
        EndpointConfigName=config, ProductionVariants=[variant("A", 9, 9), variant("B", 8, 8), variant("C", 7, 7)]
    )
    sagemaker.update_endpoint(EndpointName=endpoint, EndpointConfigName=config, **how)
    found = settled(sagemaker, endpoint)
    assert found["EndpointConfigName"] == config
    return found


def test_weights_and_counts_are_changed_where_they_are_named(
    sagemaker: Any, endpoint: str, endpoint_double: EndpointDouble
) -> None:
    assert numbers(settled(sagemaker, endpoint)) == {"A": (1.0, 4), "B": (3.0, 2)}
    assert served(endpoint_double, endpoint) == {"A": 1.0, "B": 3.0}
    with pytest.raises(ClientError, match=r'The variant name\(s\) "D" is/are not present'):
        sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=endpoint, DesiredWeightsAndCapacities=[{"VariantName": "D", "DesiredWeight": 1}]
        )


def test_a_real_time_variant_keeps_an_instance(sagemaker: Any, endpoint: str) -> None:
    with pytest.raises(ClientError, match="Variant A of a real-time endpoint cannot have a DesiredInstanceCount of 0"):
        sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=endpoint, DesiredWeightsAndCapacities=[{"VariantName": "A", "DesiredInstanceCount": 0}]
        )
    assert numbers(settled(sagemaker, endpoint))["A"] == (1.0, 4)


def test_an_update_starts_over_with_the_numbers_of_its_configuration(
    sagemaker: Any, endpoint: str, endpoint_double: EndpointDouble
) -> None:
    assert numbers(update(sagemaker, endpoint)) == {"A": (9.0, 9), "B": (8.0, 8), "C": (7.0, 7)}
    assert served(endpoint_double, endpoint) == {"A": 9.0, "B": 8.0, "C": 7.0}


def test_an_update_that_retains_keeps_the_numbers_of_known_variants(
    sagemaker: Any, endpoint: str, endpoint_double: EndpointDouble
) -> None:
    found = update(sagemaker, endpoint, RetainAllVariantProperties=True)
    assert numbers(found) == {"A": (1.0, 4), "B": (3.0, 2), "C": (7.0, 7)}
    assert served(endpoint_double, endpoint) == {"A": 1.0, "B": 3.0, "C": 7.0}


def test_what_is_excluded_from_being_retained_is_taken_from_the_configuration(
    sagemaker: Any, endpoint: str, endpoint_double: EndpointDouble
) -> None:
    found = update(
        sagemaker,
        endpoint,
        RetainAllVariantProperties=True,
        ExcludeRetainedVariantProperties=[{"VariantPropertyType": "DesiredWeight"}],
    )
    assert numbers(found) == {"A": (9.0, 4), "B": (8.0, 2), "C": (7.0, 7)}
    assert served(endpoint_double, endpoint) == {"A": 9.0, "B": 8.0, "C": 7.0}


def test_an_update_says_its_deployment_configuration(sagemaker: Any, endpoint: str) -> None:
    policy = {"TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 60}}
    deployment = {"BlueGreenUpdatePolicy": policy}
    assert update(sagemaker, endpoint, DeploymentConfig=deployment)["LastDeploymentConfig"] == deployment
    sagemaker.update_endpoint(EndpointName=endpoint, EndpointConfigName=endpoint, RetainDeploymentConfig=True)
    assert settled(sagemaker, endpoint)["LastDeploymentConfig"] == deployment
    sagemaker.update_endpoint(EndpointName=endpoint, EndpointConfigName=endpoint)
    assert "LastDeploymentConfig" not in settled(sagemaker, endpoint)


def test_a_shadow_is_served_and_told_apart(sagemaker: Any, endpoint_double: EndpointDouble) -> None:
    sagemaker.create_endpoint_config(
        EndpointConfigName="shadowed",
        ProductionVariants=[variant("A")],
        ShadowProductionVariants=[variant("S", 0.5, 3)],
    )
    sagemaker.create_endpoint(EndpointName="shadowed", EndpointConfigName="shadowed")
    found = settled(sagemaker, "shadowed")
    assert numbers(found) == {"A": (1.0, 1)}
    assert numbers(found, "ShadowProductionVariants") == {"S": (0.5, 3)}
    (shadow,) = endpoint_double.endpoints["shadowed"].shadows
    assert (shadow.name, shadow.weight) == ("S", 0.5)
    assert served(endpoint_double, "shadowed") == {"A": 1.0}


@pytest.mark.parametrize(
    ("production", "shadows"),
    [
        pytest.param([variant("A"), variant("B")], [variant("S")], id="two variants"),
        pytest.param([variant("A")], [variant("S"), variant("T")], id="two shadows"),
        pytest.param([variant("A", model="MultiModel")], [variant("S")], id="fleet"),
    ],
)
def test_a_shadow_that_sagemaker_does_not_take_is_rejected(
    sagemaker: Any, rejected: Rejected, production: list[Any], shadows: list[Any]
) -> None:
    with rejected("ValidationException"):
        sagemaker.create_endpoint_config(
            EndpointConfigName="refused", ProductionVariants=production, ShadowProductionVariants=shadows
        )


def test_a_shadow_of_a_model_that_there_is_not_is_rejected_in_sagemakers_words(sagemaker: Any) -> None:
    with pytest.raises(ClientError, match='Could not find model "none"'):
        sagemaker.create_endpoint_config(
            EndpointConfigName="refused",
            ProductionVariants=[variant("A")],
            ShadowProductionVariants=[variant("S", model="none")],
        )


def test_what_moto_forgets_of_a_configuration_is_told(sagemaker: Any) -> None:
    more = {
        "MetricsConfig": {"EnableEnhancedMetrics": True, "MetricPublishFrequencyInSeconds": 60},
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        "EnableNetworkIsolation": True,
        "KmsKeyId": "alias/volumes",
    }
    sagemaker.create_endpoint_config(EndpointConfigName="full", ProductionVariants=[variant("A")], **more)
    found = sagemaker.describe_endpoint_config(EndpointConfigName="full")
    assert {name: found[name] for name in more} == more


def test_a_capacity_reservation_is_told_of_configuration_and_endpoint(sagemaker: Any) -> None:
    reserved = {
        "CapacityReservationPreference": "capacity-reservations-only",
        "MlReservationArn": "arn:aws:sagemaker:us-east-1:123456789012:training-plan/search",
    }
    variants = [{**variant("A"), "CapacityReservationConfig": reserved}, variant("B")]
    sagemaker.create_endpoint_config(EndpointConfigName="reserved", ProductionVariants=variants)
    sagemaker.create_endpoint(EndpointName="reserved", EndpointConfigName="reserved")

    configured = sagemaker.describe_endpoint_config(EndpointConfigName="reserved")["ProductionVariants"]
    described = settled(sagemaker, "reserved")["ProductionVariants"]

    for first, second in (configured, described):
        assert first["CapacityReservationConfig"] == reserved
        assert "CapacityReservationConfig" not in second


BAD_NAMES = ["bad_name!", "x/../../victim", "../../esc", "with a blank", "-a", "a-", "a" * 64, "é", ""]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("what", ["endpoint", "configuration", "variant", "model"])
def test_a_name_that_sagemaker_rejects_is_rejected(sagemaker: Any, what: str, name: str) -> None:
    good = {"endpoint": "good", "configuration": "good-names", "variant": "good", "model": "SingleModel"}
    names = {**good, what: name}
    unchecked = unchecked_client(sagemaker)
    container = {"Image": "example.com/triton:1", "ModelDataUrl": "s3://models/one.tar.gz"}
    creations: dict[str, Callable[[], Any]] = {
        "model": lambda: unchecked.create_model(ModelName=name, PrimaryContainer=container),
        "endpoint": lambda: unchecked.create_endpoint(EndpointName=name, EndpointConfigName="good-names"),
    }
    variants = [variant(names["variant"])]
    creations["configuration"] = creations["variant"] = lambda: unchecked.create_endpoint_config(
        EndpointConfigName=names["configuration"], ProductionVariants=variants
    )
    with pytest.raises(ClientError) as rejected:
        creations[what]()
    assert rejected.value.response["Error"]["Code"] == "ValidationException"
    assert "failed to satisfy constraint" in rejected.value.response["Error"]["Message"]


def unchecked_client(client: Any) -> Any:
    """A client that sends what botocore itself would reject."""
    import boto3
    from botocore.config import Config

    credentials = client._request_signer._credentials
    return boto3.client(
        "sagemaker",
        endpoint_url=client.meta.endpoint_url,
        region_name=client.meta.region_name,
        aws_access_key_id=credentials.access_key,
        aws_secret_access_key=credentials.secret_key,
        config=Config(parameter_validation=False, proxies={}, retries={"total_max_attempts": 1}),
    )


def test_a_deletion_answers_at_once_and_the_endpoint_is_gone_later(
    monkeypatch: pytest.MonkeyPatch, sagemaker: Any, endpoint_double: EndpointDouble
) -> None:
    sagemaker.create_endpoint_config(EndpointConfigName="goes", ProductionVariants=[variant("a")])
    sagemaker.create_endpoint(EndpointName="goes", EndpointConfigName="goes")
    settled(sagemaker, "goes")
    gate = threading.Event()
    monkeypatch.setattr(endpoint_double, "remove", lambda name: gate.wait(20))
    sagemaker.delete_endpoint(EndpointName="goes")
    assert sagemaker.describe_endpoint(EndpointName="goes")["EndpointStatus"] == "Deleting"
    with pytest.raises(ClientError, match="in-progress"):
        sagemaker.update_endpoint(EndpointName="goes", EndpointConfigName="goes")
    gate.set()
    while any(each["EndpointName"] == "goes" for each in sagemaker.list_endpoints()["Endpoints"]):
        threading.Event().wait(0.01)
