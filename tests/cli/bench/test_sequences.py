"""`cdk-triton bench --sequence-length`: sequences of a load, and what a real tritonserver sees of them."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from tests.docs.blocks import of_kind

from cdk_triton.cli.bench.arrivals import send_times
from cdk_triton.cli.bench.kinds import Arrivals
from cdk_triton.cli.bench.load import load
from cdk_triton.cli.bench.measurement import Measurement
from cdk_triton.cli.bench.sequences import SendStep, Sequences
from cdk_triton.cli.progress import Progress
from cdk_triton.client.scheduling import SequenceStep
from streaming_account import streaming_account

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome
    from tests.cli.echo import World

    from golden_messages import Messages

Run = Callable[..., "Outcome"]
LOAD = ("--rate", "40", "--duration", "1", "--warm-up", "0", "--arrivals", "constant")
SEQUENCES = ("--sequence-length", "5", "--sequence-interval", "0.05")

CONFIG, _ = of_kind("client/test_scheduling_on_triton.py")
MODEL = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x, starts, ends = (pb.get_input_tensor_by_name(request, name).as_numpy() for name in ("X", "START", "END"))
            with open("LOG", "a") as log:
                print(request.correlation_id(), int(starts.any()), int(ends.any()), file=log)
            answers.append(pb.InferenceResponse([pb.Tensor("TOTAL", x)]))
        return answers
"""


def run_load(send: SendStep, sequences: Sequences, rate: float, seconds: float) -> Measurement:
    async def main() -> Measurement:
        times = send_times(rate, seconds, Arrivals.CONSTANT, 0)
        dealt = sequences.dealt(send, rate, len(times))
        return await load(dealt, times, rate, seconds, asyncio.Event(), Progress())

    return asyncio.run(main())


@pytest.mark.slow
@pytest.mark.server
def test_the_server_sees_whole_sequences_at_the_same_time(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with streaming_account(tmp_path) as account:
        for name, value in account.aws.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        account.archive("sums", CONFIG.text, MODEL.replace("LOG", str(log)))
        endpoint = account.endpoint("infer", model="sums")
        found = run("bench", endpoint, "--random", *LOAD, *SEQUENCES, "--format", "json")

    assert found.status == 0, found.err
    (rate,) = json.loads(found.out)["rates"]
    assert (rate["answered"], rate["errors"], rate["sequences"]) == (40, {}, 2)
    marks: dict[str, list[tuple[str, str]]] = defaultdict(list)
    most = open_now = 0
    for sequence, starts, ends in map(str.split, log.read_text().splitlines()):
        marks[sequence].append((starts, ends))
        open_now += int(starts)
        most = max(most, open_now)
        open_now -= int(ends)
    assert (most, open_now) == (2, 0)
    trial, *lengths = map(len, marks.values())
    assert (trial, sorted(lengths)) == (1, [2, 3, *[5] * 7])  # one caller begins in the middle of a sequence
    for each in marks.values():
        inner = [("0", "0")] * (len(each) - 2)
        assert each == ([("1", "0"), *inner, ("0", "1")] if len(each) > 1 else [("1", "1")])


@pytest.mark.slow
def test_the_text_has_the_number_of_sequences(run: Run, world: World) -> None:
    found = run("bench", "image", "--random", *LOAD, *SEQUENCES)
    assert found.status == 0, found.err
    heading, row = (line.split() for line in found.out.splitlines()[:2])
    assert (heading[:3], row[:2]) == (["RATE/S", "SEQUENCES", "OFFERED/S"], ["40", "2"])


@pytest.mark.slow
def test_a_sequence_is_not_sent_to_several_instances(run: Run, world: World, messages: Messages) -> None:
    variant = {"VariantName": "AllTraffic", "ModelName": "image", "InstanceType": "ml.g5.2xlarge"}
    world.sagemaker.create_endpoint_config(
        EndpointConfigName="two", ProductionVariants=[{**variant, "InitialInstanceCount": 2}]
    )
    world.sagemaker.create_endpoint(EndpointName="two", EndpointConfigName="two")
    world.sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="two", WaiterConfig={"Delay": 0.01})
    try:
        found = run("bench", "two", "--random", *LOAD, *SEQUENCES)
    finally:
        world.sagemaker.delete_endpoint(EndpointName="two")
    assert (found.status, found.out, world.echo.asked) == (2, "", [])
    messages.record("cdk-triton bench", found.said)


