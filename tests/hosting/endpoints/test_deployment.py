"""How an endpoint is updated: deployment policies, what fits which endpoint, and what scaling has set."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import aws_cdk as cdk
import pytest

from cdk_triton import TritonEndpoint, TritonModel, TritonVariant
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting import AllAtOnce, Canary, Capacity, DeploymentPolicy, Linear, Rolling

if TYPE_CHECKING:
    from tests.hosting.conftest import World

ENDPOINT = "AWS::SageMaker::Endpoint"
MINUTE = cdk.Duration.minutes(1)
TEN = Capacity(10)


@pytest.fixture(name="model")
def _model(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)


def four(model: TritonModel, name: str = "AllTraffic") -> TritonVariant:
    return TritonVariant(model=model, variant_name=name, initial_instance_count=4)


def properties(world: World, stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = world.only(stack, ENDPOINT)["Properties"]
    return found


class TestPolicies:
    @pytest.mark.parametrize(
        ("policy", "rendered"),
        [
            pytest.param(
                AllAtOnce(termination_wait=cdk.Duration.minutes(10), maximum_time=cdk.Duration.minutes(30)),
                {
                    "BlueGreenUpdatePolicy": {
                        "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0},
                        "TerminationWaitInSeconds": 600,
                        "MaximumExecutionTimeoutInSeconds": 1800,
                    }
                },
                id="all at once",
            ),
            pytest.param(
                Canary(size=Capacity(30), wait=cdk.Duration.minutes(10)),
                {
                    "BlueGreenUpdatePolicy": {
                        "TrafficRoutingConfiguration": {
                            "Type": "CANARY",
                            "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 30},
                            "WaitIntervalInSeconds": 600,
                        },
                    }
                },
                id="canary",
            ),
            pytest.param(
                Linear(step=Capacity(instances=2), wait=MINUTE, termination_wait=cdk.Duration.seconds(0)),
                {
                    "BlueGreenUpdatePolicy": {
                        "TrafficRoutingConfiguration": {
                            "Type": "LINEAR",
                            "LinearStepSize": {"Type": "INSTANCE_COUNT", "Value": 2},
                            "WaitIntervalInSeconds": 60,
                        },
                        "TerminationWaitInSeconds": 0,
                    }
                },
                id="linear",
            ),
            pytest.param(
                Rolling(batch=Capacity(5), wait=MINUTE, rollback_batch=Capacity(100)),
                {
                    "RollingUpdatePolicy": {
                        "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 5},
                        "WaitIntervalInSeconds": 60,
                        "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 100},
                    }
                },
                id="rolling",
            ),
        ],
    )
    def test_a_policy_is_what_sagemaker_documents(
        self,
        world: World,
        stack: cdk.Stack,
        model: TritonModel,
        policy: DeploymentPolicy,
        rendered: dict[str, Any],
    ) -> None:
        TritonEndpoint(stack, "Endpoint", variants=[four(model)], deployment_policy=policy)

        assert properties(world, stack)["DeploymentConfig"] == rendered

    def test_without_one_nothing_is_said(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        TritonEndpoint(stack, "Endpoint", model=model)

        assert set(properties(world, stack)) == {"EndpointConfigName"}

    def test_policies_are_values(self) -> None:
        one, other = (Canary(size=Capacity(percent=10), wait=MINUTE, alarms=[]) for _ in range(2))
        assert one.size == other.size == TEN
        with pytest.raises(AttributeError):
            one.wait = MINUTE  # type: ignore[misc]

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Capacity(), "says both or nothing: give either percent or instances"),
            (lambda: Capacity(10, instances=1), "says both or nothing: give either percent or instances"),
            (lambda: Capacity(0), "percent of a Capacity is 0: use a whole number, 1 to 100"),
            (lambda: Capacity(101), "percent of a Capacity is 101: use a whole number, 1 to 100"),
            (lambda: Capacity(2.5), "percent of a Capacity is 2.5: use a whole"),  # type: ignore[arg-type]
            (lambda: Capacity(instances=0), "instances of a Capacity is 0: use a whole number, at least 1"),
            (lambda: Capacity(instances=True), "instances of a Capacity is True"),
            (lambda: Canary(size=Capacity(51), wait=MINUTE), "size of Canary is 51 %: SageMaker takes 1 to 50 %"),
            (lambda: Linear(step=Capacity(9), wait=MINUTE), "step of Linear is 9 %: SageMaker takes 10 to 50 %"),
            (lambda: Rolling(batch=Capacity(4), wait=MINUTE), "batch of Rolling is 4 %: SageMaker takes 5 to 50 %"),
            (
                lambda: Canary(size=TEN, wait=cdk.Duration.seconds(3601)),
                "wait of Canary is 3601 seconds: SageMaker takes whole ones, 0 to 3600",
            ),
            (
                lambda: Rolling(batch=TEN, wait=cdk.Duration.millis(1500)),
                "wait of Rolling is 1.5 seconds: SageMaker takes whole ones, 0 to 3600",
            ),
            (
                lambda: Canary(size=TEN, wait=600),  # type: ignore[arg-type]
                r"wait of Canary is 600, an int: use a Duration of the CDK's, such as Duration.minutes\(10\)",
            ),
            (
                lambda: Canary(size=10, wait=MINUTE),  # type: ignore[arg-type]
                r"size of Canary is 10, an int: use a share of the instances, such as Capacity\(25\)",
            ),
            (
                lambda: AllAtOnce(termination_wait=cdk.Duration.hours(2)),
                "termination_wait of AllAtOnce is 7200 seconds: SageMaker takes whole ones, 0 to 3600",
            ),
            (
                lambda: AllAtOnce(maximum_time=cdk.Duration.seconds(599)),
                "maximum_time of AllAtOnce is 599 seconds: SageMaker takes whole ones, 600 to 28800",
            ),
            (
                lambda: AllAtOnce(maximum_time=cdk.Duration.hours(9)),
                "maximum_time of AllAtOnce is 32400 seconds: SageMaker takes whole ones, 600 to 28800",
            ),
            (
                lambda: Canary(
                    size=TEN,
                    wait=cdk.Duration.minutes(10),
                    termination_wait=cdk.Duration.minutes(10),
                    maximum_time=cdk.Duration.minutes(20),
                ),
                "maximum_time of Canary is 1200 seconds and its waiting takes 1200, so that every update",
            ),
            (
                lambda: Linear(step=TEN, wait=cdk.Duration.minutes(10), maximum_time=cdk.Duration.hours(1)),
                "maximum_time of Linear is 3600 seconds and its waiting takes 5400",
            ),
            (
                lambda: Rolling(batch=Capacity(5), wait=MINUTE, maximum_time=cdk.Duration.minutes(15)),
                "maximum_time of Rolling is 900 seconds and its waiting takes 1140",
            ),
        ],
    )
    def test_what_sagemaker_would_refuse_is_refused(self, make: Callable[[], object], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            make()

    def test_the_limits_themselves_are_taken(self) -> None:
        hour = cdk.Duration.hours(1)
        Canary(size=Capacity(50), wait=hour, termination_wait=hour, maximum_time=cdk.Duration.seconds(7201))
        Linear(step=Capacity(50), wait=hour, maximum_time=cdk.Duration.hours(8))
        Rolling(batch=Capacity(instances=50), wait=cdk.Duration.seconds(0), maximum_time=cdk.Duration.minutes(10))

    def test_a_token_is_taken_where_only_the_deployment_knows(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        number = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
        policy = Linear(
            step=Capacity(percent=number),  # type: ignore[arg-type]
            wait=cdk.Duration.seconds(number),
            maximum_time=cdk.Duration.minutes(10),
        )
        TritonEndpoint(stack, "Endpoint", variants=[four(model)], deployment_policy=policy)

        routing = properties(world, stack)["DeploymentConfig"]["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
        assert routing["LinearStepSize"]["Value"] == routing["WaitIntervalInSeconds"] == {"Ref": "Number"}


class TestWhatFitsTheEndpoint:
    def test_rolling_is_for_one_variant(self, stack: cdk.Stack, model: TritonModel) -> None:
        with pytest.raises(ConfigurationError, match="Stack/Endpoint has 2 variants and is updated by Rolling"):
            TritonEndpoint(
                stack,
                "Endpoint",
                variants=[four(model, "Blue"), four(model, "Green")],
                deployment_policy=Rolling(batch=TEN, wait=MINUTE),
            )
        assert stack.node.try_find_child("Endpoint") is None

    def test_a_canary_has_several_variants_as_well(self, world: World, stack: cdk.Stack, model: TritonModel) -> None:
        variants = [four(model, "Blue"), four(model, "Green")]
        TritonEndpoint(stack, "Endpoint", variants=variants, deployment_policy=Canary(size=TEN, wait=MINUTE))

        assert "DeploymentConfig" in properties(world, stack)


class TestScaledVariants:
    retained: ClassVar[dict[str, Any]] = {
        "RetainAllVariantProperties": True,
        "ExcludeRetainedVariantProperties": [{"VariantPropertyType": "DesiredWeight"}],
    }

    def test_an_update_keeps_counts_and_sets_weights_as_soon_as_a_variant_is_scaled(
        self, world: World, stack: cdk.Stack, model: TritonModel
    ) -> None:
        endpoint = TritonEndpoint(stack, "Endpoint", variants=[four(model, "Blue"), four(model, "Green")])
        endpoint.variant("Green").auto_scale_instance_count(min_capacity=1, max_capacity=8)

        assert properties(world, stack).items() >= self.retained.items()

    @pytest.mark.parametrize("value", [False, "false"])
    def test_the_context_leaves_it_out_where_an_endpoint_is_created(self, world: World, value: object) -> None:
        app = world.app()
        app.node.set_context("cdk-triton:retainVariantProperties", value)
        stack = cdk.Stack(app, "Stack")
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        TritonEndpoint(stack, "Endpoint", model=model).auto_scale_instance_count(min_capacity=1, max_capacity=8)

        assert not properties(world, stack).keys() & self.retained.keys()

    def test_another_context_value_is_refused(self, world: World) -> None:
        app = world.app()
        app.node.set_context("cdk-triton:retainVariantProperties", "no")
        stack = cdk.Stack(app, "Stack")
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        endpoint = TritonEndpoint(stack, "Endpoint", model=model)

        with pytest.raises(ConfigurationError, match="retainVariantProperties is 'no': use true or false"):
            endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=8)
