"""Synthesises what `test_scaled_endpoint.py` deploys, one cloud assembly per variant: an endpoint that is scaled.

Usage: `python app.py REPOSITORY ASSETS OUTPUT`. ASSETS is the bucket of the assets: there is no bootstrap, which other
tests go through.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_logs as logs

from cdk_triton import (
    ContainerEnvironment,
    ModelRepository,
    ServingPlatform,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    TritonVariant,
)
from cdk_triton.hosting import SharedArtifactStore

PLACE = cdk.Environment(account="123456789012", region="us-east-1")
PREFIX = "triton-artifacts"


def main(repository: str, assets: str, output: str) -> None:
    def app(name: str) -> cdk.App:
        return cdk.App(
            outdir=str(Path(output, name)),
            default_stack_synthesizer=cdk.CliCredentialsStackSynthesizer(file_assets_bucket_name=assets),
            builtin_cloud_formation_validation=False,  # other tests have it
        )

    def serve(name: str, *, verbose: bool = False, least: int = 1, fails: bool = False) -> None:
        made = app(name)
        stack = cdk.Stack(made, "Served", env=PLACE)
        store = TritonArtifactStore.from_exports(stack, "Store", PREFIX)
        assert isinstance(store, SharedArtifactStore)
        model = TritonModel(
            stack,
            "Model",
            repository=ModelRepository.from_directory(Path(repository)),
            platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge"),
            store=store,
            environment=ContainerEnvironment(log_verbose=int(verbose)),
        )
        endpoint = TritonEndpoint(
            stack, "Endpoint", variants=[TritonVariant(model=model, initial_instance_count=least)]
        )
        count = endpoint.auto_scale_instance_count(min_capacity=least, max_capacity=6)
        count.scale_on_invocations("Requests", max_requests_per_second=40)
        if fails:
            group = logs.LogGroup(stack, "Taken", log_group_name="taken")
            group.node.add_dependency(count)
        made.synth()

    home = app("home")
    TritonArtifactStore(cdk.Stack(home, "Home", env=PLACE), "Store", export_prefix=PREFIX)
    home.synth()
    serve("first")
    serve("changed", verbose=True)
    serve("failing", least=5, fails=True)
    for name in ("first", "changed"):
        without_waits(Path(output), name)


def without_waits(output: Path, name: str) -> None:
    """Make the assembly `NAME-bare`: the same stack, without what waits for its endpoint.

    The CDK CLI uploads a template under its hash, and only once: the other template has another name.
    """
    bare = output / f"{name}-bare"
    bare.mkdir()
    for file in (output / name).iterdir():
        if file.is_file():
            (bare / file.name).write_bytes(file.read_bytes())
        else:
            (bare / file.name).symlink_to(file)
    path = bare / "Served.template.json"
    template = json.loads(path.read_text())
    waits = {key for key, each in template["Resources"].items() if each["Type"] == "Custom::TritonEndpointWait"}
    for key in waits:
        del template["Resources"][key]
    for each in template["Resources"].values():
        if "DependsOn" in each:
            each["DependsOn"] = [key for key in each["DependsOn"] if key not in waits]
    text = json.dumps(template)
    before, after = (hashlib.sha256(each.encode()).hexdigest() for each in (path.read_text(), text))
    path.write_text(text)
    for file in (bare / "manifest.json", bare / "Served.assets.json"):
        assert before in file.read_text()
        file.write_text(file.read_text().replace(before, after))


if __name__ == "__main__":
    main(*sys.argv[1:])
