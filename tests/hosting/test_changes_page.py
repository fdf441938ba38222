"""The page "If you change X": an app before and after a change differs in the resources that the row names.

The test compares templates. A property whose name is in `createOnlyProperties` of CloudFormation's schema replaces its
resource, and so does another logical id. Nothing is deployed, so what instances and callers notice is not judged.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
import pytest
from tests.hosting.changed_app import (
    App,
    Effects,
    caller,
    captured,
    effects,
    keys,
    network,
    options,
    role,
    scaled,
    shadow,
)
from tests.hosting.conftest import World

from cdk_triton import (
    AlarmThresholds,
    AllAtOnce,
    AsyncInference,
)
from cdk_triton.triton import ContainerEnvironment

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "updates.md"

ARTIFACTS, ENDPOINT = "Custom::TritonArtifacts", "SageMaker::Endpoint"
ROLE, POLICY, PARAMETER, BUCKET = "IAM::Role", "IAM::ManagedPolicy", "SSM::Parameter", "S3::Bucket"
TARGET, SCALING = "ApplicationAutoScaling::ScalableTarget", "ApplicationAutoScaling::ScalingPolicy"
NEW_CONFIGURATION = {"SageMaker::EndpointConfig": "replaced", ENDPOINT: "in place"}
WORDS: dict[str, Effects] = {
    "new archive": {ARTIFACTS: "in place"},
    "new configuration": NEW_CONFIGURATION,
    "new model": {"SageMaker::Model": "replaced", **NEW_CONFIGURATION},
    "new policy": {POLICY: "replaced"},
}
"""The words of the page, and the resources of one endpoint that they stand for."""


def row(start: str) -> Effects:
    """The effects that the row of the page states in its words; "the same" is the row before it."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    (number,) = (number for number, line in enumerate(rows) if line.startswith(f"| {start}"))
    effect = rows[number].split(" | ")[1]
    while "the same" in effect:
        number -= 1
        effect = effect.replace("the same", rows[number].split(" | ")[1], 1)
    return {kind: each for word, of in WORDS.items() if word in effect for kind, each in of.items()}


ONE, MANY = App(), App(ensembles=("text",), endpoint=options(ssm_parameter_path="/search"))
PUBLISHED = replace(MANY, publisher={})
ASYNC = replace(ONE, endpoint=options(asynchronous=AsyncInference()))
SCALED, MONITORED = replace(ONE, then=scaled("Load")), replace(ONE, then=lambda endpoint: endpoint.monitor())
COPY = {"accelerators": 1, "memory": cdk.Size.gibibytes(4)}
COMPONENT = replace(ONE, component=COPY)
G5_XLARGE, G6 = (replace(ONE.platform, instance_type=f"ml.{name}") for name in ("g5.xlarge", "g6.2xlarge"))
NEWER = replace(ONE.platform, release="26.05")
OTHER_AMI = replace(ONE.platform, inference_ami_version="al2-ami-sagemaker-inference-gpu-2")
MOVED = {ROLE: "replaced", POLICY: "replaced", ARTIFACTS: "replaced"}
TAGGED = {ENDPOINT: "in place", "SageMaker::EndpointConfig": "in place"}
REKEYED = {
    POLICY: "gone and in place and new",  # of the models, and of the store's own roles
    BUCKET: "in place",
    "KMS::Key": "in place",
    "Lambda::Function": "in place",
    "Logs::LogGroup": "in place",
    "CodeBuild::Project": "in place",
}

