"""Inference components on the local AWS: SageMaker's operations, with a double in place of Triton."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Component
from cdk_triton_local.endpoints.capacity import Capacity

if TYPE_CHECKING:
    from tests.local_aws.conftest import Deployer, EndpointDouble, Rejected

ROLE = "arn:aws:iam::123456789012:role/role"
COPY = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
TARGET = {"ServiceNamespace": "sagemaker", "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount"}


class Components:
    """The endpoint `shop` of up to two instances with four GPUs each, and its components."""

    def __init__(self, aws: LocalAws, double: EndpointDouble) -> None:
        self.aws = aws
        self.double = double
        self.client = aws.client("sagemaker")

    def configure(self, name: str, **more: Any) -> None:
        variant = {
            "VariantName": "AllTraffic",
            "InstanceType": "ml.g5.12xlarge",
            "InitialInstanceCount": 1,
            "ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 2},
        }
        request = {"EndpointConfigName": name, "ExecutionRoleArn": ROLE, "ProductionVariants": [variant], **more}
        self.client.create_endpoint_config(**{key: value for key, value in request.items() if value is not None})

    def model(self, name: str, *, mode: str = "SingleModel", rejection: str = "") -> None:
        container = {
            "Image": "example.com/triton:25.09",
            "Mode": mode,
            "ModelDataUrl": f"s3://models/{name}{'/' if mode == 'MultiModel' else '.tar.gz'}",
            "Environment": {"REJECT": rejection} if rejection else {"NAME": name},
        }
        self.client.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)

    def begin(self, name: str, *, model: str = "text", copies: int = 1, **more: Any) -> None:
        specification = {"ModelName": model, "ComputeResourceRequirements": {**COPY, **more.pop("copy", {})}, **more}
        self.client.create_inference_component(
            InferenceComponentName=name,
            EndpointName="shop",
            VariantName="AllTraffic",
            Specification=specification,
            RuntimeConfig={"CopyCount": copies},
        )

    def create(self, name: str, *, model: str = "text", copies: int = 1, **more: Any) -> dict[str, Any]:
        self.begin(name, model=model, copies=copies, **more)
        return self.settled(name)

    def settled(self, name: str) -> dict[str, Any]:
        while True:
            found: dict[str, Any] = self.client.describe_inference_component(InferenceComponentName=name)
            if found["InferenceComponentStatus"] not in ("Creating", "Updating"):
                return found
            threading.Event().wait(0.01)

    def scale(self, name: str, copies: int) -> dict[str, Any]:
        self.client.update_inference_component_runtime_config(
            InferenceComponentName=name, DesiredRuntimeConfig={"CopyCount": copies}
        )
        return self.settled(name)

    def delete(self, name: str) -> None:
        self.client.delete_inference_component(InferenceComponentName=name)
        while name in self.names():
            threading.Event().wait(0.01)

    def names(self) -> list[str]:
        found = self.client.list_inference_components(EndpointNameEquals="shop")["InferenceComponents"]
        return [each["InferenceComponentName"] for each in found]

    def instances(self) -> int:
        (variant,) = self.client.describe_endpoint(EndpointName="shop")["ProductionVariants"]
        return int(variant["CurrentInstanceCount"])


@pytest.fixture(name="components", scope="module")
def _components(local_aws: LocalAws, endpoint_double: EndpointDouble) -> Components:
    components = Components(local_aws, endpoint_double)
    for name in ("text", "image"):
        components.model(name)
    components.model("fleet", mode="MultiModel")
    components.model("broken", rejection="no such file")
    components.configure("shop")
    components.client.create_endpoint(EndpointName="shop", EndpointConfigName="shop")
    components.client.get_waiter("endpoint_in_service").wait(EndpointName="shop", WaiterConfig={"Delay": 1})
    return components


@pytest.fixture(autouse=True)
def _no_component(components: Components) -> Iterator[None]:
    yield
    for name in components.names():
        components.delete(name)


def test_a_component_is_placed_in_copies(components: Components) -> None:
    found = components.create("Text-1", copies=2)

    assert found["InferenceComponentStatus"] == "InService"
    assert found["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}
    assert found["Specification"]["ModelName"] == "text"
    assert found["EndpointArn"].endswith(":endpoint/shop")
    component, copies = components.double.components["Text-1"]
    assert (component.endpoint, component.variant, copies) == ("shop", "AllTraffic", 2)
    assert component.container.environment == {"NAME": "text"}


def test_an_arn_has_the_name_in_lower_case(components: Components) -> None:
    """So that a name with capitals cannot be read from it."""
    found = components.create("Text-1")
    assert found["InferenceComponentArn"] == "arn:aws:sagemaker:us-east-1:123456789012:inference-component/text-1"
    assert found["InferenceComponentName"] == "Text-1"


def test_instances_follow_the_copies(components: Components) -> None:
    components.create("text", copies=4)
    components.create("image", model="image", copy={"NumberOfAcceleratorDevicesRequired": 2})
    assert components.instances() == 2

    components.scale("text", 2)
    assert components.instances() == 1

    components.scale("text", 0)
    components.scale("image", 0)
    assert components.instances() == 0


@pytest.mark.parametrize(
    ("copies", "copy"),
    [(9, {}), (1, {"NumberOfAcceleratorDevicesRequired": 5}), (1, {"MinMemoryRequiredInMb": 200_000})],
    ids=["more copies than GPUs", "more GPUs than an instance has", "more memory than an instance has"],
)
def test_copies_without_room_fail(components: Components, copies: int, copy: dict[str, Any]) -> None:
    found = components.create("text", copies=copies, copy=copy)
    assert found["InferenceComponentStatus"] == "Failed"
    assert found["FailureReason"].startswith("There is not enough hardware resources on the instances")


def test_the_first_of_two_components_at_once_gets_the_room(components: Components) -> None:
    for name in ("Text", "Image"):
        components.begin(name, copies=5)

    found = [components.settled(name)["InferenceComponentStatus"] for name in ("Text", "Image")]

    assert sorted(found) == ["Failed", "InService"]


def test_copies_start_within_the_capacity_of_their_instance_type(components: Components) -> None:
    capacity = Capacity(components.aws.directory)
    components.create("Text", copies=4)
    capacity.set("ml.g5.12xlarge", 0)
    try:
        found = components.create("Image")
    finally:
        capacity.clear()

    assert found["FailureReason"].startswith("There is not enough hardware resources on the instances")
    assert found["FailureReason"].endswith("[ml.g5.12xlarge has 0 instances free (cdk-triton local capacity)]")
    assert components.settled("Text")["RuntimeConfig"]["CurrentCopyCount"] == 4


def test_a_copy_that_does_not_start_fails_with_the_reason(components: Components) -> None:
    found = components.create("text", model="broken")
    assert (found["InferenceComponentStatus"], found["FailureReason"]) == ("Failed", "no such file")


def test_an_update_takes_the_new_model_and_keeps_the_copies(components: Components) -> None:
    components.create("text", copies=1)
    components.scale("text", 3)
    specification = {"ModelName": "image", "ComputeResourceRequirements": COPY}
    components.client.update_inference_component(InferenceComponentName="text", Specification=specification)

    assert components.settled("text")["RuntimeConfig"]["CurrentCopyCount"] == 3
    component, copies = components.double.components["text"]
    assert (component.container.environment["NAME"], copies) == ("image", 3)


@pytest.mark.parametrize("failing", [True, False], ids=["the copy fails", "no GPU is free"])
def test_an_update_that_fails_leaves_the_old_copies(components: Components, failing: bool) -> None:
    components.create("text", copies=1 if failing else 8)
    specification = {"ModelName": "broken" if failing else "image", "ComputeResourceRequirements": COPY}
    components.client.update_inference_component(InferenceComponentName="text", Specification=specification)

    found = components.settled("text")
    assert found["InferenceComponentStatus"] == "InService"
    assert found["FailureReason"]
    assert found["Specification"]["ModelName"] == "text"
    assert components.double.components["text"][0].container.environment["NAME"] == "text"


def test_application_auto_scaling_brings_the_copies_within_its_limits(components: Components) -> None:
    scaling = components.aws.client("application-autoscaling")
    components.create("text", copies=4)
    target = {**TARGET, "ResourceId": "inference-component/text"}
    scaling.register_scalable_target(**target, MinCapacity=0, MaxCapacity=2)

    assert components.settled("text")["RuntimeConfig"]["CurrentCopyCount"] == 2
    scaling.deregister_scalable_target(**target)


def test_a_component_that_does_not_exist_is_not_registered(components: Components) -> None:
    scaling = components.aws.client("application-autoscaling")
    with pytest.raises(ClientError, match="inference component doesn't exist"):
        scaling.register_scalable_target(
            **TARGET, ResourceId="inference-component/nothing", MinCapacity=0, MaxCapacity=2
        )


def test_an_endpoint_with_components_is_not_deleted(components: Components) -> None:
    components.create("text")
    with pytest.raises(ClientError, match="Cannot delete endpoint with inference component associated"):
        components.client.delete_endpoint(EndpointName="shop")


def test_a_busy_component_is_neither_deleted_nor_changed(
    components: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    components.create("text")
    released = threading.Event()
    place = components.double.place

    def slowly(component: Component, copies: int) -> None:
        released.wait()
        place(component, copies)

    monkeypatch.setattr(components.double, "place", slowly)
    try:
        request: dict[str, Any] = {"InferenceComponentName": "text", "DesiredRuntimeConfig": {"CopyCount": 2}}
        components.client.update_inference_component_runtime_config(**request)
        with pytest.raises(ClientError, match="while it is in state UPDATE_RC_IN_PROGRESS"):
            components.client.delete_inference_component(InferenceComponentName="text")
        with pytest.raises(ClientError, match="Cannot update in-progress inference component"):
            components.client.update_inference_component_runtime_config(**request)
    finally:
        released.set()
        components.settled("text")


def test_no_copy_at_first_is_rejected(components: Components) -> None:
    with pytest.raises(ClientError, match="Inference components copy count an integer larger than 0"):
        components.create("text", copies=0)


def test_a_component_needs_an_endpoint_without_a_model(components: Components) -> None:
    variant = {"VariantName": "AllTraffic", "ModelName": "text", "InstanceType": "ml.g5.12xlarge"}
    components.client.create_endpoint_config(
        EndpointConfigName="plain", ProductionVariants=[{**variant, "InitialInstanceCount": 1}]
    )
    components.client.create_endpoint(EndpointName="plain", EndpointConfigName="plain")
    request = {
        "InferenceComponentName": "text",
        "EndpointName": "plain",
        "Specification": {"ModelName": "text", "ComputeResourceRequirements": COPY},
    }
    with pytest.raises(ClientError, match="Inference Components are not supported in this Endpoint"):
        components.client.create_inference_component(**request)
    with pytest.raises(ClientError, match='Could not find endpoint "nothing"'):
        components.client.create_inference_component(**{**request, "EndpointName": "nothing"})


def test_a_component_that_does_not_exist_is_not_found(components: Components) -> None:
    for method in ("describe_inference_component", "delete_inference_component"):
        with pytest.raises(ClientError, match='Could not find inference component "nothing"'):
            getattr(components.client, method)(InferenceComponentName="nothing")


def test_what_is_not_modelled_is_rejected(components: Components, rejected: Rejected) -> None:
    with rejected("ValidationException"):
        components.create("text", DataCacheConfig={"EnableCaching": True})
    with rejected("ValidationException"):
        components.create("text", model="fleet")
    with rejected("ValidationException"):
        components.create("text", model="nothing")
    with rejected("ValidationException"):
        components.configure("no-role", ExecutionRoleArn=None)


def test_a_name_is_taken_once(components: Components) -> None:
    components.create("text")
    with pytest.raises(ClientError, match="Cannot create already existing inference component"):
        components.create("text")


# CloudFormation.


def template(**properties: Any) -> dict[str, Any]:
    specification = {"ModelName": "text", "ComputeResourceRequirements": COPY}
    component = {"EndpointName": "shop", "VariantName": "AllTraffic", "Specification": specification, **properties}
    return {
        "Resources": {
            "Text": {"Type": "AWS::SageMaker::InferenceComponent", "Properties": component},
        },
        "Outputs": {"Arn": {"Value": {"Ref": "Text"}}},
    }


def test_cloudformation_keeps_the_copies_of_a_component_that_it_updates(
    components: Components, deployer: Deployer
) -> None:
    name = deployer.new_name()
    assert deployer.deploy(template(RuntimeConfig={"CopyCount": 1}), name) == "CREATE_COMPLETE"
    (component,) = components.names()
    assert deployer.describe(name)["Outputs"][0]["OutputValue"].endswith(f"/{component.lower()}")
    components.scale(component, 3)

    changed = {"ModelName": "image", "ComputeResourceRequirements": COPY}
    assert deployer.deploy(template(RuntimeConfig={"CopyCount": 1}, Specification=changed), name) == "UPDATE_COMPLETE"
    assert components.settled(component)["RuntimeConfig"]["CurrentCopyCount"] == 3

    assert deployer.delete(name) == "DELETE_COMPLETE"
    assert components.names() == []


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"Specification": {"ModelName": "broken", "ComputeResourceRequirements": COPY}}, "no such file"),
        ({"RuntimeConfig": {"CopyCount": 9}}, "not enough hardware resources"),
        ({"RuntimeConfig": {"CopyCount": 0}}, "larger than 0"),
    ],
    ids=["the copy fails", "no room", "no copy"],
)
def test_a_component_that_fails_is_rolled_back(
    components: Components, deployer: Deployer, properties: dict[str, Any], reason: str
) -> None:
    name = deployer.new_name()
    assert deployer.deploy(template(**properties), name) == "ROLLBACK_COMPLETE"
    assert reason in str(deployer.raw_events(name))
    assert components.names() == []
    deployer.delete(name)


def test_a_component_does_not_move(components: Components, deployer: Deployer) -> None:
    name = deployer.new_name()
    assert deployer.deploy(template(), name) == "CREATE_COMPLETE"
    assert deployer.deploy(template(InferenceComponentName="other"), name) == "UPDATE_ROLLBACK_COMPLETE"
    assert "UpdateInferenceComponent does not take it" in str(deployer.raw_events(name))
    deployer.delete(name)
