"""CodeBuild's API on the local AWS: tokens, errors, projects, and the resource type."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton_local.jobs.codebuild import CodeBuild
from cdk_triton_local.jobs.context import LocalContext

if TYPE_CHECKING:
    from tests.local_aws.conftest import Rejected
    from tests.local_aws.jobs.codebuild.conftest import Builds

NO_ARTIFACTS = {"type": "NO_ARTIFACTS"}


def test_a_token_starts_one_build(builds: Builds) -> None:
    project = builds.project(build=["true"])
    first = builds.run(project, idempotencyToken="t")["id"]
    assert builds.start(project, idempotencyToken="t") == first
    assert builds.start(project, idempotencyToken="u") != first
    with pytest.raises(ClientError, match=r"\(InvalidInputException\).*Parameter mismatch"):
        builds.start(project, idempotencyToken="t", imageOverride="other")
    assert len(builds.client.list_builds_for_project(projectName=project)["ids"]) == 2


def test_a_token_holds_for_five_minutes(builds: Builds, tmp_path: Path) -> None:
    now = [0.0]
    aws = builds.aws
    context = LocalContext(tmp_path, aws.region, aws.account, {}, aws.client, print, clock=lambda: now[0])
    service = CodeBuild(context)

    def ask(operation: str, **members: Any) -> Any:
        return json.loads(service.api.answer(operation, json.dumps(members).encode()).body)

    source = {"type": "NO_SOURCE", "buildspec": builds.spec(build=["true"])}
    ask(
        "CreateProject",
        name="pp",
        serviceRole=builds.role,
        source=source,
        artifacts=NO_ARTIFACTS,
        environment=builds.machine,
    )
    found = []
    for moment in (0, 299, 301):
        now[0] = moment
        found.append(ask("StartBuild", projectName="pp", idempotencyToken="t")["build"]["id"])
    service.close()
    assert found[0] == found[1] != found[2]


@pytest.fixture
def rejection(builds: Builds) -> Callable[..., str]:
    """Code and sentence of a request that is rejected in CodeBuild's words."""

    def call(operation: str, **members: Any) -> str:
        with pytest.raises(ClientError) as caught:
            getattr(builds.client, operation)(**members)
        details = caught.value.response["Error"]
        return f"{details['Code']}: {details['Message']}"

    return call


def test_what_there_is_not_has_the_services_code(rejection: Callable[..., str]) -> None:
    there_is_none = "Project cannot be found: arn:aws:codebuild:us-east-1:123456789012:project/none"
    assert rejection("start_build", projectName="none") == f"ResourceNotFoundException: {there_is_none}"
    assert rejection("list_builds_for_project", projectName="none") == f"ResourceNotFoundException: {there_is_none}"
    assert rejection("stop_build", id="p:none") == "ResourceNotFoundException: Build p:none cannot be found"


def test_an_operation_that_is_not_modelled_is_rejected_by_name(builds: Builds, rejected: Rejected) -> None:
    with rejected("InvalidInputException") as caught:
        builds.client.list_reports()
    assert "ListReports" in caught.value.response["Error"]["Message"]


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (
            {"timeoutInMinutesOverride": 2161},
            "1 validation error detected: Value '2161' at 'timeoutInMinutesOverride' failed to satisfy constraint: "
            "Member must have value less than or equal to 2160",
        ),
        ({"sourceTypeOverride": "FLOPPY"}, "Member must satisfy enum value set: [CODECOMMIT, "),
        ({"sourceTypeOverride": "S3", "sourceLocationOverride": "bucket"}, "location must be a valid S3 source"),
        ({"artifactsOverride": {"type": "S3"}}, "location is required for artifacts of type S3"),
    ],
    ids=["range", "enumeration", "source", "artifacts"],
)
def test_a_build_that_codebuild_rejects_is_rejected_in_its_words(
    builds: Builds, rejection: Callable[..., str], overrides: dict[str, Any], reason: str
) -> None:
    answer = rejection("start_build", projectName=builds.project(build=["true"]), **overrides)
    assert answer.startswith("InvalidInputException: ")
    assert reason in answer


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        pytest.param({"hostKernelOverride": "LINUX_KERNEL_6"}, "hostKernelOverride", id="member"),
        pytest.param(
            {"sourceTypeOverride": "S3", "sourceLocationOverride": "bucket/key.zip"}, "bucket/key.zip", id="archive"
        ),
        pytest.param({"sourceTypeOverride": "GITHUB"}, "GITHUB", id="source"),
        pytest.param(
            {"artifactsOverride": {"type": "S3", "location": "b", "packaging": "ZIP"}}, "S3 ZIP", id="artifacts"
        ),
        pytest.param(
            {"environmentTypeOverride": "LINUX_GPU_CONTAINER", "computeTypeOverride": "BUILD_GENERAL1_LARGE"},
            "LINUX_GPU_CONTAINER BUILD_GENERAL1_LARGE",
            id="machine",
        ),
        pytest.param(
            {"environmentVariablesOverride": [{"name": "S", "value": "s", "type": "SECRETS_MANAGER"}]},
            "SECRETS_MANAGER",
            id="variable",
        ),
    ],
)
def test_a_build_that_cannot_be_as_on_aws_is_rejected(
    builds: Builds, rejected: Rejected, overrides: dict[str, Any], named: str
) -> None:
    project = builds.project(build=["true"])
    with rejected("InvalidInputException") as caught:
        builds.start(project, **overrides)
    assert named in caught.value.response["Error"]["Message"]