ROWS: list[tuple[str, App, App, Effects]] = [
    ("a file of a `TritonModel`", ONE, replace(ONE, weights="2"), {}),
    ("a file of an ensemble", MANY, replace(MANY, weights="2"), {PARAMETER: "in place"}),
    ("times, owners, modes", ONE, replace(ONE, touched=True), {}),
    ("`cdk-triton.toml`, `.git`", ONE, replace(ONE, litter="model.py~"), {}),
    ("the name of the repository's", ONE, replace(ONE, directory="other"), {ARTIFACTS: "in place"}),
    (
        "`metadata` of a model",
        ONE,
        replace(ONE, model=options(metadata={"commit": "0f3c"})),
        {"SageMaker::Model": "in place", ARTIFACTS: "in place"},
    ),
    ("`uncompressed`", ONE, replace(ONE, model=options(uncompressed=True)), {}),
    ("the instance type, with the same GPU", ONE, replace(ONE, platform=G5_XLARGE), {}),
    ("the instance type, with another GPU", ONE, replace(ONE, platform=G6), {}),
    ("the release, or the image", ONE, replace(ONE, platform=NEWER), {}),
    ("the release, in a stack", replace(ONE, has_env=False), replace(ONE, has_env=False, platform=NEWER), {}),
    (
        "release or GPU of a",
        MANY,
        replace(MANY, platform=NEWER),
        {ARTIFACTS: "in place"},
    ),
    ("`inference_ami_version`", ONE, replace(ONE, platform=OTHER_AMI), {}),
    (
        "a field of `environment`",
        ONE,
        replace(ONE, model=options(environment=ContainerEnvironment(thread_count=4))),
        {},
    ),
    ("`network_isolation`", ONE, replace(ONE, model=options(network_isolation=True)), {}),
    (
        "`vpc`, `vpc_subnets`",
        replace(ONE, model=network(used=False)),
        replace(ONE, model=network(used=True)),
        {"EC2::SecurityGroup": "new"},
    ),
    (
        "`role`",
        replace(ONE, model=role(used=False)),
        replace(ONE, model=role(used=True)),
        {ROLE: "gone", POLICY: "gone", "IAM::Policy": "new"},
    ),
    ("the construct id of a `TritonModel`", ONE, replace(ONE, model_id="Other"), MOVED),
    ("the construct id or path of a `Tri", MANY, replace(MANY, model_id="Other"), MOVED),
    ("an ensemble, added", MANY, replace(MANY, ensembles=("text", "image")), {ARTIFACTS: "in place", PARAMETER: "new"}),
    (
        "an ensemble, removed",
        replace(MANY, ensembles=("text", "image")),
        MANY,
        {ARTIFACTS: "in place", PARAMETER: "gone"},
    ),
    (
        "the name of an ensemble",
        MANY,
        replace(MANY, ensembles=("image",)),
        {ARTIFACTS: "in place", PARAMETER: "replaced"},
    ),
    (
        "`add_publisher()`",
        PUBLISHED,
        replace(PUBLISHED, publisher={"max_concurrency": 3}),
        {"StepFunctions::StateMachine": "in place"},
    ),
    ("`initial_weight`", ONE, replace(ONE, variant=options(initial_weight=2)), {}),
    ("`initial_instance_count`", ONE, replace(ONE, variant=options(initial_instance_count=2)), {}),
    ("the name of a variant", ONE, replace(ONE, variant=options(variant_name="Blue")), {}),
    (
        "timeouts, `volume_size`",
        ONE,
        replace(ONE, variant=options(container_startup_timeout=cdk.Duration.minutes(9))),
        {},
    ),
    ("a shadow, added", ONE, replace(ONE, endpoint=shadow(used=True)), {}),
    ("`data_capture`", replace(ONE, endpoint=captured("a")), replace(ONE, endpoint=captured("b")), {}),
    (
        "`deployment_policy`, roll",
        ONE,
        replace(ONE, endpoint=options(deployment_policy=AllAtOnce())),
        {ENDPOINT: "in place"},
    ),
    (
        "`deployment_policy`, removed",
        replace(ONE, endpoint=options(deployment_policy=AllAtOnce())),
        ONE,
        {ENDPOINT: "in place"},
    ),
    (
        "`endpoint_name`, changed or added",
        ONE,
        replace(ONE, endpoint=options(endpoint_name="search")),
        {ENDPOINT: "replaced"},
    ),
    (
        "the construct id of an endpoint without",
        ONE,
        replace(ONE, endpoint_id="Other"),
        {**NEW_CONFIGURATION, ENDPOINT: "replaced"},
    ),
    (
        "the construct id of an endpoint without",
        MANY,
        replace(MANY, endpoint_id="Other"),
        {**NEW_CONFIGURATION, ENDPOINT: "replaced", PARAMETER: "in place"},
    ),
    (
        "`ssm_parameter_path`",
        MANY,
        replace(MANY, endpoint=options(ssm_parameter_path="/other")),
        {PARAMETER: "replaced"},
    ),
    (
        "`grant_invoke`",
        replace(ONE, then=caller(granted=False)),
        replace(ONE, then=caller(granted=True)),
        {"IAM::Policy": "new"},
    ),
    (
        "prefixes, bucket or concurrency",
        ASYNC,
        replace(ONE, endpoint=options(asynchronous=AsyncInference(output_prefix="answers"))),
        {BUCKET: "in place"},
    ),
    (
        "`expiration` of",
        ASYNC,
        replace(ONE, endpoint=options(asynchronous=AsyncInference(expiration=cdk.Duration.days(3)))),
        {BUCKET: "in place"},
    ),
    ("`asynchronous`, added", ONE, ASYNC, {BUCKET: "new", "S3::BucketPolicy": "new", POLICY: "new"}),
    ("`asynchronous`, removed", ASYNC, ONE, {BUCKET: "gone", "S3::BucketPolicy": "gone", POLICY: "gone"}),
    ("tags", ONE, replace(ONE, then=lambda endpoint: cdk.Tags.of(endpoint).add("team", "search")), TAGGED),
    ("`min_capacity`, `max_capacity`", SCALED, replace(ONE, then=scaled("Load", max_capacity=5)), {TARGET: "in place"}),
    ("the id of a scaling policy", SCALED, replace(ONE, then=scaled("Requests")), {SCALING: "replaced"}),
    (
        "`auto_scale_instance_count`, added",
        ONE,
        SCALED,
        {TARGET: "new", SCALING: "new", "Custom::TritonEndpointWait": "new", ENDPOINT: "in place"},
    ),
    (
        "`auto_scale_instance_count`, removed",
        SCALED,
        ONE,
        {TARGET: "gone", SCALING: "gone", "Custom::TritonEndpointWait": "gone", ENDPOINT: "in place"},
    ),
    (
        "`monitor()`, thresholds",
        MONITORED,
        replace(ONE, then=lambda endpoint: endpoint.monitor(thresholds=AlarmThresholds(disk_percent=None))),
        {"CloudWatch::Alarm": "gone", "CloudWatch::Dashboard": "in place"},
    ),
    (
        "`dashboard_name`",
        MONITORED,
        replace(ONE, then=lambda endpoint: endpoint.monitor(dashboard_name="search")),
        {"CloudWatch::Dashboard": "replaced"},
    ),
    (
        "the model of a component",
        COMPONENT,
        replace(COMPONENT, weights="2"),
        {"SageMaker::Model": "replaced", "SageMaker::InferenceComponent": "in place"},
    ),
    (
        "`copies`",
        COMPONENT,
        replace(COMPONENT, component={**COPY, "copies": 2}),
        {"SageMaker::InferenceComponent": "in place"},
    ),
    (
        "`auto_scale_copies` or `scale_to_zero`, removed",
        replace(COMPONENT, scales_copies=True),
        COMPONENT,
        {TARGET: "gone", SCALING: "gone"},
    ),
    ("`encryption_key` of a store", replace(ONE, store=keys("Old")), replace(ONE, store=keys("New")), REKEYED),
    (
        "`vpc` of a store",
        replace(ONE, store=network(used=False)),
        replace(ONE, store=network(used=True)),
        {"Lambda::Function": "in place", POLICY: "in place", "EC2::SecurityGroup": "new"},
    ),
]
"""Start of the row, the app before and after the change, and the effects that the row states in other words."""


@pytest.mark.parametrize(("start", "before", "after", "other"), [pytest.param(*each, id=each[0]) for each in ROWS])
def test_a_change_does_what_its_row_states(tmp_path: Path, start: str, before: App, after: App, other: Effects) -> None:
    found = effects(before.resources(World(tmp_path / "before")), after.resources(World(tmp_path / "after")))
    assert found == row(start) | other
