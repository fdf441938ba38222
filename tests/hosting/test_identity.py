"""Constructs that a user's class takes for equal are different constructs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk

from cdk_triton import TritonModel

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
