"""Synthesises what `test_names_and_keys.py` deploys one after the other: the same app after each of some changes.

Usage: `python app.py REPOSITORIES ASSETS OUTPUT`. REPOSITORIES has two directories with one model; ASSETS is the bucket
of the assets. References between stacks are weak, as in an app that `cdk init` has written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import IConstruct

from cdk_triton import (
    ModelRepository,
    NamePrefix,
    ServingPlatform,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
)

PLACE = cdk.Environment(account="123456789012", region="us-east-1")
PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge")
WEAK = {"@aws-cdk/core:defaultCrossStackReferences": "weak"}


@jsii.implements(cdk.IAspect)
class NamesOfPaths:
    """What organisations write: every name in IAM begins with theirs, and the rest follows from the path."""

    def visit(self, node: IConstruct) -> None:
        name = "bank-" + re.sub(r"\W", "", node.node.path.removesuffix("/Resource"))[-50:]
        if isinstance(node, iam.CfnManagedPolicy):
            node.managed_policy_name = name
        elif isinstance(node, iam.CfnRole):
            node.role_name = name


def main(repositories: str, assets: str, output: str) -> None:
    for name, repository, key, former in (
        ("first", "text", "A", ()),
        ("renamed", "sentences", "A", ()),
        ("rekeyed", "sentences", "B", ("A",)),
    ):
        app = cdk.App(
            outdir=str(Path(output, name)),
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
            builtin_cloud_formation_validation=False,  # other tests have it
            context=WEAK,
        )
        home = cdk.Stack(app, "Home", env=PLACE)
        keys = {each: kms.Key(home, each) for each in "AB"}
        store = TritonArtifactStore(
            home,
            "Store",
            builders=[],
            encryption_key=keys[key],
            former_keys=[keys[each] for each in former],
            bucket_name="bank-artifacts",
        )
        for stack, aspect in (("ByPath", NamesOfPaths()), ("ByPrefix", NamePrefix("bank-"))):
            search = cdk.Stack(app, stack, env=PLACE)
            model = TritonModel(
                search,
                "Model",
                repository=ModelRepository.from_directory(Path(repositories, repository)),
                platform=PLATFORM,
                store=store,
            )
            TritonEndpoint(search, "Endpoint", model=model)
            cdk.Aspects.of(search).add(aspect)
        app.synth()


if __name__ == "__main__":
    main(*sys.argv[1:])
