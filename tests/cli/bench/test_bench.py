"""`cdk-triton bench`: on the local AWS, whose answers are never a setting, and what it says of AWS."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from tests.cli.bench.measurements import rate

from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.bench import plan
from cdk_triton.cli.bench.cloudwatch import LoadPart, awaited_load_parts, gpu_utilization, load_parts
from cdk_triton.cli.bench.measurement import Measurement
from cdk_triton.sagemaker import gpu_instance
from cdk_triton_local.endpoints import Response

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome
    from tests.cli.echo import World

    from golden_messages import Messages

pytestmark = pytest.mark.slow  # the local AWS takes seconds to start

Run = Callable[..., "Outcome"]
SHORT = ["--duration", "1", "--warm-up", "0", "--rate", "20"]


def test_a_rate_on_the_local_aws_is_a_measurement_of_stand_ins(run: Run, world: World) -> None:
    found = run("bench", "image", "--random", *SHORT, "--arrivals", "constant", "--format", "json")

    assert found.status == 0, found.err
    document = json.loads(found.out)
    (rate,) = document["rates"]
    assert (rate["requests"], rate["answered"], rate["errors"]) == (20, 20, {})
    assert list(rate["latency_ms"]) == ["p50"]
    assert document["stand_ins"] is True
    assert document["max_requests_per_second"] is None
    assert len(world.echo.asked) == 21  # the first is a trial
    assert "Credential=" in world.echo.asked[0].headers["authorization"]


def test_every_request_has_the_priority_the_time_out_and_the_attributes(run: Run, world: World) -> None:
    before = len(world.echo.asked)
    given = ("--priority", "2", "--queue-timeout", "1.5", "--custom-attributes", "tenant=7")
    found = run("bench", "image", "--random", *SHORT, *given)
    assert found.status == 0, found.err
    assert {each.headers["x-amzn-sagemaker-custom-attributes"] for each in world.echo.asked[before:]} == {"tenant=7"}
    heads = [json.JSONDecoder().raw_decode(each.body.decode("latin-1"))[0] for each in world.echo.asked[before:]]
    assert {(head["parameters"]["priority"], head["parameters"]["timeout"]) for head in heads} == {(2, 1_500_000)}


def test_the_text_names_stand_ins_and_no_setting(run: Run, world: World) -> None:
    found = run("bench", "fleet", "--target-model", "text", "--random", *SHORT)

    assert found.status == 0, found.err
    lines = found.out.splitlines()
    assert lines[0].split()[:4] == ["RATE/S", "OFFERED/S", "ACHIEVED/S", "REQUESTS"]
    assert lines[-1].startswith("a measurement of stand-ins")
    assert "max_requests_per_second" not in found.out
    assert {each.headers["x-amzn-sagemaker-target-model"] for each in world.echo.asked} == {"text-0123456789.tar.gz"}


def test_a_sweep_ends_at_the_first_rate_with_errors_and_draws_it(run: Run, world: World, tmp_path: Path) -> None:
    world.echo.error = Response(429, {"x-amzn-ErrorType": "ThrottlingException"}, b"{}")

    plot = tmp_path / "sweep.svg"
    found = run("bench", "image", "--random", *SHORT, "--max-rate", "100", "--plot", plot, "--format", "json")

    assert found.status == 1
    document = json.loads(found.out)
    assert [each["errors"] for each in document["rates"]] == [{"ThrottlingException": document["rates"][0]["requests"]}]
    assert document["ended"] == "100.0% of the requests failed"
    assert document["knee_per_second"] is None
    assert "stand-ins" in plot.read_text()
    assert list(tmp_path.iterdir()) == [plot]


def test_ctrl_c_prints_what_there_is(run: Run, world: World) -> None:
    answer = world.echo.invoke

    def interrupted(invocation: Any) -> Response:
        if len(world.echo.asked) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return answer(invocation)

    world.echo.invoke = interrupted  # type: ignore[method-assign]
    try:
        found = run("bench", "image", "--random", "--rate", "50", "--duration", "300", "--warm-up", "0")
    finally:
        del world.echo.invoke

    assert found.status == 130
    assert "interrupted: these are the results until then" in found.out


def test_a_component_is_measured(run: Run, world: World, shop: str) -> None:
    found = run("bench", shop, "--component", "image-1", "--random", *SHORT, "--format", "json")

    assert found.status == 0, found.err
    document = json.loads(found.out)
    assert document["rates"][0]["answered"] == document["rates"][0]["requests"] > 0
    assert {each.headers["x-amzn-sagemaker-inference-component"] for each in world.echo.asked} == {"image-1"}


def test_a_component_that_is_not_named_or_not_there_is_one_sentence(
    messages: Messages, run: Run, world: World, shop: str
) -> None:
    for arguments in ((), ("--component", "image-2")):
        found = run("bench", shop, "--random", *arguments)
        assert (found.status, found.out, world.echo.asked) == (2, "", [])
        messages.record("cdk-triton bench", found.said)


@pytest.mark.parametrize("load", [("image", *SHORT), ("fleet", "--cold")], ids=["rate", "cold"])
def test_a_proxy_is_not_measured(
    messages: Messages, run: Run, world: World, monkeypatch: pytest.MonkeyPatch, load: tuple[str, ...]
) -> None:
    monkeypatch.setattr("botocore.utils.get_environ_proxies", lambda url: {"http": "http://proxy:3128"})

    found = run("bench", *load, "--random")

    assert (found.status, found.out, world.echo.asked) == (2, "", [])
    messages.record("cdk-triton bench", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:80", found.said))


def test_a_container_that_ends_a_request_is_an_error_of_its_code(run: Run, world: World) -> None:
    said = {"Message": "m", "OriginalStatusCode": 507, "OriginalMessage": "no memory"}
    answers = {
        "ModelError 507": Response(424, {"x-amzn-ErrorType": "ModelError"}, json.dumps(said).encode()),
        "HTTP 502": Response(502, {}, b"<html>"),
    }
    good = world.echo.invoke
    for code, answer in answers.items():
        world.echo.asked.clear()
        world.echo.error = None

        def first_good(invocation: Any, answer: Response = answer) -> Response:
            found = good(invocation)
            return found if len(world.echo.asked) == 1 else answer

        world.echo.invoke = first_good  # type: ignore[method-assign]
        try:
            found = run("bench", "image", "--random", *SHORT, "--format", "json")
        finally:
            del world.echo.invoke
        (measured,) = json.loads(found.out)["rates"]
        assert (found.status, measured["errors"]) == (1, {code: measured["requests"]})


def test_cold_loads_without_an_answer_have_the_status_of_a_failure(run: Run, world: World) -> None:
    world.echo.error = Response(400, {"x-amzn-ErrorType": "ValidationError"}, b'{"Message": "no such model"}')

    found = run("bench", "fleet", "--cold", "--random")

    assert found.status == 1
    assert "no such model" in found.out


def test_a_request_that_cannot_succeed_is_no_load(messages: Messages, run: Run, world: World) -> None:
    said = {"Message": "m", "OriginalStatusCode": 400, "OriginalMessage": '{"error": "cannot identify image file"}'}
    world.echo.error = Response(424, {"x-amzn-ErrorType": "ModelError"}, json.dumps(said).encode())

    found = run("bench", "image", "--random", *SHORT)

    assert (found.status, found.out, len(world.echo.asked)) == (1, "", 1)
    messages.record("cdk-triton bench", found.said)


def test_cold_loads_are_the_first_request_against_the_second(run: Run, world: World) -> None:
    found = run("bench", "fleet", "--cold", "--random", "--format", "json")

    assert found.status == 0, found.err
    rows = json.loads(found.out)["cold_loads"]
    assert [each["target_model"] for each in rows] == ["image-0123456789.tar.gz", "text-0123456789.tar.gz"]
    assert all(each["first_seconds"] > 0 and each["second_seconds"] > 0 for each in rows)


def test_cold_loads_send_all_that_a_request_in_a_file_has(run: Run, world: World, tmp_path: Path) -> None:
    before, file = len(world.echo.asked), tmp_path / "request.json"
    tensor = {"name": "IMAGE", "datatype": "UINT8", "shape": [1, 1], "data": [1]}
    parameters = {"mode": "fast", "priority": 2, "timeout": 1500}
    file.write_text(json.dumps({"id": "r-7", "inputs": [tensor], "parameters": parameters}))
    found = run("bench", "fleet", "--cold", "--target-model", "image", "--data", file)
    assert found.status == 0, found.err
    heads = [json.JSONDecoder().raw_decode(each.body.decode("latin-1"))[0] for each in world.echo.asked[before:]]
    assert [head["id"] for head in heads] == ["r-7"] * 2
    assert all(parameters.items() <= head["parameters"].items() for head in heads)


def test_the_parts_of_a_cold_load_are_awaited(run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """CloudWatch has nothing at first, then one load of two, then both."""
    one, both = LoadPart("ModelLoadingTime", 1, 0.25), LoadPart("ModelLoadingTime", 2, 0.5)
    looks = iter([[], [one], [both]])
    monkeypatch.setattr("cdk_triton.cli.bench.cloudwatch.load_parts", lambda *_: next(looks))
    waits: list[float] = []

    found = awaited_load_parts(Aws(), "fleet", "AllTraffic", 0.0, 2, pause=15, wait=waits.append)

    assert found == [both]
    assert waits == [15, 15]


def test_target_models_that_were_loaded_before_are_named_so(run: Run, world: World) -> None:
    found = run("bench", "fleet", "--cold", "--random")

    assert "the target models were loaded before" in found.out


CASES = {
    "an asynchronous endpoint": ["queue", "--random"],
    "cold loads of a single model": ["image", "--random", "--cold"],
    "a highest rate below the lowest": ["image", "--random", "--rate", "5", "--max-rate", "2"],
    "an unknown variant": ["image", "--random", "--variant", "Blue"],
    "nothing to send": ["image"],
    "a rate without an end": ["image", "--random", "--rate", "inf"],
    "cold loads of a component": ["fleet", "--random", "--cold", "--component", "x", "--variant", "nope"],
    "a picture of cold loads": ["fleet", "--random", "--cold", "--plot", "c.svg"],
    "cold loads up to a rate": ["fleet", "--random", "--cold", "--max-rate", "5"],
    "cold loads with a load": [
        *("fleet", "--random", "--cold", "--rate", "1", "--duration", "60", "--warm-up", "0", "--arrivals", "poisson"),
        *("--seed", "0"),
    ],
    "more requests than fit": ["image", "--random", "--rate", "1e12"],
    "a warm-up without an end": ["image", "--random", "--warm-up", "inf"],
    "a seed of equal distances": ["image", "--random", "--arrivals", "constant", "--seed", "1"],
    "sequences without an interval": ["image", "--random", "--sequence-length", "5"],
    "an interval without sequences": ["image", "--random", "--sequence-interval", "5"],
    "less than one sequence": ["image", "--random", "--sequence-length", "5", "--sequence-interval", "0.3"],
    "sequences of one request": ["image", "--random", "--sequence-length", "5", "--sequence-interval", "61"],
    "more sequences than fit": [
        *("image", "--random", "--sequence-length", "5", "--sequence-interval", "50", "--rate", "5000"),
    ],
    "cold loads of sequences": ["fleet", "--random", "--cold", "--sequence-length", "5", "--custom-attributes", "x"],
    "types of a whole request": ["image", "--data", "-", "--repository", "models"],
}


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES)
def test_a_load_that_cannot_be_meant_is_one_sentence(
    messages: Messages, run: Run, world: World, arguments: list[str]
) -> None:
    found = run("bench", *arguments)

    assert (found.status, found.out, world.echo.asked) == (2, "", [])
    messages.record("cdk-triton bench", found.said)


def test_on_aws_nothing_is_sent_before_somebody_agrees(
    messages: Messages, run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Aws, "is_local", property(lambda self: False))

    found = run("bench", "image", "--random", "--rate", "5", "--max-rate", "50")

    assert (found.status, found.out, world.echo.asked) == (2, "", [])
    messages.record("cdk-triton bench", found.said)


@pytest.mark.parametrize(("typed", "status"), [(None, 130), ("", 1), ("n\n", 1)], ids=["Ctrl-C", "Ctrl-D", "no"])
def test_the_question_before_the_load_can_be_answered_with_no(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch, typed: str | None, status: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def readline(self, *_: Any) -> str:  # type: ignore[override]  # the stubs have that of bytes
            if typed is None:
                raise KeyboardInterrupt
            return typed

    monkeypatch.setattr(Aws, "is_local", property(lambda self: False))
    monkeypatch.setattr("sys.stdin", Terminal())

    found = run("bench", "image", "--random")

    assert (found.status, found.out.strip(), world.echo.asked) == (status, "", [])


def test_an_endpoint_that_is_being_updated_is_not_measured(
    messages: Messages, run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = threading.Event()
    monkeypatch.setattr(type(world.echo), "deploy", lambda *_: done.wait(60))
    world.sagemaker.create_endpoint(EndpointName="slow", EndpointConfigName="image")
    try:
        found = run("bench", "slow", "--random")
    finally:
        done.set()
        world.sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="slow", WaiterConfig={"Delay": 0.01})
        world.sagemaker.delete_endpoint(EndpointName="slow")

    assert found.status == 1
    messages.record("cdk-triton bench", found.said)


def test_gpu_utilization_is_of_full_minutes_and_of_one_gpu(world: World) -> None:
    start = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=10)
    dimensions = [{"Name": "EndpointName", "Value": "gpus"}, {"Name": "VariantName", "Value": "AllTraffic"}]
    for minute, value in enumerate([400.0, 200.0, 240.0, 280.0, 400.0]):
        data = {"MetricName": "GPUUtilization", "Dimensions": dimensions, "Value": value}
        world.aws.client("cloudwatch").put_metric_data(
            Namespace="/aws/sagemaker/Endpoints", MetricData=[{**data, "Timestamp": start + timedelta(minutes=minute)}]
        )
    began = (start + timedelta(seconds=30)).timestamp()
    waits: list[float] = []

    found = gpu_utilization(Aws(), "gpus", "AllTraffic", (began, began + 240), 4, wait=waits.append)
    short = gpu_utilization(Aws(), "gpus", "AllTraffic", (began, began + 120), 4, wait=waits.append)

    assert found == pytest.approx(60.0)
    assert short is None


def test_the_parts_of_cold_loads_are_means_in_seconds(world: World) -> None:
    dimensions = [{"Name": "EndpointName", "Value": "cold"}, {"Name": "VariantName", "Value": "AllTraffic"}]
    for value in (1e6, 3e6):
        data = {"MetricName": "ModelDownloadingTime", "Dimensions": dimensions, "Value": value}
        world.aws.client("cloudwatch").put_metric_data(Namespace="AWS/SageMaker", MetricData=[data])
    now = datetime.now(UTC).timestamp()

    (part,) = load_parts(Aws(), "cold", "AllTraffic", (now - 120, now + 60))

    assert (part.name, part.count, part.seconds) == ("ModelDownloadingTime", 2, 2.0)


def test_a_sweep_on_aws_holds_the_knee_and_reads_the_gpu(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rates are given: 40 per second are the last before latency rises."""
    held: list[tuple[float, float]] = []

    async def load(send: Any, times: Any, offered: float, seconds: float, *_: Any) -> Measurement:
        held.append((round(offered), seconds))
        return rate(offered, 5 if offered <= 40 else 50)

    monkeypatch.setattr(plan, "load", load)
    monkeypatch.setattr("cdk_triton.cli.bench.cloudwatch.gpu_utilization", lambda *_: 55.0)
    monkeypatch.setattr(Aws, "is_local", property(lambda self: False))
    sweep = ["--rate", "32", "--max-rate", "50", "--duration", "20", "--warm-up", "0"]

    found = run("bench", "image", "--random", *sweep, "--yes")

    assert found.status == 0, found.err
    assert held == [(32, 20), (40, 20), (50, 20), (40, 240)]
    assert found.out.splitlines()[-2:] == ["max_requests_per_second=40", "target_utilization_percent=55"]
    assert "stand-ins" not in found.out


