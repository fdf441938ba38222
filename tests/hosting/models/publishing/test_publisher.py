"""`TritonMultiModel.add_publisher`: its resources, and what each role may do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Annotations, Match, Template

from cdk_triton import (
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonMultiModel,
    TritonPublisher,
    add_vpc_endpoints,
)
from cdk_triton.artifacts.keys import key_inputs
from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA, PublisherDescription
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages


class Fleet:
    """A store with a key in a stack of its own, and a multi-model without an ensemble in another."""

    def __init__(self, world: World, *, has_former_key: bool = False, **properties: Any) -> None:
        self.app = world.app()
        env = cdk.Environment(account="111122223333", region="eu-west-1")
        artifacts, self.stack = (cdk.Stack(self.app, name, env=env) for name in ("Artifacts", "Serving"))
        key, former = (kms.Key(artifacts, name, enable_key_rotation=True) for name in ("Key", "Former"))
        self.store = TritonArtifactStore(
            artifacts, "Store", encryption_key=key, former_keys=[former] if has_former_key else []
        )
        given = {"platform": world.platform, **properties}
        self.model = TritonMultiModel(self.stack, "Fleet", store=self.store, **given)

    def add_publisher(self, **arguments: Any) -> TritonPublisher:
        return self.model.add_publisher(**arguments)

    def resources(self, kind: str) -> dict[str, Any]:
        return dict(Template.from_stack(self.stack).find_resources(kind))


@pytest.fixture(name="fleet")
def _fleet(world: World) -> Fleet:
    return Fleet(world)


def actions(world: World, fleet: Fleet, role: str) -> dict[str, list[str]]:
    """Action to the ends of the resources, of all that a role may do."""
    found: dict[str, list[str]] = {}
    for statement in world.statements(fleet.stack, role):
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        for action in statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]:
            found.setdefault(action, []).extend(map(ending, resources))
    return {action: sorted(places) for action, places in found.items()}


def ending(resource: Any) -> str:
    match resource:
        case {"Fn::Join": [_, [*parts]]}:
            return str(parts[-1]) if isinstance(parts[-1], str) else "?"
        case str():
            return resource
    return "?"


def test_each_function_may_do_what_it_does_and_no_more(world: World, fleet: Fleet) -> None:
    fleet.add_publisher()
    served, catalogue = (f"/{part}/{fleet.model.name_in_store}/25.09-a10g/" for part in ("fleets", "catalogue"))
    requests = f"/staging/publish/{fleet.model.name_in_store}/*"
    own = f"/staging/publishing/{fleet.model.name_in_store}/25.09-a10g/*"
    reads, writes = {"kms:Decrypt": ["?"], "s3:ListBucket": ["?"]}, {"kms:GenerateDataKey": ["?"]}
    expected: dict[str, dict[str, list[str]]] = {
        "Prepare": {
            "s3:GetObject": [f"{requests}/request.json", f"{served}index.json"],
            "s3:PutObject": [own, f"{served}index.json"],
            **reads,
            **writes,
        },
        "Change": {
            "s3:GetObject": [f"{requests}/archives/*.tar.gz", f"{served}*.tar.gz", f"{catalogue}*.json"],
            "s3:PutObject": [f"{served}*.tar.gz", f"{catalogue}*.json"],
            **reads,
            **writes,
        },
        "Record": {"s3:PutObject": [own], "kms:Decrypt": ["?"], **writes},  # for the S3 bucket key
        "Count": {"s3:GetObject": [own, f"{catalogue}*.json"], **reads},
    }
    logs = {"logs:CreateLogStream": ["?"], "logs:PutLogEvents": ["?"]}
    for name, allowed in expected.items():
        found = actions(world, fleet, f"FleetPublisher{name}Role")
        assert found == logs | {action: sorted(places) for action, places in allowed.items()}


def test_a_function_that_reads_nothing_does_not_use_former_keys(world: World) -> None:
    fleet = Fleet(world, has_former_key=True)
    fleet.add_publisher()
    found = {name: actions(world, fleet, f"FleetPublisher{name}Role") for name in ("Prepare", "Record", "Count")}
    assert {name: len(each["kms:Decrypt"]) for name, each in found.items()} == {"Prepare": 2, "Record": 1, "Count": 2}


def test_the_machine_may_follow_stop_and_redrive_its_maps(world: World, fleet: Fleet) -> None:
    """By both patterns of Step Functions' guide: that of executions, and that of the children of a map run."""
    fleet.add_publisher()
    role = next(name for name in fleet.resources("AWS::IAM::Role") if name.startswith("FleetPublisherStateMachine"))
    found = actions(world, fleet, role)

    for action in ("DescribeExecution", "RedriveExecution", "StopExecution"):
        assert found[f"states:{action}"] == ["/*", ":*"]
    assert found["states:StartExecution"] == ["?"]


