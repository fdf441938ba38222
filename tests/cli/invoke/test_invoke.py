"""`cdk-triton invoke`: what is sent, what is printed and written, and what is rejected before anything is sent."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import numpy as np
import pytest
from botocore.exceptions import ClientError
from tests.cli.echo import BUCKET

from cdk_triton.protocol.catalogue import Change, Entry, Version
from cdk_triton.protocol.index import Index
from cdk_triton_local.endpoints import Response
from cdk_triton_local.process import endpoint_variables

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome
    from tests.cli.echo import World

    from golden_messages import Messages

pytestmark = pytest.mark.slow  # the local AWS takes seconds to start

Run = Callable[..., "Outcome"]


def outputs(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == 0, outcome.err
    return {
        each["name"]: (each["datatype"], each["shape"], each["data"]) for each in json.loads(outcome.out)["outputs"]
    }


def test_an_image_is_sent_as_its_bytes_with_the_type_of_the_deployed_archive(
    run: Run, world: World, tmp_path: Path
) -> None:
    image = tmp_path / "dog.jpg"
    image.write_bytes(b"\xff\xd8\x00")

    found = run("invoke", "image", "--input", f"IMAGE=@{image}", "--format", "json")

    assert outputs(found) == {"IMAGE": ("UINT8", [1, 3], [255, 216, 0])}
    assert json.loads(found.out)["variant"] == "AllTraffic"


def test_an_ensemble_names_its_current_target_model(run: Run, world: World) -> None:
    value = "[[[1, 2, 3], [4, 5, 6]]]"

    found = run(
        "invoke",
        "fleet",
        "--target-model",
        "text",
        "--input",
        "TEXT=hello",
        "--input",
        f"X={value}",
        "--format",
        "json",
    )

    assert world.echo.asked[-1].headers["x-amzn-sagemaker-target-model"] == "text-0123456789.tar.gz"
    assert outputs(found) == {
        "TEXT": ("BYTES", [1, 1], ["hello"]),
        "X": ("FP32", [1, 2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    }


def sent(world: World) -> dict[str, Any]:
    """The JSON header of the last request."""
    header: dict[str, Any] = json.JSONDecoder().raw_decode(world.echo.asked[-1].body.decode("latin-1"))[0]
    return header


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--sequence", "7", "--first"], {"sequence_id": 7, "sequence_start": True, "sequence_end": False}),
        (["--sequence", "user-7", "--last"], {"sequence_id": "user-7", "sequence_start": False, "sequence_end": True}),
        (["--sequence", "007"], {"sequence_id": "007", "sequence_start": False, "sequence_end": False}),
        (["--priority", "1", "--queue-timeout", "0.5"], {"priority": 1, "timeout": 500_000}),
    ],
)
def test_options_for_the_schedulers_are_sent(
    run: Run, world: World, options: list[str], parameters: dict[str, Any]
) -> None:
    assert run("invoke", "image", "--input", "IMAGE=[1, 2]", *options).status == 0
    found = sent(world)["parameters"]
    assert {name: value for name, value in found.items() if name != "binary_data_output"} == parameters


def test_a_request_is_named(run: Run, world: World) -> None:
    names = ["--request-id", "r-1", "--inference-id", "i-1", "--custom-attributes", "tenant=7"]
    assert run("invoke", "image", "--input", "IMAGE=[1]", *names).status == 0
    assert sent(world)["id"] == "r-1"
    assert world.echo.asked[-1].headers["x-amzn-sagemaker-inference-id"] == "i-1"
    assert world.echo.asked[-1].headers["x-amzn-sagemaker-custom-attributes"] == "tenant=7"


def test_options_take_precedence_over_the_file(run: Run, world: World, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    tensor = {"name": "IMAGE", "datatype": "UINT8", "shape": [1, 1], "data": [1]}
    document = {"id": "file", "inputs": [tensor], "parameters": {"priority": 2, "sequence_id": 3, "timeout": 1000}}
    file.write_text(json.dumps(document))
    assert run("invoke", "image", "--data", str(file), "--priority", "1", "--sequence", "4", "--last").status == 0
    found = sent(world)
    assert found["id"] == "file"
    assert (
        found["parameters"] | {"priority": 1, "sequence_id": 4, "sequence_end": True, "timeout": 1000}
        == found["parameters"]
    )


@pytest.mark.parametrize(
    "options",
    [
        ["--first"],
        ["--last"],
        ["--sequence", ""],
        ["--sequence", "0"],
        ["--sequence", "\udcff"],
        ["--request-id", "\udcff"],
        ["--sequence", "9" * 5_000],
        ["--priority", "0"],
        ["--queue-timeout", "0"],
        ["--queue-timeout", "nan"],
        ["--stream", "--sequence", "7", "--priority", "1"],
        ["--inference-id", "x" * 65],
    ],
)
def test_options_that_cannot_be_sent(run: Run, world: World, messages: Messages, options: list[str]) -> None:
    before = len(world.echo.asked)
    found = run("invoke", "image", "--input", "IMAGE=[1]", *options)
    assert found.status == 2
    messages.record("cdk-triton invoke", found.said)
    assert len(world.echo.asked) == before


@pytest.fixture(name="published")
def _published(world: World) -> Iterator[None]:
    """The ensemble `image` is published, and no ensemble of the stack any more."""
    index, entry = "fleets/fleet/25.09-a10g/index.json", "catalogue/fleet/25.09-a10g/image.json"
    before = world.s3.get_object(Bucket=BUCKET, Key=index)["Body"].read()
    of_stack = Index("fleet", {"text": "text-0123456789.tar.gz"}, has_catalogue=True)
    change = Change("2026-11-27T12:00:00+00:00", "somebody", "execution")
    version = Version("image-0123456789.tar.gz", "0" * 64, "0" * 64, "image", change)
    world.s3.put_object(Bucket=BUCKET, Key=index, Body=of_stack.text())
    world.s3.put_object(Bucket=BUCKET, Key=entry, Body=Entry("fleet", "image", (version,)).text())
    yield
    world.s3.put_object(Bucket=BUCKET, Key=index, Body=before)
    world.s3.delete_object(Bucket=BUCKET, Key=entry)


def test_a_published_ensemble_is_named_as_one_of_the_stack_is(run: Run, world: World, published: None) -> None:
    found = json.loads(run("invoke", "--format", "json").out)["endpoints"][0]["target_models"]
    assert {each["target_model"]: each["ensemble"] for each in found} == {
        "text-0123456789.tar.gz": "text",
        "image-0123456789.tar.gz": "image",
        "text-old.tar.gz": None,
    }


def test_a_text_file_is_a_string_for_each_line_and_npy_an_array(run: Run, world: World, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a\nb\n")
    np.save(tmp_path / "x.npy", np.ones((2, 2, 1)))

    given = [f"--input=TEXT=@{tmp_path}/text.txt", f"--input=X=@{tmp_path}/x.npy"]
    found = run("invoke", "fleet", "--target-model", "text", *given, "--format", "json")

    assert outputs(found) == {
        "TEXT": ("BYTES", [2, 1], ["a", "b"]),
        "X": ("FP32", [2, 2, 1], [1.0, 1.0, 1.0, 1.0]),
    }


def test_random_inputs_are_the_same_each_time_and_fill_what_is_not_given(run: Run, world: World) -> None:
    arguments = ("invoke", "fleet", "--target-model", "text", "--random", "--input", "TEXT=x", "--format", "json")

    first, second = outputs(run(*arguments)), outputs(run(*arguments))

    assert first == second
    assert first["TEXT"][2] == ["x"]
    assert first["X"][:2] == ("FP32", [1, 2, 1])


def test_a_written_type_or_a_repository_takes_the_place_of_the_archive(run: Run, world: World, tmp_path: Path) -> None:
    (tmp_path / "models" / "image").mkdir(parents=True)
    (tmp_path / "models" / "image" / "config.pbtxt").write_text(
        'input [{name: "Y" data_type: TYPE_INT64 dims: [2]}] backend: "python"'
    )

    written = run("invoke", "image", "--input", "Z:FP64=[1.5]", "--format", "json")
    of_repository = run(
        "invoke", "image", "--repository", tmp_path / "models", "--input", "Y=[1, 2]", "--format", "json"
    )

    assert outputs(written) == {"Z": ("FP64", [1], [1.5])}
    assert outputs(of_repository) == {"Y": ("INT64", [2], [1, 2])}


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_a_kserve_body_is_sent(
    run: Run, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    body = {"id": "7", "inputs": [{"name": "x", "datatype": "FP16", "shape": [1, 2], "data": [[1, 2]]}]}
    (tmp_path / "body.json").write_text(json.dumps(body))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(body).encode())))

    found = run("invoke", "image", "--data", tmp_path / "body.json" if source == "file" else "-", "--format", "json")

    assert outputs(found) == {"x": ("FP16", [1, 2], [1.0, 2.0])}
    assert b'"id":"7"' in world.echo.asked[-1].body


def test_an_asynchronous_endpoint_is_asked_and_its_answer_fetched(run: Run, world: World) -> None:
    found = run("invoke", "queue", "--random", "--format", "json")

    assert outputs(found)["IMAGE"][0] == "UINT8"


def test_a_component_is_asked(run: Run, world: World, shop: str) -> None:
    found = run("invoke", shop, "--component", "image-1", "--random", "--format", "json")

    assert outputs(found)["IMAGE"][0] == "UINT8"
    assert world.echo.asked[-1].headers["x-amzn-sagemaker-inference-component"] == "image-1"


def test_the_region_is_that_of_the_cdk_command(run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 alone does not read AWS_REGION."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setattr(boto3, "Session", boto3.session.Session)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)

    found = run("invoke", "image", "--random", "--format", "json")

    assert outputs(found)["IMAGE"][0] == "UINT8"


def test_a_large_request_of_an_asynchronous_endpoint_is_uploaded(run: Run, world: World, tmp_path: Path) -> None:
    (tmp_path / "large.jpg").write_bytes(bytes(200_000))

    found = run("invoke", "queue", "--input", f"IMAGE=@{tmp_path / 'large.jpg'}", "--format", "json")

    assert outputs(found)["IMAGE"][1] == [1, 200_000]
    assert world.s3.list_objects_v2(Bucket="models", Prefix="async/input/")["KeyCount"] == 1


def test_the_table_has_types_shapes_and_the_first_values(run: Run, world: World) -> None:
    found = run("invoke", "image", "--input", "IMAGE=[1,2,3,4,5,6,7,8,9,10]")

    assert [" ".join(line.split()) for line in found.out.splitlines()] == [
        "OUTPUT TYPE SHAPE VALUES",
        "IMAGE UINT8 [1, 10] 1, 2, 3, 4, 5, 6, 7, 8, … 2 more",
    ]
    assert "ms by AllTraffic" in found.err


def test_files_are_written_all_or_none_and_never_over_others(run: Run, world: World, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ["--input", "TEXT=hello", "--input", "X=[[[1],[2]]]"]
    arguments = ("invoke", "fleet", "--target-model", "text", *given, "--out", out)

    first = run(*arguments)
    (out / "TEXT.txt").unlink()
    again = run(*arguments)
    after_again = sorted(each.name for each in out.iterdir())
    forced = run(*arguments, "--force")

    assert (first.status, again.status, forced.status) == (0, 2, 0)
    assert "X.npy is there: add --force" in again.said
    assert again.out.splitlines() == first.out.splitlines()  # the answer is not lost
    assert after_again == ["X.npy"]
    assert (out / "TEXT.txt").read_text() == "hello\n"
    assert np.load(out / "X.npy", allow_pickle=False).tolist() == [[[1.0], [2.0]]]


@pytest.mark.parametrize("below", ["", "deeper"])
def test_files_that_cannot_be_written_are_an_error_before_the_request(
    run: Run, world: World, tmp_path: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()

    found = run("invoke", "image", "--random", "--out", Path("taken", below))

    assert (found.status, found.out, world.echo.asked) == (2, "", [])
    messages.record("cdk-triton invoke", found.said)


def test_inputs_with_a_type_get_the_batch_dimension_of_the_deployed_archive(
    run: Run, world: World, tmp_path: Path
) -> None:
    image = tmp_path / "dog.jpg"
    image.write_bytes(b"\xff\xd8\x00")
    typed = [f"--input=IMAGE:UINT8=@{image}", "--format", "json"]

    of_one = run("invoke", "image", *typed)
    of_text = run("invoke", "fleet", "--target-model", "text", "--input", "TEXT:BYTES=Guten Morgen", "--format", "json")
    whole = run("invoke", "image", "--input", "IMAGE:UINT8=[[1], [2]]", "--format", "json")

    assert outputs(of_one) == {"IMAGE": ("UINT8", [1, 3], [255, 216, 0])}
    assert outputs(of_text) == {"TEXT": ("BYTES", [1, 1], ["Guten Morgen"])}
    assert outputs(whole) == {"IMAGE": ("UINT8", [2, 1], [1, 2])}


def test_a_large_archive_is_not_read_for_inputs_with_a_type(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdk_triton.cli.requests.options._QUICK_BYTES", 1)

    found = run("invoke", "image", "--input", "IMAGE:UINT8=[1]", "--format", "json")

    assert outputs(found) == {"IMAGE": ("UINT8", [1], [1])}


def test_without_an_endpoint_all_are_listed(run: Run, world: World) -> None:
    listed = run("invoke")
    as_json = json.loads(run("invoke", "--format", "json").out)
    asked = run("invoke", "--random")
    others = [run("invoke", *each).status for each in (("--target-model", "text"), ("--out", "answers"), ("--force",))]

    lines = [" ".join(line.split()) for line in listed.out.splitlines()]
    assert lines == [
        "ENDPOINT STATUS KIND ASK FOR",
        "fleet InService multi-model --target-model image (image-0123456789.tar.gz)",
        "--target-model text (text-0123456789.tar.gz)",
        "image InService single model",
        "queue InService asynchronous",
    ]
    assert (listed.status, asked.status, asked.out) == (0, 2, "")
    assert others == [2, 2, 2]
    assert {"target_model": "text-old.tar.gz", "ensemble": None} in as_json["endpoints"][0]["target_models"]


CASES = {
    "no such endpoint": ["imag", "--random"],
    "no target model": ["fleet", "--random"],
    "an unknown target model": ["fleet", "--target-model", "texd", "--random"],
    "a target model of a single model": ["image", "--target-model", "text", "--random"],
    "nothing to send": ["image"],
    "two sources": ["image", "--data", "-", "--random"],
    "types of a whole request": ["image", "--data", "-", "--repository", "models"],
    "a variant of a queue": ["queue", "--random", "--variant", "AllTraffic"],
    "force without files": ["image", "--random", "--force"],
    "an unknown input": ["image", "--input", "IMAG=[1]"],
    "a missing input": ["fleet", "--target-model", "text", "--input", "TEXT=x"],
    "no value": ["image", "--input", "IMAGE"],
    "no name": ["image", "--input", "=1"],
    "an unknown type": ["image", "--input", "IMAGE:FP23=1"],
    "another type": ["image", "--random", "--input", "IMAGE:FP32=[1]"],
    "a value out of range": ["image", "--input", "IMAGE=[256]"],
    "a value that is not a number": ["image", "--input", 'IMAGE=["a"]'],
    "another type alone": ["image", "--input", "IMAGE:FP32=[1]"],
    "broken JSON": ["image", "--input", "IMAGE=[1,"],
    "a text for numbers": ["image", "--input", "IMAGE=hello"],
    "a text among numbers": ["image", "--input", 'IMAGE=[1, "a"]'],
    "texts in one row": ["fleet", "--target-model", "text", "--random", "--input", 'TEXT=["a", "b"]'],
    "another shape": ["fleet", "--target-model", "text", "--random", "--input", "X=[[1,2,3]]"],
    "too many rows": ["image", "--input", "IMAGE=[[1],[1],[1],[1],[1]]"],
    "given twice": ["image", "--input", "IMAGE=[1]", "--input", "IMAGE=[1]"],
    "a missing file": ["image", "--input", "IMAGE=@missing.jpg"],
    "a pickled array": ["image", "--input", "IMAGE=@pickled.npy"],
    "no JSON": ["image", "--data", "no.json"],
    "a body of another form": ["image", "--data", "list.json"],
    "a binary body": ["image", "--data", "body.bin"],
    "too few values": ["image", "--data", "short.json"],
}


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES)
def test_a_request_that_cannot_be_meant_is_one_sentence_and_is_not_sent(
    messages: Messages, run: Run, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("pickled.npy", np.array([{}], dtype=object))
    Path("no.json").write_text("no")
    Path("body.bin").write_bytes(b'{"inputs": [{"parameters": {"binary_data_size": 1}}]}\xff')
    Path("list.json").write_text("[]")
    Path("short.json").write_text('{"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1]}]}')

    found = run("invoke", *arguments)

    assert (found.status, found.out, world.echo.asked) == (2, "", [])
    messages.record("cdk-triton invoke", found.said)


def test_a_caller_who_may_only_invoke_writes_the_types(
    messages: Messages, run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeEndpoint")

    monkeypatch.setattr("cdk_triton.cli.endpoints.reading._unless_gone", denied)

    typed = run("invoke", "image", "--input", "IMAGE:UINT8=[[1]]", "--format", "json")
    untyped = run("invoke", "image", "--random")

    assert outputs(typed) == {"IMAGE": ("UINT8", [1, 1], [1])}
    assert untyped.status == 2
    messages.record("cdk-triton invoke", untyped.said)


@pytest.mark.parametrize("code", ["ThrottlingException", "ValidationError", "AccessDeniedException"])
def test_an_error_of_sagemaker_is_one_sentence(run: Run, world: World, code: str) -> None:
    world.echo.error = Response(400, {"x-amzn-ErrorType": code}, json.dumps({"Message": "slow down"}).encode())

    found = run("invoke", "image", "--random")

    assert (found.status, found.out) == (1, "")
    assert code in found.err
    assert len(found.err.splitlines()) == 1


def test_the_words_of_the_model_are_one_sentence(messages: Messages, run: Run, world: World, tmp_path: Path) -> None:
    said = {"Message": "…", "OriginalStatusCode": 400, "OriginalMessage": '{"error": "cannot identify image file"}'}
    world.echo.error = Response(424, {"x-amzn-ErrorType": "ModelError"}, json.dumps(said).encode())

    found = run("invoke", "image", "--random", "--out", tmp_path / "out")

    assert (found.status, found.out) == (1, "")
    assert "cannot identify image file" in found.err
    assert len(found.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_local_aws_that_has_ended_is_named(
    messages: Messages, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    found = run("invoke", "image", "--random")

    assert found.status == 1
    # Every variable that `local up` sets leads away from AWS, not only the address.
    unset = found.said.partition("; to go back to AWS, run: unset ")[2].split()
    assert set(unset) == set(endpoint_variables("", "", "", ""))
    messages.record("cdk-triton invoke", found.said)
