"""Synthesises what `test_rehearsal.py` deploys, one cloud assembly per variant: a store, and a fleet that is rehearsed.

Usage: `python app.py DIRECTORY ASSETS OUTPUT`. The repositories `alpha`, whose network is built, and `beta`, whose
archive is packed at synth, are in DIRECTORY. ASSETS is the bucket of the assets: there is no bootstrap, which other
tests go through.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk

from cdk_triton import (
    GoldenRequest,
    ModelRepository,
    Rehearsal,
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
        golden: the name of the golden files of alpha.
        patience: how long CloudFormation waits for the artifacts, in seconds; another value is another deployment of
            the same plan.
        instance_type: of the endpoint; CodeBuild has the GPU of ml.g5, SageMaker Processing that of ml.g6.
    """

    golden: str = "first"
    patience: int = 3000
    instance_type: str = "ml.g5.xlarge"


VARIANTS = {
    "first": Variant(),
    "again": Variant(patience=3001),
    "other request": Variant("other"),
    "wrong answer": Variant("wrong"),
    "wrong answer on another GPU": Variant("wrong", instance_type="ml.g6.xlarge"),
    "another GPU": Variant(instance_type="ml.g6.xlarge"),
}


def main(directory: str, assets: str, output: str) -> None:
    for name, variant in VARIANTS.items():
        synthesizer = cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets)
        app = cdk.App(
            outdir=str(Path(output, name)),
            default_stack_synthesizer=synthesizer,
            builtin_cloud_formation_validation=False,  # other tests have it
        )
        home = cdk.Stack(app, "Home", env=PLACE)
        store = TritonArtifactStore(home, "Artifacts")
        fleet_stack(app, store, Path(directory), variant).add_stack_dependency(home)
        app.synth()


def rehearsed(directory: Path, golden: str, *recipes: TensorRTPlan) -> ModelRepository:
    request = GoldenRequest(f"golden/{golden}.json", expect=f"golden/{golden}.npz")
    return ModelRepository.from_directory(directory, recipes=recipes, rehearsal=Rehearsal([request]))


def fleet_stack(app: cdk.App, store: TritonArtifactStore, directory: Path, variant: Variant) -> cdk.Stack:
    stack = cdk.Stack(app, "Fleet", env=PLACE)
    fleet = TritonMultiModel(
        stack,
        "Fleet",
        store=store,
        platform=ServingPlatform(release="25.09", instance_type=variant.instance_type),
        ensembles={
            "alpha": rehearsed(directory / "alpha", variant.golden, TensorRTPlan("net")),
            "beta": rehearsed(directory / "beta", "first"),
        },
    )
    resource = fleet.node.find_child("Artifacts").node.default_child
    assert isinstance(resource, cdk.CfnResource)
    resource.add_property_override("ServiceTimeout", variant.patience)
    endpoint = TritonEndpoint(stack, "Endpoint", model=fleet)
    cdk.CfnOutput(stack, "EndpointName", value=endpoint.endpoint_name)
    for name in ("alpha", "beta"):
        cdk.CfnOutput(stack, name.capitalize(), value=fleet.target_models[name])
    return stack


if __name__ == "__main__":
    main(*sys.argv[1:])
