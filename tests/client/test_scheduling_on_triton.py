"""Sequences, priorities and time-outs: the real server's schedulers read what the client sends."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from botocore.exceptions import ClientError
from tests.docs.blocks import of_kind

from cdk_triton.artifacts import write_archive
from cdk_triton.client import AsyncTritonClient, TritonClient
from cdk_triton.client.kserve import read_body
from cdk_triton.client.scheduling import SequenceStep
from cdk_triton.errors import ConfigurationError, ModelError
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ModelRepository
from cdk_triton.triton.findings import Severity
from cdk_triton_local.endpoints import Container, Endpoint, Invocation, Variant
from cdk_triton_local.triton.host import TritonHost

if TYPE_CHECKING:
    from golden_messages import Messages

pytestmark = pytest.mark.slow

PAGE_CONFIG, PAGE_MODEL = of_kind("client/test_scheduling_on_triton.py")
TENSORS = """
backend: "python"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
"""
SEQUENCES = """
sequence_batching {
  control_input { name: "start" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
  max_sequence_idle_microseconds: 60000000
"""
CONFIGS = {
    "page": PAGE_CONFIG.text,
    "sum": TENSORS + SEQUENCES + "oldest { max_candidate_sequences: 64 } }",
    "slots": TENSORS + "instance_group { kind: KIND_CPU count: 1 }" + SEQUENCES + "}",
    "text": TENSORS
    + SEQUENCES
    + 'control_input { name: "id" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } } '
    + "oldest { max_candidate_sequences: 64 } }",
    "queue": TENSORS
    + """
dynamic_batching {
  preferred_batch_size: [ 1 ]
  priority_levels: 2
  default_priority_level: 2
  default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 60000000 }
}
instance_group { kind: KIND_CPU count: 1 }
""",
    "front": """
platform: "ensemble"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
ensemble_scheduling { step { model_name: "queue" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }
""",
}
SUM = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            starts = pb_utils.get_input_tensor_by_name(request, "start").as_numpy()[0]
            of = request.correlation_id()
            self.sums[of] = (0 if starts else self.sums[of]) + x
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", self.sums[of])]))
        return answers
"""
# It answers with the place of each request in the order of execution. While the file `closed` is there, it waits.
QUEUE = """
import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.count = 0

    def execute(self, requests):
        open("DIRECTORY/begun", "w").close()
        while os.path.exists("DIRECTORY/closed"):
            time.sleep(0.005)
        return [self.answer() for _ in requests]

    def answer(self):
        self.count += 1
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([[self.count]], np.float32))])
"""
MODELS = {"queue": QUEUE, "page": PAGE_MODEL.text}
REPOSITORIES = {"page": ("page",), "sum": ("sum",), "slots": ("slots",), "text": ("text",), "front": ("front", "queue")}


class DirectoryStore:
    """S3, as far as the host needs it: objects are files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 - boto3's names
        file = self.directory / Bucket / Key
        if not file.is_file():
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": "There is no such key."}}, "GetObject")
        return {"Body": file.open("rb")}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repositories `sum` and `front`, and their archives."""
    root = tmp_path_factory.mktemp("scheduling")
    (root / "s3/bucket").mkdir(parents=True)
    for repository, models in REPOSITORIES.items():
        for name in models:
            (root / repository / name / "1").mkdir(parents=True)
            (root / repository / name / "config.pbtxt").write_text(CONFIGS[name])
            if name != "front":
                model = MODELS.get(name, SUM).replace("DIRECTORY", str(root))
                (root / repository / name / "1/model.py").write_text(model)
        write_archive(root / repository, root / "s3/bucket" / f"{repository}.tar.gz")
    return root


@pytest.fixture(scope="module")
def host(directory: Path) -> Iterator[TritonHost]:
    host = TritonHost(lambda role: DirectoryStore(directory / "s3"), directory / "host")
    try:
        for name in REPOSITORIES:
            environment = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": name}
            container = Container("none", "SingleModel", f"s3://bucket/{name}.tar.gz", environment)
            host.deploy(Endpoint(name, f"{name}-1", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
        yield host
    finally:
        host.close()


@pytest.fixture
def client(host: TritonHost, endpoint: Any, answer: Any) -> Callable[[str], TritonClient]:
    """A client of the endpoint of this name."""

    def of(name: str) -> TritonClient:
        def through_the_gateway(headers: Mapping[str, str], body: bytes) -> Any:
            endpoint.requests.append(("", headers, {}))
            response = host.invoke(Invocation(name, headers, body))
            return answer(response.body, response.headers["Content-Type"], response.status, response.headers)

        endpoint.handle = through_the_gateway
        return TritonClient(name, endpoint.runtime())

    return of


def x(value: float) -> dict[str, Any]:
    return {"x": np.array([[value]], np.float32)}


def test_sequences_that_take_turns_have_a_sum_each(client: Callable[[str], TritonClient]) -> None:
    sums = client("sum")
    sequences = {name: sums.sequence(name) for name in (7, 8, 9)}
    for step in range(20):
        for name, calls in sequences.items():
            found = calls.infer(x(name), last=step == 19)["y"]
            assert found.tolist() == [[name * (step + 1)]]
    with sums.sequence(7) as again:
        assert again.infer(x(1), last=True)["y"].tolist() == [[1]]
        with pytest.raises(ConfigurationError, match="has ended"):
            again.infer(x(1))


def test_the_model_of_the_page_adds_up_each_sequence(client: Callable[[str], TritonClient], directory: Path) -> None:
    repository = ModelRepository.from_directory(directory / "page")
    assert not repository.check()
    page = client("page").for_repository(repository)
    with page.sequence("a") as first, page.sequence("b") as second:
        sums = [
            calls.infer({"X": [2]}, last=ends)["TOTAL"].item() for ends in (False, True) for calls in (first, second)
        ]
    assert sums == [2, 2, 4, 4]


def test_the_asynchronous_client_has_sequences_too(
    client: Callable[[str], TritonClient], directory: Path, environment: Any
) -> None:
    client("sum")

    async def use() -> list[Any]:
        async with AsyncTritonClient("sum") as sums, sums.for_repository(directory / "sum").sequence("a") as calls:
            return [(await calls.infer({"x": [[2.0]]}, last=number == 2))["y"].item() for number in range(3)]

    assert asyncio.run(use()) == [2, 4, 6]


def test_a_call_of_a_sequence_that_the_server_has_not_seen_starting_is_rejected(
    client: Callable[[str], TritonClient],
) -> None:
    """As after an update, whose new container knows nothing of it."""
    continued = client("sum")
    with pytest.raises(ModelError, match=r"must specify the START flag .*; begin the sequence again"):
        continued._infer(x(1), SequenceStep(99, is_first=False, is_last=False))
    with continued.sequence(99) as calls:
        assert calls.infer(x(1), last=True)["y"].tolist() == [[1]]


def test_a_request_in_no_sequence_names_the_way_out(
    client: Callable[[str], TritonClient], directory: Path, messages: Messages
) -> None:
    for caller in (client("sum"), client("sum").for_repository(directory / "sum")):
        with pytest.raises(ModelError, match=r"correlation ID; call the model in a sequence") as caught:
            caller.infer(x(1))
    messages.record(type(caught.value).__name__, str(caught.value))


def test_a_slot_without_a_request_is_taken_for_one_as_ct294_says(
    client: Callable[[str], TritonClient], directory: Path
) -> None:
    assert [each.code for each in ModelRepository.from_directory(directory / "slots").check()] == ["CT294"]
    first, second = client("slots").sequence(7), client("slots").sequence(8)
    assert first.infer(x(1))["y"].tolist() == [[1]]
    with pytest.raises(ModelError, match="KeyError: 0"):
        second.infer(x(1))


def test_an_identifier_that_is_text_is_rejected_as_ct295_says(
    client: Callable[[str], TritonClient], directory: Path
) -> None:
    # The server of the tests is 24.10, of which SageMaker has no image.
    platform = ServingPlatform(release="24.09", instance_type="ml.g5.xlarge")
    found = ModelRepository.from_directory(directory / "text").check(platform=platform)
    assert "CT295" in [each.code for each in found if each.severity == Severity.ERROR]
    with pytest.raises(ModelError, match="unexpected number of string elements 2 for inference input"):
        client("text").sequence("a").infer(x(1))


def test_a_sequence_that_is_left_open_is_a_warning(client: Callable[[str], TritonClient]) -> None:
    with pytest.warns(ResourceWarning, match="max_sequence_idle_microseconds"), client("sum").sequence(3) as calls:
        calls.infer(x(1))
    with client("sum").sequence(4):
        pass  # it never began


@pytest.mark.parametrize("sequence_id", [0, -1, True, "", "x" * 129, 1.5, None])
def test_an_identifier_that_triton_does_not_take(client: Callable[[str], TritonClient], sequence_id: Any) -> None:
    with pytest.raises(ConfigurationError, match="identifier of the sequence"):
        client("sum").sequence(sequence_id)


@pytest.fixture
def answers_behind_a_busy_model(directory: Path) -> Iterator[Callable[..., list[Any]]]:
    """Calls the first function, the others while the model is busy with it, and returns what they return or raise."""
    closed, begun, log = directory / "closed", directory / "begun", directory / "host/logs/front/AllTraffic.log"

    def queued() -> int:
        """How often a request has come into a queue: first into that of the ensemble, then into that of its step."""
        return log.read_text().count("Setting state from INITIALIZED to PENDING")

    def eventually(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)

    def answers(first: Callable[[], Any], *others: Callable[[], Any]) -> list[Any]:
        before = queued()
        begun.unlink(missing_ok=True)
        closed.touch()
        with ThreadPoolExecutor(1 + len(others)) as pool:
            try:
                called = [pool.submit(first)]
                eventually(begun.exists)
                for number, each in enumerate(others, 2):
                    called.append(pool.submit(each))
                    eventually(lambda: queued() == before + 2 * number)  # noqa: B023 - called at once
            finally:
                closed.unlink(missing_ok=True)
        return [each.exception() or each.result() for each in called]

    yield answers
    closed.unlink(missing_ok=True)


def test_a_high_priority_overtakes_in_the_queue_of_a_step(
    client: Callable[[str], TritonClient], answers_behind_a_busy_model: Callable[..., list[Any]]
) -> None:
    front = client("front")
    answers = answers_behind_a_busy_model(
        *(partial(front.infer, x(0), priority=priority) for priority in (2, 2, 2, 1, 2))
    )
    places = [int(each["y"].item()) for each in answers]
    assert sorted(places)[:2] == [places[0], places[3]]


def test_a_request_that_waits_too_long_is_rejected(
    client: Callable[[str], TritonClient], answers_behind_a_busy_model: Callable[..., list[Any]], directory: Path
) -> None:
    front = client("front").for_repository(directory / "front")
    x = {"x": [[0.0]]}
    _, late, patient = answers_behind_a_busy_model(
        partial(front.infer, x),
        partial(front.infer, x, queue_timeout_seconds=0.000001),
        partial(front.infer, x, queue_timeout_seconds=50),
    )
    assert isinstance(late, ModelError)
    assert "timeout expired" in str(late).lower()
    assert patient["y"].shape == (1, 1)
    with pytest.raises(ConfigurationError, match="has no effect on model 'sum'"):
        client("sum").for_repository(directory / "sum").infer({"x": [[0.0]]}, queue_timeout_seconds=1)


@pytest.mark.parametrize(
    "option",
    [
        {"priority": 0},
        {"priority": "high"},
        {"priority": True},
        {"queue_timeout_seconds": 0},
        {"queue_timeout_seconds": float("nan")},
        {"queue_timeout_seconds": "1"},
        *({"parameters": {name: 1}} for name in ("priority", "timeout", "sequence_id", "sequence_start")),
    ],
)
def test_an_option_that_triton_does_not_take(client: Callable[[str], TritonClient], option: Any) -> None:
    with pytest.raises(ConfigurationError):
        client("front").infer(x(0), **option)


def test_a_request_in_a_file_has_its_place_in_a_sequence(client: Callable[[str], TritonClient], tmp_path: Path) -> None:
    """As `invoke --data` and golden requests have it."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [2.0]}
    for ends in ((True, False), (False, True)):
        parameters = {"sequence_id": 77, "sequence_start": ends[0], "sequence_end": ends[1], "priority": 1}
        (tmp_path / "request.json").write_text(json.dumps({"inputs": [tensor], "parameters": parameters}))
        body = read_body(str(tmp_path / "request.json"))
        assert (body.step, body.priority, body.parameters) == (SequenceStep(77, *ends), 1, {})
        found = client("sum")._infer(body.inputs, body.step, **body.options)
    assert found["y"].tolist() == [[4]]