def test_load_on_aws_is_asked_for_where_s3_alone_is_local(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", "https://runtime.sagemaker.eu-west-1.amazonaws.com")

    assert not Aws().is_local


def test_a_type_without_a_row_in_our_table_loses_no_measurement(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load(send: Any, times: Any, offered: float, seconds: float, *_: Any) -> Measurement:
        return rate(offered, 5 if offered <= 40 else 50)

    monkeypatch.setattr(plan, "load", load)
    monkeypatch.setattr(plan, "gpu_instance", lambda _: gpu_instance("ml.c5.xlarge"))
    monkeypatch.setattr(Aws, "is_local", property(lambda self: False))

    found = run("bench", "image", "--random", "--rate", "32", "--max-rate", "50", "--warm-up", "0", "--yes")

    assert found.status == 0, found.err
    assert "max_requests_per_second=40" in found.out
    assert "target_utilization_percent is not known: 'ml.c5.xlarge'" in found.out


def test_what_cloudwatch_does_not_answer_loses_no_measurement(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load(send: Any, times: Any, offered: float, seconds: float, *_: Any) -> Measurement:
        return rate(offered, 5 if offered <= 40 else 50)

    def denied(*_: Any) -> float:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not allowed"}}, "GetMetricStatistics")

    monkeypatch.setattr(plan, "load", load)
    monkeypatch.setattr("cdk_triton.cli.bench.cloudwatch.gpu_utilization", denied)
    monkeypatch.setattr(Aws, "is_local", property(lambda self: False))

    found = run("bench", "image", "--random", "--rate", "32", "--max-rate", "50", "--warm-up", "0", "--yes")

    assert found.status == 0, found.err
    assert "max_requests_per_second=40" in found.out
    assert found.out.splitlines()[-1].startswith("target_utilization_percent is not known, because CloudWatch")


def test_a_plot_that_could_not_be_written_is_rejected_before_the_load(run: Run, world: World, tmp_path: Path) -> None:
    (tmp_path / "d.svg").mkdir()
    for file in (tmp_path / "missing" / "sweep.svg", tmp_path / "d.svg"):
        found = run("bench", "image", "--random", *SHORT, "--plot", file)

        assert (found.status, world.echo.asked) == (2, [])
    assert [each.name for each in tmp_path.iterdir()] == ["d.svg"]


def test_a_missing_extra_is_named(messages: Messages, run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = metadata.distribution

    def distribution(name: str) -> metadata.Distribution:
        if name in ("aiohttp", "matplotlib"):
            raise metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(metadata, "distribution", distribution)

    without = run("bench", "image", "--random")
    of_plots = run(
        "estimate", "--requests-per-second", "1", "--shape", "9-17=1", "--policy", "min=1", "--plot", "a.svg"
    )

    # As of `cdk-triton local`: the arguments are not wrong.
    assert (without.status, of_plots.status) == (1, 1)
    assert without.err.startswith("error: `cdk-triton bench` needs ")
    messages.record("cdk-triton bench", without.said)
    messages.record("cdk-triton estimate", of_plots.said)
