"""`cdk-triton invoke --sequence`: the identifier has the type in which the deployed model gets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.echo import BUCKET, SUMS

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome
    from tests.cli.echo import World

    from golden_messages import Messages

pytestmark = pytest.mark.slow  # the local AWS takes seconds to start

Run = Callable[..., "Outcome"]


@pytest.fixture(autouse=True, scope="module")
def _sums(_echo_aws: World) -> None:
    _echo_aws.archive("sums.tar.gz", {"sums": SUMS})
    _echo_aws.endpoint("sums", ModelDataUrl=f"s3://{BUCKET}/sums.tar.gz")


@pytest.mark.parametrize("sequence", ["user-7", "007", str(2**31)])
def test_an_identifier_of_another_type_is_not_sent(
    run: Run, world: World, messages: Messages, sequence: str, tmp_path: Path
) -> None:
    found = run("invoke", "sums", "--input", "X=[1]", "--sequence", sequence, "--first")
    assert (found.status, world.echo.asked) == (2, [])
    messages.record("cdk-triton invoke", found.said)

    sequence_id = int(sequence) if sequence == str(2**31) else sequence
    tensor = {"name": "X", "datatype": "FP32", "shape": [1], "data": [1.0]}
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"inputs": [tensor], "parameters": {"sequence_id": sequence_id}}))
    (tmp_path / "sums").mkdir()
    (tmp_path / "sums/config.pbtxt").write_text(SUMS)
    for others in (
        ("sums", "--data", str(file)),
        ("sums", "--input", "X:FP32=[1]", "--sequence", sequence),
        ("image", "--repository", str(tmp_path), "--input", "X=[1]", "--sequence", sequence),
    ):
        other = run("invoke", *others)
        assert (other.status, other.said, world.echo.asked) == (2, found.said, [])


@pytest.mark.parametrize("sequence", ["7", str(2**31 - 1)])
def test_an_identifier_of_the_type_is_sent(run: Run, world: World, sequence: str) -> None:
    assert run("invoke", "sums", "--input", "X=[1]", "--sequence", sequence).status == 0
    assert len(world.echo.asked) == 1


def test_the_type_of_one_of_several_models_is_not_that_of_the_endpoint(run: Run, world: World) -> None:
    variants = [
        {"VariantName": name, "ModelName": name, "InstanceType": "ml.g5.2xlarge", "InitialInstanceCount": 1}
        for name in ("sums", "image")
    ]
    world.sagemaker.create_endpoint_config(EndpointConfigName="both", ProductionVariants=variants)
    world.sagemaker.create_endpoint(EndpointName="both", EndpointConfigName="both")
    world.sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="both", WaiterConfig={"Delay": 0.01})
    given = ("--input", "X:FP32=[1]", "--variant", "image", "--sequence", "user-7")
    assert run("invoke", "both", *given).status == 0
    assert len(world.echo.asked) == 1
