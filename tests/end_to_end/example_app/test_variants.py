"""Two variants of one endpoint, and a shadow of another, deployed by the unmodified CLI and asked."""

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CONFIG = """
backend: "python"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_GPU } ]
"""
MODEL = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("Y", FACTOR * x)]) for x in inputs]
"""
APP = """
import aws_cdk as cdk
from cdk_triton import ModelRepository, ServingPlatform, TritonArtifactStore, TritonEndpoint, TritonModel, TritonVariant

app = cdk.App()
stack = cdk.Stack(app, "Variants")
store = TritonArtifactStore(stack, "Store")
platform = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
blue, green = (
    TritonModel(stack, name, repository=ModelRepository.from_directory(name.lower()), platform=platform, store=store)
    for name in ("Blue", "Green")
)
weights = map(float, (app.node.try_get_context("weights") or "3,1").split(","))
split = TritonEndpoint(
    stack,
    "Split",
    variants=[
        TritonVariant(model=model, variant_name=name, initial_weight=weight, initial_instance_count=count)
        for (name, model), weight, count in zip({"Blue": blue, "Green": green}.items(), weights, (1, 2))
    ],
)
shadow = TritonVariant(
    model=green, variant_name="Shadow", initial_weight=0.5, routing_strategy="LEAST_OUTSTANDING_REQUESTS"
)
shadowed = TritonEndpoint(stack, "Shadowed", model=blue, shadow=shadow)
cdk.CfnOutput(stack, "SplitName", value=split.endpoint_name)
cdk.CfnOutput(stack, "ShadowedName", value=shadowed.endpoint_name)
app.synth()
"""
BODY = json.dumps({"inputs": [{"name": "X", "shape": [1, 1], "datatype": "FP32", "data": [5]}]})
FACTORS = {"Blue": 2, "Green": 3}


class Variants:
    """The deployed stack, and short words for what the tests do with it."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        shell.deploy("Variants")
        names = shell.outputs("Variants")
        self.split, self.shadowed = names["SplitName"], names["ShadowedName"]
        self.runtime = shell.client("sagemaker-runtime")

    def ask(self, endpoint: str, **options: Any) -> tuple[str, float]:
        """Who answered, and what."""
        answer = self.runtime.invoke_endpoint(
            EndpointName=endpoint, Body=BODY, ContentType="application/json", **options
        )
        return answer["InvokedProductionVariant"], json.loads(answer["Body"].read())["outputs"][0]["data"][0]

    def describe(self, endpoint: str) -> dict[str, Any]:
        found: dict[str, Any] = self.shell.client("sagemaker").describe_endpoint(EndpointName=endpoint)
        return found


@pytest.fixture(scope="module")
def variants(local_aws: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Variants]:
    directory: Path = tmp_path_factory.mktemp("variants")
    for name, factor in FACTORS.items():
        version = directory / name.lower() / "multiply/1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(MODEL.replace("FACTOR", str(factor)))
        (version.parent / "config.pbtxt").write_text(CONFIG)
    (directory / "app.py").write_text(APP)
    (directory / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py"}))
    with local_aws(directory) as shell:
        yield Variants(shell)


def test_requests_are_shared_by_weight(variants: Variants) -> None:
    seen = Counter(variants.ask(variants.split) for _ in range(200))
    assert set(seen) == {("Blue", 10.0), ("Green", 15.0)}
    assert 110 < seen["Blue", 10.0] < 185  # 150 expected; outside by chance less than once in a million


@pytest.mark.parametrize("name", FACTORS)
def test_a_caller_may_name_a_variant(variants: Variants, name: str) -> None:
    assert variants.ask(variants.split, TargetVariant=name) == (name, 5.0 * FACTORS[name])


def test_the_numbers_of_the_variants_are_told(variants: Variants) -> None:
    found = variants.describe(variants.split)["ProductionVariants"]
    assert [(each["VariantName"], each["DesiredWeight"], each["DesiredInstanceCount"]) for each in found] == [
        ("Blue", 3.0, 1),
        ("Green", 1.0, 2),
    ]


def test_a_shadow_gets_copies_that_no_caller_sees(variants: Variants) -> None:
    (shadow,) = variants.describe(variants.shadowed)["ShadowProductionVariants"]
    assert shadow["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert {variants.ask(variants.shadowed) for _ in range(100)} == {("AllTraffic", 10.0)}
    line = re.compile(rf"\b{variants.shadowed}\b.*\bShadow\b.* 200 .* ms")
    copies, deadline = 0, time.monotonic() + 20
    while copies <= 20 and time.monotonic() < deadline:
        threading.Event().wait(0.5)  # for the last copies, which nobody waits for
        copies = len(line.findall(variants.shell.run("cdk-triton", "local", "logs")))
    assert 20 < copies < 80  # 50 expected


def test_other_weights_are_an_update_of_the_endpoint(variants: Variants) -> None:
    variants.shell.deploy("Variants", "--context", "weights=0,1")
    assert Counter(variants.ask(variants.split) for _ in range(50)) == {("Green", 15.0): 50}
    assert variants.ask(variants.split, TargetVariant="Blue") == ("Blue", 10.0)
    assert [each["CurrentWeight"] for each in variants.describe(variants.split)["ProductionVariants"]] == [0.0, 1.0]
