"""Constructs that a user's class takes for equal are different constructs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_s3 as s3

from cdk_triton import CodeBuildGpuBuilder, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World


class Team(cdk.Stack):
    """A stack that equals every other one of its team, and has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Team)

    __hash__ = None  # type: ignore[assignment]  # as Python has it of a class that defines __eq__


def test_stacks_that_equal_each_other_have_what_is_theirs(world: World) -> None:
    app = world.app()
    stacks = {ensemble: Team(app, ensemble.title()) for ensemble in ("text", "sentences")}
    for ensemble, stack in stacks.items():
        TritonModel(stack, "Model", repository=world.repository(ensemble), platform=world.platform)

    for ensemble, stack in stacks.items():
        assert len(world.resources(stack, "AWS::S3::Bucket")) == 1
        sha256 = world.only(stack, "Custom::TritonArtifacts")["Properties"]["PlanSha256"]
        (plan,) = (world.directory / "cdk.out").glob(f"*{sha256}.json")
        assert f"artifacts/{ensemble}/" in plan.read_text()


def test_apps_of_one_program_are_told_apart(world: World) -> None:
    regions = ("eu-west-1", "us-east-1")
    models = {
        region: TritonModel(
            cdk.Stack(world.app(), "Stack", env=cdk.Environment(account="111122223333", region=region)),
            "Model",
            repository=world.repository(),
            platform=world.platform,
        )
        for region in regions
    }

    for region, model in models.items():
        image = world.only(cdk.Stack.of(model), "AWS::SageMaker::Model")["Properties"]["PrimaryContainer"]["Image"]
        assert f".dkr.ecr.{region}." in image


@jsii.implements(s3.IBucket)
class BucketDouble:
    """Stands in for a bucket of a user's own class that jsii does not have yet; it has what a builder asks of it."""

    bucket_arn = "arn:aws:s3:::theirs"
    encryption_key = None


def test_a_bucket_may_be_written_in_python(world: World, stack: cdk.Stack) -> None:
    bucket: Any = BucketDouble()
    service = CodeBuildGpuBuilder()._provide(stack, bucket)

    assert "arn:aws:s3:::theirs/staging/*/in/*" in str(world.template(stack))
    assert service.role.node.path == "Stack/Role"