def test_the_machine_calls_the_four_functions_and_logs_everything(fleet: Fleet) -> None:
    publisher = fleet.add_publisher()

    (machine,) = fleet.resources("AWS::StepFunctions::StateMachine").values()
    text = json.dumps(machine["Properties"]["DefinitionString"])
    functions = fleet.resources("AWS::Lambda::Function")
    assert all(f'"{name}", "Arn"' in text.replace("\\", "") for name in functions)
    handlers = sorted(function["Properties"]["Handler"] for function in functions.values())
    assert handlers == [f"artifacts.publishing.{name}" for name in ("change", "count", "prepare", "record")]
    assert machine["Properties"]["LoggingConfiguration"]["Level"] == "ALL"
    (group,) = fleet.resources("AWS::Logs::LogGroup").values()
    assert "KmsKeyId" in group["Properties"]
    (alarm,) = fleet.resources("AWS::CloudWatch::Alarm").values()
    metrics = [each["MetricStat"]["Metric"]["MetricName"] for each in alarm["Properties"]["Metrics"][1:]]
    assert metrics == ["ExecutionsFailed", "ExecutionsAborted", "ExecutionsTimedOut"]
    assert publisher.alarm.node.path.endswith("Publisher/Failures")


def test_the_log_group_takes_no_space_in_the_policy_of_the_account(world: World) -> None:
    """Its name has the prefix of Step Functions' guide, and no other publisher has it."""
    fleet = Fleet(world)
    fleet.add_publisher(next_platform=NEXT)
    TritonMultiModel(fleet.stack, "Other, @ Fleet", platform=world.platform, store=fleet.store).add_publisher()
    twin = cdk.Stack(fleet.app, "Twin", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    TritonMultiModel(twin, "Fleet", platform=world.platform, store=fleet.store).add_publisher()

    groups = [
        group
        for stack in (fleet.stack, twin)
        for group in Template.from_stack(stack).find_resources("AWS::Logs::LogGroup").values()
    ]
    names = [group["Properties"]["LogGroupName"] for group in groups]

    assert len(set(names)) == len(groups) == 4
    for name in names:
        assert re.fullmatch(r"/aws/vendedlogs/states/[a-zA-Z0-9_./#-]+", name)
        assert len(name) <= 512
    assert {group["DeletionPolicy"] for group in groups} == {"Delete"}


def test_the_alarms_contain_the_first_step_or_the_address_of_the_runbook(messages: Messages, world: World) -> None:
    page, section = "https://wiki.example.com/triton", "PublisherFailures"
    for runbook in (None, page):
        fleet = Fleet(world)
        fleet.model.add_publisher(next_platform=NEXT, runbook_url=runbook)
        for alarm in fleet.resources("AWS::CloudWatch::Alarm").values():
            text = alarm["Properties"]["AlarmDescription"]
            messages.record("alarm", text)
            assert text.endswith(f" {page}#{section.lower()}") == (runbook is not None)
            assert ("run the same cdk-triton command again" in text) == (runbook is None)
    assert f"\n## {section}\n" in (Path(__file__).parents[4] / "docs" / "runbook.md").read_text()


@pytest.mark.parametrize(
    "runbook",
    [
        pytest.param("", id="empty"),
        pytest.param("https://wiki.example.com/triton#alarms", id="with a fragment"),
        pytest.param(f"https://wiki.example.com/{'x' * 1000}", id="too long for a description"),
    ],
)
def test_a_runbook_to_which_no_section_can_be_added_is_rejected(messages: Messages, fleet: Fleet, runbook: str) -> None:
    with messages.raises(ConfigurationError):
        fleet.add_publisher(runbook_url=runbook)


def test_a_rejected_runbook_leaves_no_publisher_behind(fleet: Fleet) -> None:
    with pytest.raises(ConfigurationError):
        fleet.add_publisher(runbook_url="https://wiki.example.com/triton#alarms")

    assert fleet.model.node.try_find_child("Publisher") is None
    fleet.add_publisher()


def test_the_functions_compute_the_keys_of_the_platform(world: World, fleet: Fleet) -> None:
    fleet.add_publisher()
    for function in fleet.resources("AWS::Lambda::Function").values():
        variables = function["Properties"]["Environment"]["Variables"]
        assert variables["PLATFORM"] == world.platform.label
        assert json.loads(variables["KEYS"])["target"]["image"] == world.platform.image_identity


def description(fleet: Fleet) -> dict[str, Any]:
    (machine,) = fleet.resources("AWS::StepFunctions::StateMachine").values()
    return dict(machine["Metadata"][PUBLISHER_METADATA])


def test_the_template_describes_the_publisher_to_the_command(world: World) -> None:
    environment = ContainerEnvironment(
        thread_count=4, shm_default_byte_size=2 << 20, additional_args=("--exit-timeout-secs=5",)
    )
    fleet = Fleet(world, environment=replace(environment, variables={"A": "b"}))
    fleet.model.add_publisher(max_concurrency=3)
    found = PublisherDescription.parse(description(fleet), "Serving/Fleet")
    assert found == PublisherDescription("Fleet", fleet.model.name_in_store, world.platform, environment, 3)


def test_a_publisher_of_an_own_image_is_described_by_its_digest(world: World) -> None:
    image = f"registry.example.com/triton@sha256:{'0' * 64}"
    fleet = Fleet(world, platform=replace(world.platform, image=image))
    fleet.add_publisher()
    found = PublisherDescription.parse(description(fleet), "Serving/Fleet").platform
    assert key_inputs(found) == key_inputs(replace(world.platform, image=image))
    assert found.label == fleet.model.platform.label


@pytest.mark.parametrize("change", [{"schema": 2}, {"keys": {}}, {"platform": {}}, {"environment": {"threads": 1}}])
def test_a_description_of_another_version_is_rejected(messages: Messages, fleet: Fleet, change: dict[str, Any]) -> None:
    fleet.add_publisher()
    with messages.raises(ConfigurationError):
        PublisherDescription.parse({**description(fleet), **change}, "Serving/Fleet")


def test_a_publisher_may_upload_and_start_and_readers_only_read(world: World, fleet: Fleet) -> None:
    role, reader = (
        iam.Role(fleet.stack, name, assumed_by=iam.AccountPrincipal("111122223333")) for name in ("Ci", "Reader")
    )
    fleet.add_publisher().grant_publish(role)
    fleet.model.grant_read_catalogue(reader)

    catalogue = f"/catalogue/{fleet.model.name_in_store}/*"
    found = actions(world, fleet, "Ci")
    assert found["s3:PutObject"] == [f"/staging/publish/{fleet.model.name_in_store}/${{aws:userid}}/*"]
    # Not the sources that the machine keeps.
    assert found["s3:GetObject"] == [
        catalogue,
        f"/staging/publishing/{fleet.model.name_in_store}/25.09-a10g/failures/*",
    ]
    assert found.keys() >= {"states:StartExecution", "kms:GenerateDataKey"}
    assert found["states:DescribeMapRun"] == ["/*"]
    assert {action for action in found if action.startswith("cloudformation:")} == {
        "cloudformation:GetTemplate",
        "cloudformation:DescribeStackResource",
    }
    assert not {"s3:DeleteObject", "lambda:InvokeFunction"} & found.keys()
    assert {
        action: places for action, places in actions(world, fleet, "Reader").items() if action != "kms:Decrypt"
    } == {
        "s3:GetObject": [catalogue],
        "s3:ListBucket": ["?"],
    }


def test_each_platform_has_the_least_shared_memory_of_its_release(world: World, fleet: Fleet) -> None:
    fleet.add_publisher(next_platform="23.07/ml.g4dn.xlarge")
    described = [each["Metadata"][PUBLISHER_METADATA] for each in machines(fleet)]
    found = [PublisherDescription.parse(each, "Serving/Fleet") for each in described]
    sizes = {each.platform.release: each.environment.shm_default_byte_size for each in found}
    assert sizes == {"25.09": 1 << 20, "23.07": 4 << 20}


NEXT = ServingPlatform(release="26.05", instance_type="ml.g6.xlarge")


def test_a_next_platform_has_a_machine_of_its_own_that_copies_from_the_present_one(world: World, fleet: Fleet) -> None:
    role = iam.Role(fleet.stack, "Ci", assumed_by=iam.AccountPrincipal("111122223333"))
    publisher = fleet.add_publisher(next_platform=NEXT)
    publisher.grant_publish(role)

    assert publisher.next is not None
    assert publisher.next.state_machine_arn != publisher.state_machine_arn
    assert publisher.next.alarm is not publisher.alarm
    described = [each["Metadata"][PUBLISHER_METADATA] for each in machines(fleet)]
    found = [PublisherDescription.parse(each, "Serving/Fleet") for each in described]
    assert sorted((each.platform.label, each.is_next) for each in found) == [("25.09-a10g", False), ("26.05-l4", True)]
    assert {each.multi_model for each in found} == {"Fleet"}
    present, following = (
        f"/fleets/{fleet.model.name_in_store}/{label}/*.tar.gz" for label in ("25.09-a10g", "26.05-l4")
    )
    reading = actions(world, fleet, "FleetNextPublisherChangeRole")
    assert {present, following} <= set(reading["s3:GetObject"])
    assert present not in reading["s3:PutObject"]
    assert following not in actions(world, fleet, "FleetPublisherChangeRole")["s3:GetObject"]
    (started,) = [
        each["Resource"] for each in world.statements(fleet.stack, "Ci") if "states:StartExecution" in each["Action"]
    ]
    assert len(started) == 2
    (model,) = fleet.resources("AWS::SageMaker::Model").values()
    assert "25.09-a10g" in json.dumps(model)  # no endpoint serves the next one


def test_the_machine_of_a_next_platform_reads_the_names_of_the_stack(world: World, fleet: Fleet) -> None:
    fleet.add_publisher(next_platform=NEXT)

    functions = fleet.resources("AWS::Lambda::Function").values()
    environments = [each["Properties"].get("Environment", {}).get("Variables", {}) for each in functions]
    (following,) = [each for each in environments if "PRESENT_PLATFORM" in each]
    assert (following["PLATFORM"], following["PRESENT_PLATFORM"]) == ("26.05-l4", "25.09-a10g")
    index = f"/fleets/{fleet.model.name_in_store}/25.09-a10g/index.json"
    permissions = actions(world, fleet, "FleetNextPublisherPrepareRole")
    assert index in permissions["s3:GetObject"]
    assert index not in permissions["s3:PutObject"]


def test_whoever_publishes_everything_may_read_what_is_published(world: World, fleet: Fleet) -> None:
    role = iam.Role(fleet.stack, "Ci", assumed_by=iam.AccountPrincipal("111122223333"))
    fleet.add_publisher(next_platform=NEXT, recipes=[TensorRTPlan("net")]).grant_publish_all(role)
    found = actions(world, fleet, "Ci")
    assert found.keys() >= {"states:StartExecution", "kms:Decrypt"}
    assert {f"/fleets/{fleet.model.name_in_store}/25.09-a10g/*", "/artifacts/*/*/sources.tar.gz"} <= set(
        found["s3:GetObject"]
    )
    assert found["s3:PutObject"] == [f"/staging/publish/{fleet.model.name_in_store}/${{aws:userid}}/*"]
    assert not [each for each in found["s3:GetObject"] if "rehearsals" in each]


def test_whoever_publishes_everything_may_read_golden_requests(world: World, fleet: Fleet) -> None:
    role = iam.Role(fleet.stack, "Ci", assumed_by=iam.AccountPrincipal("111122223333"))
    fleet.add_publisher(next_platform=NEXT, rehearse=True).grant_publish_all(role)
    assert "/artifacts/*/*/rehearsals/*" in actions(world, fleet, "Ci")["s3:GetObject"]


def test_a_deployment_that_changes_the_platform_is_checked_before_anything_else(world: World, fleet: Fleet) -> None:
    fleet.add_publisher(next_platform=NEXT)
    ((delivery, resource),) = fleet.resources("Custom::TritonArtifacts").items()
    assert resource["Properties"]["PublishedPlatform"] == "25.09-a10g"
    command = f"cdk-triton fleet publish --all --platform 25.09/{world.platform.instance_type} --fleet Serving/Fleet"
    assert resource["Properties"]["PublishCommand"] == command
    assert len(machines(fleet)) == 2
    for name, machine in fleet.resources("AWS::StepFunctions::StateMachine").items():
        assert delivery in machine["DependsOn"], name
    for name, function in fleet.resources("AWS::Lambda::Function").items():
        assert delivery in function["DependsOn"], name


def machines(fleet: Fleet) -> list[dict[str, Any]]:
    return list(fleet.resources("AWS::StepFunctions::StateMachine").values())


def test_a_next_platform_that_serves_the_same_archives_is_rejected(
    messages: Messages, world: World, fleet: Fleet
) -> None:
    with messages.raises(ConfigurationError):
        fleet.add_publisher(next_platform=replace(world.platform, instance_type="ml.g5.2xlarge"))


def test_a_multi_model_without_an_ensemble_needs_a_publisher(messages: Messages, world: World, fleet: Fleet) -> None:
    (error,) = Annotations.from_stack(fleet.stack).find_error("/Serving/Fleet", Match.any_value())
    messages.record("cdk-triton:NoPublisher", str(error.entry.data))
    other = Fleet(world)
    other.add_publisher()
    assert Annotations.from_stack(other.stack).find_error("*", Match.any_value()) == []
    (plan,) = (each for each in other.resources("Custom::TritonArtifacts").values())
    assert plan["Properties"]["PlanKey"]
    with messages.raises(ConfigurationError):
        other.add_publisher()


@pytest.mark.parametrize("count", [0, 10_001])
def test_a_concurrency_that_step_functions_does_not_have_is_rejected(
    messages: Messages, fleet: Fleet, count: int
) -> None:
    with messages.raises(ConfigurationError):
        fleet.model.add_publisher(max_concurrency=count)


def test_the_functions_run_in_the_vpc_of_the_store(world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    store = TritonArtifactStore(stack, "Store", vpc=ec2.Vpc(stack, "Vpc"))
    model = TritonMultiModel(stack, "Fleet", platform=world.platform, store=store)
    model.add_publisher()
    functions = Template.from_stack(stack).find_resources("AWS::Lambda::Function").values()
    networks = {each["Properties"]["Handler"]: each["Properties"]["VpcConfig"] for each in functions}
    ours = {name: network for name, network in networks.items() if "publishing" in name}
    assert len(ours) == 4
    assert all(network == networks["artifacts.is_complete"] for network in ours.values())


def test_a_vpc_without_internet_needs_what_the_check_of_the_platform_calls(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    subnets = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, subnet_configuration=[subnets])
    store = TritonArtifactStore(stack, "Store", vpc=vpc)
    TritonMultiModel(stack, "Fleet", platform=world.platform, store=store).add_publisher()
    vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
    vpc.add_interface_endpoint("States", service=ec2.InterfaceVpcEndpointAwsService.STEP_FUNCTIONS)

    pattern = Match.string_like_regexp(r"\[ack: cdk-triton:NoWayOut\]")
    (warning,) = Annotations.from_stack(stack).find_warning("*", pattern)
    messages.record("cdk-triton:NoWayOut", str(warning.entry.data))
    assert warning.id == "/Stack/Fleet"


def test_the_check_of_the_platform_waits_for_the_endpoint_that_it_calls(world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    subnets = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, subnet_configuration=[subnets])
    store = TritonArtifactStore(stack, "Store", vpc=vpc)
    TritonMultiModel(stack, "Fleet", platform=world.platform, store=store).add_publisher()
    add_vpc_endpoints(vpc, store_functions=True)

    assert not Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("NoWayOut"))
    (delivery,) = Template.from_stack(stack).find_resources("Custom::TritonArtifacts").values()
    assert any(name.startswith("VpcTritonCloudformation") for name in delivery["DependsOn"])


def test_a_store_that_promotes_has_no_publisher(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    bucket = cdk.aws_s3.Bucket.from_bucket_name(stack, "Tested", "tested-artifacts")
    tested = TritonArtifactStore.from_bucket(stack, "TestedStore", bucket)
    store = TritonArtifactStore(stack, "Store", promotes_from=tested)
    model = TritonMultiModel(stack, "Fleet", platform=world.platform, store=store)
    with messages.raises(ConfigurationError):
        model.add_publisher()


@pytest.mark.slow
@pytest.mark.parametrize("pack", [cdk_nag.AwsSolutionsChecks, cdk_nag.NIST80053R5Checks])
def test_cdk_nag_finds_nothing(fleet: Fleet, pack: Any) -> None:
    fleet.add_publisher(next_platform=NEXT)
    fleet.app.synth()
    report = pack().validate_scope(fleet.stack)
    found = {(each.rule_name, each.violating_resources[0].resource_logical_id) for each in report.violations}
    assert not found
