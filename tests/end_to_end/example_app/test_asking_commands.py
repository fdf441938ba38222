"""`cdk-triton invoke`, `bench` and `local status` on the real ensembles, as a user types them."""

import json
from pathlib import Path
from typing import Any

import pytest

CHELSEA = Path(__file__).parents[3] / "examples/photographs/chelsea.jpg"
EGYPTIAN_CAT = 285


@pytest.fixture
def outputs(example_app: Any) -> Any:
    return example_app.outputs("TwoEnsembles")


def test_a_photograph_is_asked_with_the_types_of_the_deployed_archive(example_app: Any, outputs: Any) -> None:
    asked = ["invoke", outputs["EndpointName"], "--target-model", "image", "--input", f"INPUT=@{CHELSEA}"]
    said = example_app.run("cdk-triton", *asked, "--format", "json")

    (answer,) = json.loads(said)["outputs"]
    assert (answer["name"], answer["datatype"], answer["shape"]) == ("OUTPUT", "FP32", [1, 1000])
    assert answer["data"].index(max(answer["data"])) == EGYPTIAN_CAT


def test_a_file_that_is_not_an_image_is_one_sentence_of_the_model(
    example_app: Any, outputs: Any, tmp_path: Path
) -> None:
    (tmp_path / "no.jpg").write_bytes(b"not an image")
    asked = ["invoke", outputs["EndpointName"], "--target-model", "image", "--input", f"INPUT=@{tmp_path / 'no.jpg'}"]

    said = example_app.run("cdk-triton", *asked, status=1)

    assert said.startswith("error: endpoint")
    assert len(said.splitlines()) == 1


def test_endpoints_and_target_models_are_listed(example_app: Any, outputs: Any) -> None:
    listed = example_app.run("cdk-triton", "invoke")
    status = example_app.run("cdk-triton", "local", "status")

    for said in (listed, status):
        assert f"--target-model text  ({outputs['TextModel']})" in said


def test_a_load_on_stand_ins_gives_no_setting(example_app: Any, outputs: Any) -> None:
    load = ["--rate", "5", "--duration", "2", "--warm-up", "0", "--arrivals", "constant", "--format", "json"]
    asked = ["bench", outputs["EndpointName"], "--target-model", "text", "--input", "INPUT0=A man is eating food."]

    said = example_app.run("cdk-triton", *asked, *load)

    document, _ = json.JSONDecoder().raw_decode(said[said.index("{") :])
    assert (document["rates"][0]["answered"], document["rates"][0]["errors"]) == (10, {})
    assert (document["stand_ins"], document["max_requests_per_second"]) == (True, None)
