"""Descriptions of resources name constructs by their paths, and AWS takes not every character and length."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from cdk_triton import (
    CodeBuildGpuBuilder,
    SageMakerProcessingBuilder,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonMultiModel,
)
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

TAKEN = {
    "AWS::IAM::Role": ("Description", r"[\t\n\r\x20-\x7E\xA1-\xFF]{0,1000}"),
    "AWS::EC2::SecurityGroup": ("GroupDescription", r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{0,255}"),
    "AWS::Scheduler::Schedule": ("Description", r".{0,512}"),
    "AWS::Events::Rule": ("Description", r".{0,512}"),
    "AWS::Lambda::Function": ("Description", r".{0,256}"),
    "AWS::CodeBuild::Project": ("Description", r".{0,255}"),
    "AWS::KMS::Key": ("Description", r".{0,8192}"),
    "AWS::CloudWatch::Alarm": ("AlarmDescription", r".{0,1024}"),
}
"""The property of each type, and what the API of its service takes."""


def below(stack: cdk.Stack, word: str) -> Construct:
    """A construct deep in a stack, whose path is longer than most descriptions."""
    scope: Construct = stack
    for _ in range(5):
        scope = Construct(scope, word)
    return scope


@pytest.mark.parametrize("word", ["Endpünkt 模", "It's <mine>", "x" * 200], ids=["letters", "signs", "length"])
def test_aws_takes_every_description(world: World, word: str) -> None:
    app = world.app()
    ids = [word, f"{word}-", f"{word}+"]
    artifacts, serving = cdk.Stack(app, "Artifacts"), cdk.Stack(app, "Serving")
    far, near = below(artifacts, word), below(serving, word)
    vpc = ec2.Vpc(artifacts, "Vpc", max_azs=2)
    builders = [CodeBuildGpuBuilder(vpc=vpc), SageMakerProcessingBuilder(vpc=vpc)]
    store = TritonArtifactStore(far, ids[0], builders=builders, vpc=vpc)
    single = TritonModel(near, ids[0], repository=world.repository(), platform=world.platform, store=store, vpc=vpc)
    multi = TritonMultiModel(near, ids[1], ensembles={"text": world.repository()}, platform=world.platform, store=store)
    endpoint = TritonEndpoint(near, ids[2], model=single, endpoint_name="search")
    endpoint.monitor()
    endpoint.add_rollback_notification()
    TritonEndpoint(near, f"{word}.", model=multi).monitor(runbook_url="https://example.com/runbook")

    seen = set()
    for stack in (artifacts, serving):
        for resource in world.template(stack)["Resources"].values():
            name, pattern = TAKEN.get(resource["Type"], ("Description", ".*"))
            text = resource["Properties"].get(name) if "Properties" in resource else None
            if isinstance(text, str):
                seen.add(resource["Type"])
                assert re.fullmatch(pattern, text), (resource["Type"], text)
    assert seen >= set(TAKEN) - {"AWS::KMS::Key"}


def test_a_runbook_fits_into_a_description(messages: Messages, world: World, stack: cdk.Stack) -> None:
    model = TritonModel(stack, "Model", repository=world.repository(), platform=world.platform)
    endpoint = TritonEndpoint(stack, "Endpoint", model=model)
    with messages.raises(ConfigurationError):
        endpoint.monitor(runbook_url=f"https://example.com/{'x' * 2000}")