@pytest.mark.slow
def test_a_load_numbers_its_sequences_itself(run: Run, world: World, messages: Messages, tmp_path: Path) -> None:
    before = len(world.echo.asked)
    file = tmp_path / "request.json"
    tensor = {"name": "IMAGE", "datatype": "UINT8", "shape": [1, 1], "data": [1]}
    file.write_text(json.dumps({"inputs": [tensor], "parameters": {"sequence_id": 7, "sequence_start": True}}))
    found = run("bench", "image", "--data", file, *LOAD)
    assert found.status == 2
    messages.record("cdk-triton bench", found.said)
    cold = run("bench", "fleet", "--cold", "--target-model", "image", "--data", file)
    assert (cold.status, cold.said) == (2, found.said)
    streamed = run("bench", "image", "--random", *LOAD, "--stream", "--priority", "2", *SEQUENCES)
    assert streamed.status == 2
    assert "--priority" in streamed.said
    messages.record("cdk-triton bench", streamed.said)
    assert len(world.echo.asked) == before


def test_a_request_waits_for_the_one_before_it_and_is_late() -> None:
    under_way: set[int | str] = set()
    most = 0

    async def slow(step: SequenceStep | None = None) -> str:
        nonlocal most
        assert step is not None
        assert step.sequence_id not in under_way
        under_way.add(step.sequence_id)
        most = max(most, len(under_way))
        await asyncio.sleep(0.03)
        under_way.remove(step.sequence_id)
        return ""

    found = run_load(slow, Sequences(1000, 0.02), 100, 0.2)

    assert (found.planned, found.answered, most) == (20, 20, 2)
    # Each caller has ten requests of 0.03 s, one every 0.02 s: the last one waits 0.09 s for those before it.
    assert found.latency.get_max_value() > 110_000


def test_a_request_after_a_failed_first_one_starts_the_sequence() -> None:
    steps: list[SequenceStep] = []

    async def fails_first(step: SequenceStep | None = None) -> str:
        assert step is not None
        steps.append(step)
        return "ThrottlingException" if len(steps) in (1, 6) else ""

    found = run_load(fails_first, Sequences(3, 0.01), 100, 0.08)

    assert (found.answered, found.errors) == (6, {"ThrottlingException": 2})
    ids = [each.sequence_id for each in steps]
    assert [ids.index(each) for each in ids] == [0, 0, 0, 3, 3, 3, 6, 6]
    marks = [(each.is_first, each.is_last) for each in steps]
    whole = [(True, False), (False, False), (False, True)]
    assert marks == [(True, False), (True, False), (False, True), *whole, (True, False), (False, True)]


def test_sequences_that_are_cut_off_are_ended() -> None:
    steps: list[SequenceStep] = []
    stop = asyncio.Event()

    async def stops(step: SequenceStep | None = None) -> str:
        assert step is not None
        steps.append(step)
        if len(steps) >= 3 and not step.is_last:  # the first request of a sequence, which may have reached the model
            stop.set()
            await asyncio.Event().wait()
        return ""

    async def main() -> None:
        dealt = Sequences(9, 0.03).dealt(stops, 100, 100)
        await load(dealt, send_times(100, 1, Arrivals.CONSTANT, 0), 100, 1, stop, Progress())
        await dealt.end()

    asyncio.run(main())
    sent = {step.sequence_id for step in steps}
    assert {step.sequence_id for step in steps if step.is_last} == sent
    assert len(sent) == 3


@pytest.mark.parametrize(("rate", "number"), [(10, 1), (100, 10), (125, 12)])
def test_a_higher_rate_is_more_sequences(rate: float, number: int) -> None:
    assert Sequences(20, 0.1).at_a_time(rate) == number
