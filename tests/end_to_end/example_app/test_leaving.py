"""The walk through docs/leaving.md: an endpoint goes from an app with this library into a stack without it."""

import sys
from typing import Any

import pytest
from tests.docs.blocks import ROOT, blocks_of, of_kind

from cdk_triton.client import TritonClient

APP, RETAIN, RECORD, DESTROY, PLAIN, IMPORT = (
    block.text for block in of_kind("end_to_end/example_app/test_leaving.py")
)
FILES = next(block.text for block in blocks_of(ROOT / "docs" / "production.md") if block.text.startswith("mkdir "))


def length(shell: Any) -> int:
    client = TritonClient("search", runtime=shell.client("sagemaker-runtime"))
    return int(client.infer({"INPUT0": [["A man is eating food."]]})["LENGTH"].item())


def resources(shell: Any, stack: str) -> dict[str, str]:
    """Type to physical id of what a stack has one of."""
    found = shell.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
    return {each["ResourceType"]: each["PhysicalResourceId"] for each in found}


@pytest.mark.long
def test_an_endpoint_leaves_the_library_without_an_interruption(shell: Any, local_aws: Any) -> None:
    shell.run("cdk-triton", "init")
    shell.run("bash", "-euc", FILES)
    (shell.directory / "app.py").write_text(APP)
    (shell.directory / "plain.py").write_text(PLAIN)
    with local_aws(shell.directory) as led:
        led.deploy("--all")
        before = resources(led, "Search")
        created = led.client("sagemaker").describe_endpoint(EndpointName="search")["CreationTime"]
        assert length(led) == 21

        led.run("bash", "-euc", RETAIN)
        led.run(sys.executable, "-c", RECORD)
        led.run("bash", "-euc", DESTROY)
        assert [each["StackName"] for each in led.client("cloudformation").describe_stacks()["Stacks"]] == [
            "CDKToolkit"
        ]
        assert length(led) == 21

        led.run("bash", "-euc", IMPORT)
        after = resources(led, "PlainSearch")
        assert after["AWS::S3::Bucket"].startswith("artifacts-")
        for noun in ("Model", "EndpointConfig", "Endpoint"):
            assert after[f"AWS::SageMaker::{noun}"] == before[f"AWS::SageMaker::{noun}"]
        assert led.outputs("PlainSearch") == {"EndpointName": "search"}
        assert length(led) == 21

        # The plain app updates the endpoint: another environment of the container is another model.
        changed = PLAIN.replace('container["Environment"]', '{**container["Environment"], "SEARCH": "plain"}')
        (led.directory / "plain.py").write_text(changed)
        led.run("bash", "-euc", IMPORT.splitlines()[1])
        assert resources(led, "PlainSearch")["AWS::SageMaker::Model"] != before["AWS::SageMaker::Model"]
        endpoint = led.client("sagemaker").describe_endpoint(EndpointName="search")
        assert (endpoint["CreationTime"], endpoint["EndpointStatus"]) == (created, "InService")
        assert length(led) == 21
