"""The walk through docs/production.md: the whole app, its candidate that wins, and what is left of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdk_triton.client import TritonClient

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str, language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def project(shell: Any, local_aws: Any) -> Iterator[Any]:
    """A directory with what the two pages put there, led to an AWS of its own."""
    (made,) = (each for each in blocks("production.md") if each.startswith("mkdir -p search"))
    (configured,) = (each for each in blocks("getting_started.md") if each.startswith("echo "))
    for each in (made, configured):
        shell.run("bash", "-euc", each)
    (app,) = (each for each in blocks("production.md", "python") if "App()" in each)
    (shell.directory / "app.py").write_text(app)
    with local_aws(shell.directory) as led:
        yield led


def length(shell: Any, variant: str) -> int:
    client = TritonClient("search", runtime=shell.client("sagemaker-runtime"))
    answer = client.infer({"INPUT0": [["A man is eating food."]]}, target_variant=variant)
    assert answer.variant == variant
    return int(answer["LENGTH"].item())


def test_the_whole_app_serves_is_updated_and_leaves_what_the_guide_says(project: Any) -> None:
    project.deploy("--all")
    assert [length(project, variant) for variant in ("Current", "Candidate")] == [21, 21]
    (name,) = project.client("ssm").get_parameters(Names=["/search/production/endpoint-name"])["Parameters"]
    assert name["Value"] == "search"

    candidate = project.directory / "search-next" / "length" / "1" / "model.py"
    candidate.write_text(candidate.read_text().replace("astype(np.int32)", "astype(np.int32) + 1"))
    app = project.directory / "app.py"
    app.write_text(app.read_text().replace("weight=9", "weight=0"))
    project.deploy("--all")
    assert [length(project, variant) for variant in ("Current", "Candidate")] == [21, 22]
    variants = project.client("sagemaker").describe_endpoint(EndpointName="search")["ProductionVariants"]
    assert {each["VariantName"]: each["CurrentWeight"] for each in variants} == {"Current": 0, "Candidate": 1}

    assert "--all" in project.cdk("destroy", status=1)
    project.cdk("destroy", "--all", "--force")
    buckets = [each["Name"] for each in project.client("s3").list_buckets()["Buckets"]]
    assert [each.split("-")[0] for each in buckets if not each.startswith("cdk-")] == ["tritonartifacts"]
    assert project.client("sagemaker").list_endpoints()["Endpoints"] == []
