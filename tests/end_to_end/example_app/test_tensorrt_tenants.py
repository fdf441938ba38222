"""System 3: tenants that share one built plan, each with a target model of its own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.docs.blocks import of_kind

COMMANDS, CALL = of_kind("end_to_end/example_app/test_tensorrt_tenants.py")
PUBLISHED_COSINE = 0.7553  # model card of all-MiniLM-L6-v2
STACK = "TensorRTTenants"


def builds(example_app: Any) -> list[str]:
    """The builds of all projects."""
    codebuild = example_app.client("codebuild")
    return [each for name in codebuild.list_projects()["projects"] for each in listed(codebuild, name)]


def listed(codebuild: Any, project: str) -> list[str]:
    found: list[str] = codebuild.list_builds_for_project(projectName=project)["ids"]
    return found


def stored(example_app: Any, part: str) -> list[str]:
    """The objects of the store whose key has this part."""
    s3 = example_app.client("s3")
    (bucket,) = (b["Name"] for b in s3.list_buckets()["Buckets"] if b["Name"].startswith("tritonartifacts-storebucket"))
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [each["Key"] for page in pages for each in page.get("Contents", []) if part in each["Key"]]


def cosine(example_app: Any, outputs: dict[str, str], tenant: int, tokens: Any, *, binary: bool = True) -> float:
    first, second = example_app.ask(
        outputs["EndpointName"], "output", tokens, target_model=outputs[f"Tenant{tenant}"], binary=binary
    )
    return float(first @ second)


def test_tenants_share_one_build_and_more_of_them_touch_no_endpoint(
    example_app: Any, deployed: Any, tokens: Any, run_call: Any, run_commands: Any
) -> None:
    before = builds(example_app)
    outputs = deployed(STACK, "-c", "tenants=3")
    assert len(builds(example_app)) == len(before) + 1
    # The archive, the manifest that commits it, and the pass of the rehearsal.
    assert len(stored(example_app, "artifacts/tensorrt_tenants/")) == 3
    endpoint = example_app.client("sagemaker").describe_endpoint(EndpointName=outputs["EndpointName"])

    for tenant, binary in ((1, True), (2, False), (3, True)):
        assert cosine(example_app, outputs, tenant, tokens, binary=binary) == pytest.approx(PUBLISHED_COSINE, abs=5e-5)

    more = deployed(STACK, "-c", "tenants=13")
    assert {name: more[name] for name in outputs} == outputs
    assert len(builds(example_app)) == len(before) + 1
    assert len(stored(example_app, "artifacts/tensorrt_tenants/")) == 3
    assert len(stored(example_app, "/tenant-")) == 13
    after = example_app.client("sagemaker").describe_endpoint(EndpointName=outputs["EndpointName"])
    assert after["EndpointConfigName"] == endpoint["EndpointConfigName"]
    assert after["LastModifiedTime"] == endpoint["LastModifiedTime"]
    for tenant in (13, 1):
        assert cosine(example_app, more, tenant, tokens) == pytest.approx(PUBLISHED_COSINE, abs=5e-5)
    assert run_call(CALL, more)[0].startswith(str(PUBLISHED_COSINE))

    run_commands(COMMANDS)
    assert example_app.outputs(STACK)["EndpointName"] == outputs["EndpointName"]


@pytest.mark.parametrize("given", ["191", "six"])
def test_a_number_of_tenants_that_cannot_be_is_one_sentence(example_app: Any, messages: Any, given: str) -> None:
    said = example_app.cdk("synth", STACK, "-c", f"tenants={given}", status=1)
    (line,) = (line for line in said.splitlines() if line.startswith("cdk_triton.errors.ConfigurationError: "))
    messages.record(*line.removeprefix("cdk_triton.errors.").split(": ", 1))
