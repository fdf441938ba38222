"""Endpoints with inference components: what the templates say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from tests.hosting.endpoints.components.conftest import COPY, PLATFORM

from cdk_triton import MetricsConfig, TritonComponents, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World

COMPONENT, CONFIG = "AWS::SageMaker::InferenceComponent", "AWS::SageMaker::EndpointConfig"
ENDPOINT = "AWS::SageMaker::Endpoint"
TARGET, POLICY = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy"


def add(components: TritonComponents, text: TritonModel, **more: Any) -> Any:
    return components.add_component("Text", model=text, **{**COPY, **more})


def test_the_configuration_has_a_role_and_a_variant_without_a_model(
    world: World, stack: cdk.Stack, components: TritonComponents
) -> None:
    properties = world.only(stack, CONFIG)["Properties"]

    assert properties["ExecutionRoleArn"] == {"Fn::GetAtt": [role_of(world, stack), "Arn"]}
    assert properties["ProductionVariants"] == [
        {
            "VariantName": "AllTraffic",
            "InstanceType": "ml.g5.12xlarge",
            "InferenceAmiVersion": PLATFORM.inference_ami_version,
            "InitialInstanceCount": 1,
            "ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2},
            "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
        }
    ]
    assert components.role.role_name


def role_of(world: World, stack: cdk.Stack) -> str:
    """The logical id of the configuration's role."""
    (name,) = (each for each in world.resources(stack, "AWS::IAM::Role") if each.startswith("Components"))
    return name