def test_what_is_unknown_is_told_apart(builds: Builds) -> None:
    project = builds.project(build=["true"])
    build = builds.run(project)
    answer = builds.client.batch_get_builds(ids=[build["arn"], "p:none"])
    assert [each["id"] for each in answer["builds"]] == [build["id"]]
    assert answer["buildsNotFound"] == ["p:none"]
    projects = builds.client.batch_get_projects(names=[project, "none"])
    assert projects["projects"][0]["source"]["buildspec"] == builds.spec(build=["true"])
    assert projects["projectsNotFound"] == ["none"]
    assert project in builds.client.list_projects()["projects"]


# ------------------------------------------------------------------------------------------------- CloudFormation


def test_a_stack_makes_changes_and_deletes_a_project(deployer: Any, builds: Builds) -> None:
    properties: dict[str, Any] = {
        "Artifacts": {"Type": "NO_ARTIFACTS"},
        "Description": "first",
        "Environment": {
            "ComputeType": "BUILD_GENERAL1_SMALL",
            "Image": "triton:25.09",
            "ImagePullCredentialsType": "SERVICE_ROLE",
            "PrivilegedMode": False,
            "Type": "LINUX_GPU_CONTAINER",
        },
        "LogsConfig": {"CloudWatchLogs": {"GroupName": "g", "Status": "ENABLED"}},
        "ServiceRole": builds.role,
        "Source": {"BuildSpec": builds.spec(build=["true"]), "Type": "NO_SOURCE"},
        "TimeoutInMinutes": "65",
    }
    outputs = {"Name": {"Value": {"Ref": "P"}}, "Arn": {"Value": {"Fn::GetAtt": ["P", "Arn"]}}}

    def template(**changes: Any) -> dict[str, Any]:
        kept = {name: value for name, value in {**properties, **changes}.items() if value is not None}
        return {"Resources": {"P": {"Type": "AWS::CodeBuild::Project", "Properties": kept}}, "Outputs": outputs}

    def project() -> Any:
        told = {each["OutputKey"]: each["OutputValue"] for each in deployer.describe(name)["Outputs"]}
        (found,) = builds.client.batch_get_projects(names=[told["Name"]])["projects"]
        assert found["arn"] == told["Arn"]
        return found

    name = deployer.new_name()
    assert deployer.deploy(template(), name) == "CREATE_COMPLETE", deployer.raw_events(name)
    made = project()
    assert made["timeoutInMinutes"] == 65
    assert made["logsConfig"]["cloudWatchLogs"]["groupName"] == "g"
    assert deployer.deploy(template(Description=None, TimeoutInMinutes=10), name) == "UPDATE_COMPLETE"
    assert (project()["description"], project()["timeoutInMinutes"]) == ("", 10)
    deployer.delete(name)
    assert made["name"] not in builds.client.list_projects()["projects"]


def test_a_property_that_is_not_modelled_fails_loudly(deployer: Any, rejected: Rejected) -> None:
    properties = {
        "Artifacts": {"Type": "NO_ARTIFACTS"},
        "ConcurrentBuildLimit": 1,
        "Environment": {"ComputeType": "BUILD_GENERAL1_SMALL", "Image": "image", "Type": "LINUX_CONTAINER"},
        "ServiceRole": "arn:aws:iam::111122223333:role/role",
        "Source": {"Type": "NO_SOURCE"},
    }
    template = {"Resources": {"P": {"Type": "AWS::CodeBuild::Project", "Properties": properties}}}
    with rejected("ValidationError"):
        deployer.deploy(template, deployer.new_name())
