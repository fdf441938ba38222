"""What an update of a stack does to a model, and what CloudFormation shows meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import aws_cdk as cdk
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import PLATFORM, outputs, repository, store
from tools.verify.trial import Trial, prefix_of

from cdk_triton import TritonModel


def _stacks(app: cdk.App) -> None:
    stack = cdk.Stack(app, prefix_of("stack_updates"))
    metadata = {"team": app.node.try_get_context("team") or "first"}
    model = TritonModel(
        stack, "Model", store=store(stack), platform=PLATFORM, repository=repository(), metadata=metadata
    )
    outputs(stack, Model=model.model_name)


def _observe(trial: Trial) -> Iterator[Observation]:
    before = trial.deploy()["Model"]
    after = trial.deploy(team="second")["Model"]
    sagemaker = trial.client("sagemaker")
    tags = sagemaker.list_tags(ResourceArn=sagemaker.describe_model(ModelName=after)["ModelArn"])["Tags"]
    values = [each["Value"] for each in tags if each["Value"] in ("first", "second")]
    yield Observation(
        "metadata_in_place", before == after and values == ["second"], f"{before}, then {after}; its tags: {values}"
    )


EXPERIMENT = Experiment(
    parts=("metadata_in_place",),
    minutes=8,
    dollars=0.01,
    spends="some requests to S3, and calls of Lambda functions",
    observe=_observe,
    stacks=_stacks,
)
