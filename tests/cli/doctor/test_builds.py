"""What `cdk-triton doctor --app` says of the builds that a deployment of the app may start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA
from cdk_triton.artifacts.served_repositories import SERVED_METADATA
from cdk_triton.protocol.plan import BuildInput, BuildMachine, Commit, EnsembleBuild, StackPlan
from cdk_triton.protocol.publisher import DeclaredBuilds

SUBJECT = "builds of the app"
CODEBUILD = "Concurrently running builds for Linux GPU Small environment"
PROCESSING = "ml.g6.2xlarge for processing job usage"
PROGRAM = BuildInput(None, "triton-program.pyz", "program.pyz")
CODEBUILD_MACHINE = BuildMachine("codebuild", 120, {}, PROGRAM)
PROCESSING_MACHINE = BuildMachine("processing", 120, {}, PROGRAM, "ml.g6.2xlarge", 100)
WITHOUT_RECIPES = StackPlan(())


def _plan(machine: BuildMachine, key: str) -> StackPlan:
    """A model that builds one archive."""
    build = EnsembleBuild((), {})
    return StackPlan((Commit("text", key, "25.09-a10g", None, "archive", "manifest", build),), builder=machine)


ON_CODEBUILD, ALSO_ON_CODEBUILD = (_plan(CODEBUILD_MACHINE, key) for key in ("aa", "bb"))
ON_PROCESSING, ALSO_ON_PROCESSING = (_plan(PROCESSING_MACHINE, key) for key in ("aa", "bb"))


def _template(plans: int, *, fleets: tuple[bool, ...] = ()) -> dict[str, Any]:
    """Models with a plan each, and a project with a GPU for each of `fleets`, with a fleet or without."""
    models = {f"Model{n}": _resource("Custom::TritonArtifacts", PlanKey=f"triton-plan-{n}.json") for n in range(plans)}
    projects = {}
    for number, fleet in enumerate(fleets):
        environment = {"Type": "LINUX_GPU_CONTAINER", "ComputeType": "BUILD_GENERAL1_SMALL"}
        more = {"Fleet": {"FleetArn": "arn:aws:codebuild:us-east-1:123456789012:fleet/mine"}} if fleet else {}
        projects[f"Project{number}"] = _resource("AWS::CodeBuild::Project", Environment={**environment, **more})
    return {"Resources": {**models, **projects}}


def _resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def test_a_publisher_runs_as_many_builds_as_it_says(doctor: Any, aws: Any, assembly: Any) -> None:
    listed = {"QuotaName": CODEBUILD, "QuotaCode": "L-12345678", "Value": 2.0}
    aws.answers("ListServiceQuotas", {"Quotas": [listed]})
    builds = DeclaredBuilds("25.09-a10g", 1, CODEBUILD_MACHINE, 3, ())
    description = {"multi_model": "Fleet", "max_concurrency": 8, "builds": builds.text().decode()}
    machine = _resource("AWS::StepFunctions::StateMachine") | {"Metadata": {PUBLISHER_METADATA: description}}
    template = {"Resources": {"Machine": machine}}

    found = doctor("--app", assembly("Served", template, []))

    assert found.graded(SUBJECT) == "warning"
    assert "may start 3 builds at once" in found.out


@pytest.mark.parametrize(
    ("plans", "quota", "value", "grade"),
    [
        pytest.param([ON_CODEBUILD], CODEBUILD, 0, "error", id="CodeBuild, none"),
        pytest.param([ON_CODEBUILD], CODEBUILD, 1, "ok", id="CodeBuild, enough"),
        pytest.param([ON_CODEBUILD, ALSO_ON_CODEBUILD], CODEBUILD, 1, "warning", id="CodeBuild, one of two waits"),
        pytest.param([ON_CODEBUILD, ON_CODEBUILD], CODEBUILD, 1, "ok", id="CodeBuild, two models share a build"),
        pytest.param([ON_PROCESSING], PROCESSING, 0, "error", id="Processing, none"),
        pytest.param([ON_PROCESSING, ALSO_ON_PROCESSING], PROCESSING, 1, "warning", id="Processing, one of two waits"),
        pytest.param([ON_PROCESSING, WITHOUT_RECIPES], PROCESSING, 1, "ok", id="Processing, enough"),
    ],
)
def test_a_quota(
    plans: list[StackPlan], quota: str, value: int, grade: str, doctor: Any, aws: Any, assembly: Any
) -> None:
    listed = {"QuotaName": quota, "QuotaCode": "L-12345678", "Value": float(value)}
    aws.answers("ListServiceQuotas", {"Quotas": [listed]})

    assert doctor("--app", assembly("Served", _template(len(plans)), plans)).graded(SUBJECT) == grade


def test_each_machine_has_its_quota(doctor: Any, aws: Any, assembly: Any) -> None:
    out = doctor("--app", assembly("Served", _template(2), [ON_CODEBUILD, ON_PROCESSING])).out

    assert [name for name in (CODEBUILD, PROCESSING) if f"the quota '{name}' is" in " ".join(out.split())] == [
        CODEBUILD,
        PROCESSING,
    ]


@pytest.mark.parametrize(
    ("fleets", "counted"),
    [((True,), False), ((False,), True), ((True, False), True)],
    ids=["fleet", "on demand", "both"],
)
def test_the_machines_of_a_fleet_need_no_quota(
    fleets: tuple[bool, ...], counted: bool, doctor: Any, aws: Any, assembly: Any
) -> None:
    out = doctor("--app", assembly("Served", _template(1, fleets=fleets), [ON_CODEBUILD])).out

    assert (f"{SUBJECT}: " in out) == counted


@pytest.mark.parametrize("plans", [[], [WITHOUT_RECIPES]], ids=["no model", "no recipe"])
def test_an_app_that_builds_nothing_is_not_mentioned(plans: Any, doctor: Any, aws: Any, assembly: Any) -> None:
    assert f"{SUBJECT}: " not in doctor("--app", assembly("Served", _template(len(plans)), plans)).out


def test_gpu_minutes_of_builds_and_rehearsals(doctor: Any, aws: Any, assembly: Any) -> None:
    app = Path(assembly("Served", _template(0), []))
    manifest = json.loads((app / "manifest.json").read_text())
    works = [{"builds": 5.5, "rehearsals": 3.0}, {"builds": 0, "rehearsals": 1.2}, {"builds": 0, "rehearsals": 0}]
    manifest["artifacts"]["Served"]["metadata"] = {
        f"/Served/Model{number}": [{"type": SERVED_METADATA, "data": {"minutes": work}}]
        for number, work in enumerate(works)
    }
    (app / "manifest.json").write_text(json.dumps(manifest))
    assert doctor("--app", str(app)).graded("GPU minutes of the app") == "ok"
    found = " ".join(doctor("--app", str(app)).out.split())
    assert "starts 2 jobs with a GPU, which take about 26 minutes (16 to start, 6 to build, 4 to rehearse)" in found


def test_a_platform_adds_no_quota_of_a_builder_that_the_app_does_not_use(doctor: Any, aws: Any, assembly: Any) -> None:
    listed = {"QuotaName": CODEBUILD, "QuotaCode": "L-12345678", "Value": 0.0}
    aws.answers("ListServiceQuotas", {"Quotas": [listed]})

    app = assembly("Served", _template(1), [ON_PROCESSING])
    out = doctor("--platform", "25.09/ml.g5.2xlarge", "--app", app).out

    assert "build quota" not in out
    assert CODEBUILD not in out
    assert f"{SUBJECT}: " in out


def test_a_quota_that_no_list_has_is_unknown(doctor: Any, aws: Any, assembly: Any) -> None:
    for operation in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas"):
        aws.answers(operation, {"Quotas": []})

    assert doctor("--app", assembly("Served", _template(1), [ON_PROCESSING])).graded(SUBJECT) == "unknown"
