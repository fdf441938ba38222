"""The example of a pipeline, synthesised by the unmodified CDK CLI.

The app is copied beside the text ensemble without its weights: they come from S3, and the rest need not run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks
from tests.docs.blocks import of_kind
from tests.snapshots.compare import assert_as_looked_at

ROOT = Path(__file__).parents[2]
ENSEMBLE = "model_assets/sentence_embedding"
PROMOTION = ("tested-bucket=tested-artifacts", "tested-key=arn:aws:kms:eu-west-1:222222222222:key/1234abcd")

Resources = dict[str, dict[str, Any]]


class Checkout:
    """A directory with the app and the ensemble, and what the CLI makes of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        prepared = shutil.ignore_patterns("*.onnx", "vendor", "tokenizer.json")
        shutil.copytree(ROOT / ENSEMBLE, directory / ENSEMBLE, ignore=prepared)
        model = directory / ENSEMBLE / "tokenizer" / "1"
        (model / "vendor" / "tokenizers").mkdir(parents=True)
        (model / "vendor" / "tokenizers" / "__init__.py").write_text("")
        (model / "tokenizer.json").write_text("{}")
        shutil.copy(ROOT / "cdk.json", directory)
        (directory / "examples").mkdir()
        shutil.copy(ROOT / "examples" / "pipeline_app.py", directory / "examples")

    def synth(
        self, *selection: str, context: tuple[str, ...] = (), validation: str = "false"
    ) -> subprocess.CompletedProcess[str]:
        flags = ("--quiet", "--no-notices", "--app", "python examples/pipeline_app.py")
        values = [part for each in context for part in ("--context", each)]
        return subprocess.run(
            [ROOT / "node_modules" / ".bin" / "cdk", "synth", *selection, *flags, *values],
            cwd=self.directory,
            env={
                **os.environ,
                "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
                "NO_COLOR": "1",
                "CDK_VALIDATION": validation,  # of templates, which takes most of the time
            },
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def good_synth(self, *, context: tuple[str, ...] = ()) -> None:
        done = self.synth("**", context=context, validation="true")
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def assembly(self) -> Path:
        return self.directory / "cdk.out"

    def resources(self, stack: str, kind: str, stage: str | None = None) -> Resources:
        below = self.assembly if stage is None else self.assembly / f"assembly-Pipeline-{stage}"
        (template,) = below.glob(f"{stack if stage is None else f'Pipeline{stage}{stack}'}*.template.json")
        resources: Resources = json.loads(template.read_text())["Resources"]
        return {name: each for name, each in resources.items() if each["Type"] == kind}

    def plan(self, stage: str) -> dict[str, Any]:
        (resource,) = self.resources("Text", "Custom::TritonArtifacts", stage).values()
        plan: dict[str, Any] = json.loads((self.assembly / f"asset.{resource['Properties']['PlanKey']}").read_text())
        return plan

    def environment(self, stage: str) -> set[str]:
        manifest = json.loads((self.assembly / f"assembly-Pipeline-{stage}" / "manifest.json").read_text())
        return {each["environment"] for each in manifest["artifacts"].values() if "environment" in each}

    def publishing(self) -> str:
        (buildspec,) = self.assembly.glob("buildspec-*.yaml")
        return buildspec.read_text()


@pytest.fixture(name="checkout")
def _checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture(name="good", scope="module")
def _good(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    checkout = Checkout(tmp_path_factory.mktemp("pipeline"))
    checkout.good_synth()
    return checkout


@pytest.fixture(name="promoting", scope="module")
def _promoting(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    checkout = Checkout(tmp_path_factory.mktemp("promoting"))
    checkout.good_synth(context=PROMOTION)
    return checkout


def stages(checkout: Checkout) -> dict[str, list[str]]:
    (pipeline,) = checkout.resources("Pipeline", "AWS::CodePipeline::Pipeline").values()
    return {
        stage["Name"]: [action["Name"] for action in stage["Actions"]] for stage in pipeline["Properties"]["Stages"]
    }


def test_the_pipeline_updates_itself_tests_and_waits_before_it_goes_live(good: Checkout) -> None:
    found = stages(good)
    deployed = ["Artifacts.Prepare", "Artifacts.Deploy", "Text.Prepare", "Text.Deploy"]

    (shown,) = of_kind("examples/test_pipeline_app.py")
    assert re.sub(r" \(.*?\)", "", shown.text).split(" → ") == [*list(found)[:-1], "approval", "Live\n"]
    assert list(found) == ["Source", "Build", "UpdatePipeline", "Assets", "Test", "Live"]
    assert found["UpdatePipeline"] == ["SelfMutate"]
    assert found["Test"] == deployed
    assert found["Live"] == ["Release", *deployed]


def test_the_stages_are_in_other_accounts_and_regions(good: Checkout) -> None:
    assert good.environment("Test") == {"aws://222222222222/eu-west-1"}
    assert good.environment("Live") == {"aws://333333333333/us-east-1"}


def test_one_project_publishes_all_assets(good: Checkout) -> None:
    """So that a new archive changes the buildspec and not the pipeline, which would update itself for it."""
    assert stages(good)["Assets"] == ["FileAssets"]


def test_the_pipeline_uses_the_cli_that_the_project_pins(good: Checkout) -> None:
    pinned = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    projects = good.resources("Pipeline", "AWS::CodeBuild::Project").values()

    assert sum(f"aws-cdk@{pinned}" in json.dumps(project) for project in projects) == 1
    assert not [project for project in projects if "aws-cdk@latest" in json.dumps(project)]


def test_the_build_step_runs_this_very_synthesis(good: Checkout) -> None:
    projects = json.dumps(good.resources("Pipeline", "AWS::CodeBuild::Project"))

    assert "npx cdk synth '**' --quiet --app 'python examples/pipeline_app.py'" in projects


def test_each_stage_builds_from_the_network_in_its_region(good: Checkout) -> None:
    builds = {stage: good.plan(stage)["commits"][0]["build"] for stage in ("Test", "Live")}
    networks = {
        stage: [(each["bucket"], each["sha256"]) for each in build["inputs"] if each["bucket"]]
        for stage, build in builds.items()
    }
    (test,), (live,) = networks["Test"], networks["Live"]

    assert (test[0], live[0]) == ("acme-weights-eu-west-1", "acme-weights-us-east-1")
    assert test[1] == live[1]
    assert builds["Test"]["ensemble"] == builds["Live"]["ensemble"]  # the key too


def test_nothing_large_goes_through_the_pipeline(good: Checkout) -> None:
    assert sum(file.stat().st_size for file in good.assembly.rglob("*") if file.is_file()) < 20_000_000


def test_every_account_has_a_store_that_builds(good: Checkout) -> None:
    for stage in ("Test", "Live"):
        assert len(good.resources("Artifacts", "AWS::CodeBuild::Project", stage)) == 1


def test_a_promoting_stage_takes_what_the_first_has_tested(promoting: Checkout) -> None:
    test, live = promoting.plan("Test")["commits"][0], promoting.plan("Live")["commits"][0]

    assert (test["artifact_key"], test["archive"]) == (live["artifact_key"], live["archive"])
    assert test["build"] is not None
    assert live["build"] is None
    assert promoting.resources("Artifacts", "AWS::CodeBuild::Project", "Live") == {}


def test_a_promoting_stage_publishes_no_sources(good: Checkout, promoting: Checkout) -> None:
    def published_to_live(checkout: Checkout, what: str) -> bool:
        return re.search(rf"triton-{what}-[0-9a-f]+:333333333333", checkout.publishing()) is not None

    assert published_to_live(good, "sources")
    assert not published_to_live(promoting, "sources")
    assert published_to_live(promoting, "plan")


def allowing(resources: Resources, needle: str) -> list[str]:
    """The actions of the statements that mention the needle."""
    statements = [
        statement
        for resource in resources.values()
        for statement in resource["Properties"].get("PolicyDocument", resource["Properties"].get("KeyPolicy"))[
            "Statement"
        ]
    ]
    return sorted(
        action
        for statement in statements
        if needle in json.dumps(statement)
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    )


def test_both_sides_of_the_promotion_allow_it(good: Checkout, promoting: Checkout) -> None:
    live = "arn:aws:iam::333333333333:root"
    key = "arn:aws:kms:eu-west-1:222222222222:key/1234abcd"

    def of_test(checkout: Checkout, kind: str) -> list[str]:
        return allowing(checkout.resources("Artifacts", kind, "Test"), live)

    assert of_test(promoting, "AWS::S3::BucketPolicy") == ["s3:GetObject", "s3:ListBucket"]
    assert of_test(promoting, "AWS::KMS::Key") == ["kms:Decrypt"]
    policies = promoting.resources("Artifacts", "AWS::IAM::ManagedPolicy", "Live")
    assert allowing(policies, "arn:aws:s3:::tested-artifacts") == ["s3:GetObject", "s3:ListBucket"]
    assert allowing(policies, key) == ["kms:Decrypt"]
    assert of_test(good, "AWS::S3::BucketPolicy") == []  # without promotion nobody else reads it


@pytest.mark.parametrize("selection", [(), ("**",)], ids=["plain", "every stack"])
def test_an_error_below_a_stage_ends_the_build_step_with_a_sentence(
    checkout: Checkout, selection: tuple[str, ...]
) -> None:
    configuration = checkout.directory / ENSEMBLE / "tokenizer" / "config.pbtxt"
    configuration.write_text(configuration.read_text() + '\nplatfrom: "x"\n')

    done = checkout.synth(*selection)

    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert "Pipeline/Test/Text/Model" in output
    assert "CT101" in output
    assert "tokenizer/config.pbtxt" in output


def test_a_warning_below_a_stage_is_shown_and_passes(checkout: Checkout) -> None:
    (checkout.directory / ENSEMBLE / "tokenizer" / "02").mkdir()

    done = checkout.synth("**")

    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "Acknowledge with 'Annotation::CT112'" in output
    assert "Pipeline/Live/Text/Model" in output


def test_what_the_library_rejects_is_an_exception_that_ends_with_the_sentence(checkout: Checkout) -> None:
    shutil.rmtree(checkout.directory / ENSEMBLE)

    done = checkout.synth("**")

    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("cdk_triton.errors.RepositoryError: "))
    assert str(checkout.directory / ENSEMBLE) in line


def test_cdks_own_validation_finds_nothing(good: Checkout, promoting: Checkout) -> None:
    for checkout in (good, promoting):
        assert json.loads((checkout.assembly / "validation-report.json").read_text())["pluginReports"] == []


@pytest.fixture(name="pipeline", scope="module")
def _pipeline(promoting: Checkout) -> cdk.Stack:
    """The same app, synthesised within this process."""
    spec = importlib.util.spec_from_file_location("pipeline_app", promoting.directory / "examples/pipeline_app.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    context = json.loads((promoting.directory / "cdk.json").read_text())["context"]
    context |= dict(each.split("=", 1) for each in PROMOTION)
    app = cdk.App(context=context, outdir=str(promoting.directory / "here"), builtin_cloud_formation_validation=False)
    with pytest.MonkeyPatch.context() as during:
        during.setitem(sys.modules, "pipeline_app", example)
        spec.loader.exec_module(example)
        pipeline = example.Pipeline(app, "Pipeline")
    app.synth()
    assert isinstance(pipeline, cdk.Stack)
    return pipeline


def deployed(pipeline: cdk.Stack) -> dict[str, cdk.Stack]:
    """Name to stack, of those that the pipeline deploys."""
    stages = [each for each in pipeline.node.children if isinstance(each, cdk.Stage)]
    stacks = [each for stage in stages for each in stage.node.children if isinstance(each, cdk.Stack)]
    return {stack.stack_name: stack for stack in stacks}


def test_cdk_nag_finds_nothing_in_what_is_deployed(pipeline: cdk.Stack) -> None:
    stacks = deployed(pipeline)

    assert set(stacks) == {"Test-Artifacts", "Test-Text", "Live-Artifacts", "Live-Text"}
    for stack in stacks.values():
        for rules in (AwsSolutionsChecks, NIST80053R5Checks):
            report = rules().validate_scope(stack)
            assert [violation.rule_name for violation in report.violations or []] == []


@pytest.mark.parametrize("name", ["Pipeline", "Test-Artifacts", "Test-Text", "Live-Artifacts", "Live-Text"])
def test_the_template_is_the_one_that_was_looked_at(pipeline: cdk.Stack, name: str) -> None:
    assert_as_looked_at({"Pipeline": pipeline, **deployed(pipeline)}[name], name)


def test_cfn_lint_finds_nothing_in_what_is_deployed(promoting: Checkout) -> None:
    templates = sorted(promoting.assembly.rglob("*.template.json"))

    # W3005: CDK makes every Lambda function and state machine depend on the role that it refers to.
    lint = subprocess.run(
        [ROOT / ".venv" / "bin" / "cfn-lint", "--ignore-checks", "W3005", "--", *templates],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert len(templates) == 6  # the pipeline and its support in the other region too
    assert (lint.returncode, lint.stdout) == (0, "")
