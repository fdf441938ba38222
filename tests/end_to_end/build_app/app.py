"""Synthesises what `test_build_step.py` deploys, one cloud assembly per variant: a store, and a fleet that is built.

Usage: `python app.py REPOSITORIES GATE ASSETS OUTPUT`. Every build waits until the file GATE exists, so that the test
says when it goes on. ASSETS is the bucket of the assets: there is no bootstrap, which other tests go through.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild

from cdk_triton import (
    ModelRepository,
    ServingPlatform,
    TensorRTPlan,
    TritonArtifactStore,
    TritonEndpoint,
    TritonMultiModel,
)

PLACE = cdk.Environment(account="123456789012", region="us-east-1")


@dataclass(frozen=True)
class Variant:
    """How an assembly differs from the others.

    Attributes:
        patience: how long CloudFormation waits for the artifacts, in seconds; None: as long as the library lets it.
        level: of the recipe of the model alpha.
        beta: which of the two repositories of the model beta.
        instance_type: of the endpoint; CodeBuild has the GPU of ml.g5, SageMaker Processing that of ml.g6.
    """

    patience: int | None = None
    level: int = 1
    beta: str = "sound"
    instance_type: str = "ml.g5.xlarge"


VARIANTS = {
    "impatient": Variant(patience=2),
    "patient": Variant(),
    "one recipe": Variant(level=2),
    "other GPU": Variant(level=2, instance_type="ml.g6.xlarge"),
    "broken": Variant(level=2, instance_type="ml.g6.xlarge", beta="broken"),
}


def main(repositories: str, gate: str, assets: str, output: str) -> None:
    for name, variant in VARIANTS.items():
        synthesizer = cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets)
        app = cdk.App(
            outdir=str(Path(output, name)),
            default_stack_synthesizer=synthesizer,
            builtin_cloud_formation_validation=False,  # other tests have it
        )
        home = cdk.Stack(app, "Home", env=PLACE)
        store = TritonArtifactStore(home, "Artifacts")
        hold_builds(store, gate)
        fleet_stack(app, store, Path(repositories), variant).add_stack_dependency(home)
        app.synth()


def hold_builds(store: TritonArtifactStore, gate: str) -> None:
    (project,) = (each for each in store.node.find_all() if isinstance(each, codebuild.CfnProject))
    source = project.source
    assert isinstance(source, codebuild.CfnProject.SourceProperty)
    spec = json.loads(str(source.build_spec))
    spec["phases"]["pre_build"] = {"commands": [f"until [ -e '{gate}' ]; do sleep 0.05; done"]}
    project.add_property_override("Source.BuildSpec", json.dumps(spec))


def fleet_stack(app: cdk.App, store: TritonArtifactStore, repositories: Path, variant: Variant) -> cdk.Stack:
    stack = cdk.Stack(app, "Fleet", env=PLACE)
    recipes = {"alpha": TensorRTPlan("net", optimization_level=variant.level), "beta": TensorRTPlan("net")}
    directories = {"alpha": "sound", "beta": variant.beta}
    fleet = TritonMultiModel(
        stack,
        "Fleet",
        store=store,
        platform=ServingPlatform(release="25.09", instance_type=variant.instance_type),
        ensembles={
            name: ModelRepository.from_directory(repositories / directories[name] / name, recipes=[recipe])
            for name, recipe in recipes.items()
        },
    )
    if variant.patience is not None:
        resource = fleet.node.find_child("Artifacts").node.default_child
        assert isinstance(resource, cdk.CfnResource)
        resource.add_property_override("ServiceTimeout", variant.patience)
    endpoint = TritonEndpoint(stack, "Endpoint", model=fleet)
    cdk.CfnOutput(stack, "EndpointName", value=endpoint.endpoint_name)
    for name in recipes:
        cdk.CfnOutput(stack, name.capitalize(), value=fleet.target_models[name])
    return stack


if __name__ == "__main__":
    main(*sys.argv[1:])
