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

    from golden_messages import Messages

ENDPOINT = "AWS::SageMaker::Endpoint"
MINUTE = cdk.Duration.minutes(1)
TEN = Capacity(10)


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
        ("make", "computed"),
        [
            pytest.param(lambda: Capacity(), "", id="Capacity of nothing"),
            pytest.param(lambda: Capacity(10, instances=1), "", id="Capacity of both"),
            pytest.param(lambda: Capacity(0), "percent", id="Capacity of 0 percent"),
            pytest.param(lambda: Capacity(101), "percent", id="Capacity of 101 percent"),
            pytest.param(lambda: Capacity(2.5), "percent", id="Capacity of a fraction"),  # type: ignore[arg-type]
            pytest.param(lambda: Capacity(instances=0), "instances", id="Capacity of 0 instances"),
            pytest.param(lambda: Capacity(instances=True), "instances", id="Capacity of a truth value"),
            pytest.param(lambda: Canary(size=Capacity(51), wait=MINUTE), "51 %", id="Canary of 51 percent"),
            pytest.param(lambda: Linear(step=Capacity(9), wait=MINUTE), "9 %", id="Linear of 9 percent"),
            pytest.param(lambda: Rolling(batch=Capacity(4), wait=MINUTE), "4 %", id="Rolling of 4 percent"),
            pytest.param(lambda: Canary(size=TEN, wait=cdk.Duration.seconds(3601)), "3601", id="Canary waits too long"),
            pytest.param(
                lambda: Rolling(batch=TEN, wait=cdk.Duration.millis(1500)), "1.5", id="Rolling waits a fraction"
            ),
            pytest.param(
                lambda: Canary(size=TEN, wait=600),  # type: ignore[arg-type]
                "wait",
                id="Canary waits a number",
            ),
            pytest.param(
                lambda: Canary(size=10, wait=MINUTE),  # type: ignore[arg-type]
                "size",
                id="Canary of a number",
            ),
            pytest.param(
                lambda: AllAtOnce(termination_wait=cdk.Duration.hours(2)), "7200", id="AllAtOnce waits too long"
            ),
            pytest.param(
                lambda: AllAtOnce(maximum_time=cdk.Duration.seconds(599)), "599", id="AllAtOnce has too little time"
            ),
            pytest.param(
                lambda: AllAtOnce(maximum_time=cdk.Duration.hours(9)), "32400", id="AllAtOnce has too much time"
            ),
            pytest.param(
                lambda: Canary(
                    size=TEN,
                    wait=cdk.Duration.minutes(10),
                    termination_wait=cdk.Duration.minutes(10),
                    maximum_time=cdk.Duration.minutes(20),
                ),
                "1200",
                id="Canary waits all of its time",
            ),
            pytest.param(
                lambda: Linear(step=TEN, wait=cdk.Duration.minutes(10), maximum_time=cdk.Duration.hours(1)),
                "5400",
                id="Linear waits more than its time",
            ),
            pytest.param(
                lambda: Rolling(batch=Capacity(5), wait=MINUTE, maximum_time=cdk.Duration.minutes(15)),
                "1140",
                id="Rolling waits more than its time",
            ),
        ],
    )
    def test_what_sagemaker_would_reject_is_rejected(
        self, messages: Messages, make: Callable[[], object], computed: str
    ) -> None:
        with messages.raises(ConfigurationError) as caught:
            make()
        assert computed in str(caught.value)

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
    def test_rolling_is_for_one_variant(self, messages: Messages, stack: cdk.Stack, model: TritonModel) -> None:
        with messages.raises(ConfigurationError):
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

    def test_another_context_value_is_rejected(self, messages: Messages, world: World) -> None:
        app = world.app()
        app.node.set_context("cdk-triton:retainVariantProperties", "no")
        stack = cdk.Stack(app, "Stack")
        model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
        endpoint = TritonEndpoint(stack, "Endpoint", model=model)

        with messages.raises(ConfigurationError):
            endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=8)