def test_a_component_names_its_model_and_what_a_copy_reserves(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = add(components, text, cpus=2.5, copies=2)

    properties = world.only(stack, COMPONENT)["Properties"]
    (model,) = world.resources(stack, "AWS::SageMaker::Model")
    (endpoint,) = world.resources(stack, ENDPOINT)
    assert properties["EndpointName"] == {"Fn::GetAtt": [endpoint, "EndpointName"]}
    assert properties["VariantName"] == "AllTraffic"
    assert properties["RuntimeConfig"] == {"CopyCount": 2}
    assert properties["Specification"] == {
        "ModelName": {"Fn::GetAtt": [model, "ModelName"]},
        "ComputeResourceRequirements": {
            "NumberOfAcceleratorDevicesRequired": 1,
            "NumberOfCpuCoresRequired": 2.5,
            "MinMemoryRequiredInMb": 8192,
        },
    }
    assert components.components == (component,)
    assert (component.copies, component.model) == (2, text)


def test_a_large_model_has_time_to_start(
    world: World, stack: cdk.Stack, components: TritonComponents, monkeypatch: pytest.MonkeyPatch, text: TritonModel
) -> None:
    monkeypatch.setattr(TritonModel, "size", 50_000_000_000)
    add(components, text)

    assert world.only(stack, COMPONENT)["Properties"]["Specification"]["StartupParameters"] == {
        "ContainerStartupHealthCheckTimeoutInSeconds": 2520,
        "ModelDataDownloadTimeoutInSeconds": 3600,
    }


# Names.


def test_a_name_has_no_capitals_and_belongs_to_the_stack(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    """SageMaker writes an ARN in lower case, and the name is read from it."""
    components.add_component("Text2_OfTheShop-WithALongName", model=text, **COPY)

    (readable, of_stack) = world.only(stack, COMPONENT)["Properties"]["InferenceComponentName"]["Fn::Join"][1]
    assert re.fullmatch(r"text2-oftheshop-wi-[0-9a-f]{7}-", readable)
    assert of_stack == {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
    assert len(readable) + len("51af3dc0-da77-11e4-872e-1234567db123") <= 63


def test_callers_take_the_name_from_the_arn(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = add(components, text)
    (arn,) = world.resources(stack, COMPONENT)

    assert stack.resolve(component.component_arn) == {"Ref": arn}
    assert stack.resolve(component.component_name) == {"Fn::Select": [1, {"Fn::Split": ["/", {"Ref": arn}]}]}
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", COMPONENT).schema
    assert schema["primaryIdentifier"] == ["/properties/InferenceComponentArn"]  # so that Ref is the ARN
    assert "createOnlyProperties" not in schema  # so that a fixed name stands in no replacement's way


def test_components_of_another_endpoint_are_others(world: World) -> None:
    """UpdateInferenceComponent takes no other endpoint."""
    found = []
    for name in ("search", "shop"):
        stack = cdk.Stack(world.app(name), "Stack")
        model = TritonModel(stack, "Model", repository=world.repository(), platform=PLATFORM)
        endpoint = TritonComponents(stack, "Shop", platform=PLATFORM, max_instance_count=2, endpoint_name=name)
        endpoint.add_component("Text", model=model, **COPY)
        ((logical_id, component),) = world.resources(stack, COMPONENT).items()
        found.append((logical_id, str(component["Properties"]["InferenceComponentName"])))

    (first, first_name), (second, second_name) = found
    assert first != second
    assert first_name != second_name


# The place.


def test_network_and_isolation_of_the_models_are_those_of_the_configuration(world: World, stack: cdk.Stack) -> None:
    vpc = ec2.Vpc(stack, "Vpc")
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
    place: dict[str, Any] = {"vpc": vpc, "security_groups": [group], "network_isolation": True}
    components = TritonComponents(stack, "Components", platform=PLATFORM, max_instance_count=2)
    for name in ("text", "image"):
        model = TritonModel(stack, name, repository=world.repository(name), platform=PLATFORM, **place)
        components.add_component(name, model=model, **COPY)

    properties = world.only(stack, CONFIG)["Properties"]
    first, second = (each["Properties"] for each in world.resources(stack, "AWS::SageMaker::Model").values())
    assert properties["VpcConfig"] == first["VpcConfig"] == second["VpcConfig"]
    assert properties["EnableNetworkIsolation"] is True
    assert "ec2:CreateNetworkInterface" in actions(world.statements(stack, role_of(world, stack)))


def test_key_name_and_metrics_are_those_given(world: World, stack: cdk.Stack) -> None:
    TritonComponents(
        stack,
        "Components",
        platform=PLATFORM,
        max_instance_count=3,
        initial_instance_count=2,
        endpoint_name="Search",
        encryption_key=kms.Key(stack, "Key"),
        metrics_config=MetricsConfig(enhanced_metrics=True),
    )

    properties = world.only(stack, CONFIG)["Properties"]
    assert properties["KmsKeyId"]
    assert properties["MetricsConfig"]["EnableEnhancedMetrics"] is True
    assert properties["ProductionVariants"][0]["InitialInstanceCount"] == 2
    assert world.only(stack, ENDPOINT)["Properties"]["EndpointName"] == "Search"


# Permissions.


def actions(statements: list[dict[str, Any]]) -> set[str]:
    found = [statement["Action"] for statement in statements]
    return {action for each in found for action in ([each] if isinstance(each, str) else each)}


def test_both_roles_may_run_a_component(
    world: World,
    stack: cdk.Stack,
    components: TritonComponents,
    text: TritonModel,
    flattened: Callable[[Any], str],
) -> None:
    """Which of the two SageMaker uses is not documented."""
    add(components, text)

    (of_model,) = (each for each in world.resources(stack, "AWS::IAM::Role") if each.startswith("TextModelRole"))
    for role in (role_of(world, stack), of_model):
        statements = world.statements(stack, role)
        resources = [
            flattened(resource)
            for statement in statements
            for resource in (
                statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            )
        ]
        assert actions(statements) >= {"s3:GetObject", "s3:ListBucket", "ecr:BatchGetImage", "logs:PutLogEvents"}
        assert any(resource.endswith("/artifacts/text/*") for resource in resources)
        assert any(resource.endswith(":log-group:/aws/sagemaker/InferenceComponents/*") for resource in resources)


def test_callers_may_invoke_components_that_come_later(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    caller = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    components.add_component("First", model=text, **COPY)
    components.grant_invoke(caller)
    components.add_component("Second", model=text, **COPY)

    allowed = [each for statement in world.statements(stack, "Caller") for each in refs(statement["Resource"])]
    assert sorted(allowed) == sorted([*world.resources(stack, ENDPOINT), *world.resources(stack, COMPONENT)])
    assert actions(world.statements(stack, "Caller")) == {
        "sagemaker:InvokeEndpoint",
        "sagemaker:InvokeEndpointWithResponseStream",
    }


def refs(value: Any) -> list[str]:
    return [each["Ref"] for each in (value if isinstance(value, list) else [value])]


def test_a_caller_may_be_bound_to_one_component(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    caller = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    first = components.add_component("First", model=text, **COPY)
    components.add_component("Second", model=text, **COPY)

    assert first.grant_invoke(caller).success

    allowed = [each for statement in world.statements(stack, "Caller") for each in refs(statement["Resource"])]
    (endpoint,) = world.resources(stack, ENDPOINT)
    assert sorted(allowed) == sorted([endpoint, stack.resolve(first.component_arn)["Ref"]])


# Scaling.


def test_copies_scale_by_the_metrics_of_the_component(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    component = add(components, text)
    count = component.auto_scale_copies(min_capacity=1, max_capacity=4)
    count.scale_on_invocations("Requests", max_requests_per_second=40)
    count.scale_on_concurrent_requests(
        "Concurrency", target_concurrent_requests=5, scale_in_cooldown=cdk.Duration.minutes(20)
    )

    target = world.only(stack, TARGET)["Properties"]
    assert target == {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        "ResourceId": {"Fn::Join": ["", ["inference-component/", stack.resolve(component.component_name)]]},
        "MinCapacity": 1,
        "MaxCapacity": 4,
    }
    policies = [each["Properties"] for each in world.resources(stack, POLICY).values()]
    tracked = {
        each["TargetTrackingScalingPolicyConfiguration"]["PredefinedMetricSpecification"]["PredefinedMetricType"]: each[
            "TargetTrackingScalingPolicyConfiguration"
        ]
        for each in policies
    }
    invocations = tracked["SageMakerInferenceComponentInvocationsPerCopy"]
    assert (invocations["TargetValue"], invocations["ScaleInCooldown"], invocations["ScaleOutCooldown"]) == (
        1200,
        600,
        300,
    )
    concurrency = tracked["SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"]
    assert (concurrency["TargetValue"], concurrency["ScaleInCooldown"]) == (5, 1200)
    assert component.scalable_copy_count is count
    assert (component.min_copies, component.max_copies) == (1, 4)


def test_scaling_to_zero_makes_target_tracking_step_and_alarm(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    add(components, text).scale_to_zero("Idle", max_capacity=2, max_requests_per_second=10)

    assert world.only(stack, TARGET)["Properties"]["MinCapacity"] == 0
    policies = world.resources(stack, POLICY)
    (step,) = (name for name, each in policies.items() if each["Properties"]["PolicyType"] == "StepScaling")
    assert policies[step]["Properties"]["StepScalingPolicyConfiguration"] == {
        "AdjustmentType": "ChangeInCapacity",
        "MetricAggregationType": "Maximum",
        "Cooldown": 60,
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
    }
    (tracking,) = (each["Properties"] for name, each in policies.items() if name != step)
    assert tracking["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 300
    alarm = world.only(stack, "AWS::CloudWatch::Alarm")["Properties"]
    assert alarm.pop("AlarmDescription")
    assert alarm == {
        "Namespace": "AWS/SageMaker",
        "MetricName": "NoCapacityInvocationFailures",
        "Dimensions": [
            {
                "Name": "InferenceComponentName",
                "Value": world.only(stack, COMPONENT)["Properties"]["InferenceComponentName"],
            }
        ],
        "Statistic": "Maximum",
        "Period": 30,
        "EvaluationPeriods": 1,
        "DatapointsToAlarm": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "missing",
        "AlarmActions": [{"Ref": step}],
    }


# The order.


def test_a_component_goes_before_its_endpoint_model_and_roles_and_after_its_target(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    add(components, text).scale_to_zero("Idle", max_capacity=2, max_requests_per_second=10)

    resources = world.template(stack)["Resources"]
    kinds = {name: each["Type"] for name, each in resources.items()}
    first_of = {kind: next(name for name in kinds if kinds[name] == kind) for kind in (COMPONENT, ENDPOINT, TARGET)}
    under_component = needed_by(resources, first_of[COMPONENT])
    assert {kinds[name] for name in under_component} >= {
        ENDPOINT,
        CONFIG,
        "AWS::SageMaker::Model",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "Custom::TritonArtifacts",
    }
    policies = {name for name in kinds if kinds[name] == "AWS::IAM::ManagedPolicy"}
    of_components = {name for name in policies if name.startswith(("Components", "TextModel"))}
    assert of_components <= under_component
    assert any(name.startswith("ComponentsText") for name in needed_by(resources, first_of[ENDPOINT]) & policies)
    assert first_of[COMPONENT] in needed_by(resources, first_of[TARGET])
    assert all(first_of[TARGET] in needed_by(resources, name) for name in kinds if kinds[name] == POLICY)


def needed_by(resources: dict[str, Any], name: str) -> set[str]:
    """Everything that is there before a resource, and goes after it."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        resource = resources[waiting.pop()]
        text = str([resource.get("Properties"), resource.get("DependsOn")])
        new = {each for each in resources if f"'{each}'" in text} - found - {name}
        found |= new
        waiting += new
    return found


# What the services take.


def test_the_api_takes_what_the_template_has(
    world: World, stack: cdk.Stack, components: TritonComponents, text: TritonModel
) -> None:
    add(components, text, cpus=0.25)
    model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"))
    names = {"InferenceComponentName": "text", "EndpointName": "e"}

    properties = world.only(stack, COMPONENT)["Properties"] | names
    properties["Specification"]["ModelName"] = "m"
    assert not faults(model, "CreateInferenceComponent", properties)
    config = world.only(stack, CONFIG)["Properties"] | {"EndpointConfigName": "c", "ExecutionRoleArn": "a" * 20}
    assert not faults(model, "CreateEndpointConfig", config)


def faults(model: ServiceModel, operation: str, members: dict[str, Any]) -> str:
    shape = model.operation_model(operation).input_shape
    assert shape is not None
    return str(ParamValidator().validate(members, shape).generate_report())


def test_cloudformation_takes_the_template(world: World) -> None:
    """The CDK's own validation of templates by the registry's schemas is on."""
    app = world.app("validated", validated=True)
    stack = cdk.Stack(app, "Stack")
    model = TritonModel(stack, "Model", repository=world.repository(), platform=PLATFORM)
    components = TritonComponents(stack, "Components", platform=PLATFORM, min_instance_count=0, max_instance_count=2)
    add(components, model, cpus=2).scale_to_zero("Idle", max_capacity=2, max_requests_per_second=10)

    app.synth()


# Metrics.


@pytest.mark.parametrize(
    ("method", "namespace", "name", "statistic"),
    [
        ("metric_invocations", "AWS/SageMaker", "Invocations", "Sum"),
        ("metric_invocations_per_copy", "AWS/SageMaker", "InvocationsPerCopy", "Sum"),
        ("metric_no_capacity_invocation_failures", "AWS/SageMaker", "NoCapacityInvocationFailures", "Sum"),
        ("metric_model_latency", "AWS/SageMaker", "ModelLatency", "Average"),
        ("metric_cpu_utilization", "/aws/sagemaker/InferenceComponents", "CPUUtilizationNormalized", "Average"),
        ("metric_memory_utilization", "/aws/sagemaker/InferenceComponents", "MemoryUtilizationNormalized", "Average"),
        ("metric_gpu_utilization", "/aws/sagemaker/InferenceComponents", "GPUUtilizationNormalized", "Average"),
        (
            "metric_gpu_memory_utilization",
            "/aws/sagemaker/InferenceComponents",
            "GPUMemoryUtilizationNormalized",
            "Average",
        ),
    ],
)
def test_a_component_has_metrics_of_its_own(
    world: World,
    stack: cdk.Stack,
    components: TritonComponents,
    text: TritonModel,
    method: str,
    namespace: str,
    name: str,
    statistic: str,
) -> None:
    component = add(components, text)
    metric = getattr(component, method)()

    assert (metric.namespace, metric.metric_name, metric.statistic) == (namespace, name, statistic)
    given = world.only(stack, COMPONENT)["Properties"]["InferenceComponentName"]
    assert stack.resolve(metric.dimensions) == {"InferenceComponentName": given}
