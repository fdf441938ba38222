"""The Python blocks of a page run: constructs in an app of the page, calls against an endpoint that answers.

The Parameter Store and S3 are those of a local AWS. The endpoint behind them answers without a model, because a page
calls endpoints of many kinds; tests/end_to_end has the models.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from tests.client.conftest import Answer, Endpoint, endpoint, identity
from tests.docs.blocks import PYTHON, of_kind
from tests.docs.stage import Stage, write_files
from tests.hosting.conftest import World

from cdk_triton.checks import registry, rules
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.cloudformation.resource_types import base
from cdk_triton_local.wire import event_stream

__all__ = ["endpoint"]  # a fixture

BLOCKS = of_kind(PYTHON)
NAMES = ("CONFIDENCE", "LABEL", "LENGTH", "OUTPUT", "finaloutput", "logits", "y")
PARAMETERS = {
    "/search/production/endpoint-name": "search",
    "/search/production/target-models/text": "text-1.tar.gz",
    "/tenants/endpoint-name": "tenants",
    "/tenants/target-models/tenant-7": "tenant-7-1.tar.gz",
}
BUCKETS = ("bucket", "tritonartifacts-storebucket4fbde984-1x2y3z")
SUBMITTED, OF_ANOTHER = "async/output/1.out", "async/output/5f0c….out"
OUTPUTS = [{"name": name, "shape": [2], "datatype": "FP32", "data": [0.25, 0.75]} for name in NAMES]
ANSWER = json.dumps({"model_name": "any", "model_version": "1", "outputs": OUTPUTS}).encode()


def answer(headers: Mapping[str, str], body: bytes) -> Answer:
    """Answer with the outputs that the pages read.

    An asynchronous request is answered with the place of its answer, and a request for a stream with one event.
    """
    if "x-amzn-sagemaker-inference-id" in headers:
        place = {"X-Amzn-SageMaker-OutputLocation": f"s3://bucket/{SUBMITTED}"}
        return Answer(b'{"InferenceId": "1"}', "application/json", 202, place)
    if b'"PROMPT"' in body:
        kinds = {"X-Amzn-SageMaker-Content-Type": "text/event-stream"}
        part = event_stream.payload_part(b'data: {"TEXT": "there was", "model_name": "any"}\n\n')
        return Answer(part, event_stream.CONTENT_TYPE, headers=kinds)
    header, repeated = identity(body, headers["content-type"])
    return repeated if header["inputs"][0]["name"] == "x" else Answer(ANSWER, "application/json")


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("aws")) as running:
        for name, value in PARAMETERS.items():
            running.client("ssm").put_parameter(Name=name, Value=value, Type="String")
        for bucket in BUCKETS:
            running.client("s3").create_bucket(Bucket=bucket)
        for key in (SUBMITTED, OF_ANOTHER):
            running.client("s3").put_object(Bucket="bucket", Key=key, Body=ANSWER, ContentType="application/json")
        yield running


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = World(tmp_path_factory.mktemp("pages"))
    write_files(world)
    return world.directory


@cache
def sarif(directory: Path) -> str:
    """Return what CI passes on: the findings of a repository."""
    command = ["cdk-triton", "validate", "models", "--format", "sarif"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False).stdout


@pytest.fixture(name="stage")
def _stage(directory: Path, aws: LocalAws, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Stage:
    endpoint.handle = answer
    rules()  # imports every other rule, before the registry is a copy that the rules of the page enter
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))
    monkeypatch.setattr(base, "_registry", dict(base._registry))  # of resource types, likewise
    for name, value in aws.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", f"http://127.0.0.1:{endpoint.port}")
    monkeypatch.setenv("CI_COMMIT", "0123abc")
    monkeypatch.setenv("CI_APPROVER", "me")
    monkeypatch.chdir(directory)
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", ModuleType("triton_python_backend_utils"))
    monkeypatch.setattr(sys, "stdin", io.StringIO(sarif(directory)))
    return Stage(World(directory))


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS}))
def test_the_python_of_a_page_runs(page: str, stage: Stage) -> None:
    for block in BLOCKS:
        if block.page == page:
            stage.run(block.text, page, block.line)
    stage.app.synth()
