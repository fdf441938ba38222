"""The walk through docs/production.md: the whole app, its candidate that wins, and what is left of it."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.docs.blocks import of_kind

from cdk_triton.client import TritonClient

FILES, APP, DEPLOY, CALL, DESTROY = (block.text for block in of_kind("end_to_end/example_app/test_whole_app.py"))


@pytest.fixture
def project(shell: Any, local_aws: Any) -> Iterator[Any]:
    """A new project with what the page puts there, led to an AWS of its own."""
    shell.run("cdk-triton", "init")
    shell.run("bash", "-euc", FILES)
    (shell.directory / "app.py").write_text(APP)
    with local_aws(shell.directory) as led:
        yield led


def deploy(shell: Any) -> None:
    """Deploy as the page says where a local AWS already runs."""
    shell.run("bash", "-euc", DEPLOY.replace("local up --detach", "local status"))


def length(shell: Any, variant: str) -> int:
    client = TritonClient("search", runtime=shell.client("sagemaker-runtime"))
    answer = client.infer({"INPUT0": [["A man is eating food."]]}, target_variant=variant)
    assert answer.variant == variant
    return int(answer["LENGTH"].item())


@pytest.mark.long
def test_the_whole_app_serves_is_updated_and_leaves_what_the_guide_says(project: Any) -> None:
    deploy(project)
    assert [length(project, variant) for variant in ("Current", "Candidate")] == [21, 21]
    assert project.run(sys.executable, "-c", CALL) in ("Current [[21]]\n", "Candidate [[21]]\n")
    (name,) = project.client("ssm").get_parameters(Names=["/search/production/endpoint-name"])["Parameters"]
    assert name["Value"] == "search"

    candidate = project.directory / "search-next" / "length" / "1" / "model.py"
    candidate.write_text(candidate.read_text().replace("astype(np.int32)", "astype(np.int32) + 1"))
    app = project.directory / "app.py"
    app.write_text(app.read_text().replace("weight=9", "weight=0"))
    deploy(project)
    assert [length(project, variant) for variant in ("Current", "Candidate")] == [21, 22]
    variants = project.client("sagemaker").describe_endpoint(EndpointName="search")["ProductionVariants"]
    assert {each["VariantName"]: each["CurrentWeight"] for each in variants} == {"Current": 0, "Candidate": 1}

    assert "--all" in project.cdk("destroy", status=1)
    project.run("bash", "-euc", f"export CDK_FORCE=true\n{DESTROY}")  # nobody is there to confirm
    buckets = [each["Name"] for each in project.client("s3").list_buckets()["Buckets"]]
    assert [each.split("-")[0] for each in buckets if not each.startswith("cdk-")] == ["tritonartifacts"]
    assert project.client("sagemaker").list_endpoints()["Endpoints"] == []
