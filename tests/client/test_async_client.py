"""The client for asyncio: the answers and errors of the other one, many at a time, and a loop that is never held."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from botocore.auth import SigV4Auth
from tests.client.conftest import identity
from tests.client.parameter_store import Ssm, until
from tests.client.test_async_result import S3
from tests.client.test_direct_runtime import ERRORS
from tests.client.test_for_repository import CONFIG, repository
from tests.client.test_infer_many import failing, rows, values
from tests.client.test_parameter_names import without
from tests.client.test_published_names import CATALOGUE, MOVED, Catalogues

from cdk_triton.client import AsyncTritonClient, InferenceResult, TritonClient
from cdk_triton.client.aio_runtime import AioRuntime
from cdk_triton.errors import (
    CdkTritonError,
    ConfigurationError,
    InvocationError,
    InvocationTimeoutError,
    ModelError,
    PayloadTooLargeError,
)

if TYPE_CHECKING:
    from golden_messages import Messages

X = {"x": np.arange(4, dtype=np.float32).reshape(1, 4)}

pytestmark = pytest.mark.usefixtures("environment")


def run(use: Callable[[AsyncTritonClient], Awaitable[Any]], client: AsyncTritonClient | None = None) -> Any:
    """Use a client on an event loop of its own."""

    async def main() -> Any:
        async with client or AsyncTritonClient("texts") as opened:
            return await use(opened)

    return asyncio.run(main())


def test_an_answer_is_that_of_the_other_client(endpoint: Any) -> None:
    options: Any = {"target_model": "a.tar.gz", "target_variant": "blue", "request_id": "r-1", "parameters": {"k": 1}}
    answer = run(lambda client: client.infer(X, outputs=["x"], **options))
    other = TritonClient("texts", endpoint.runtime()).infer(X, outputs=["x"], **options)

    np.testing.assert_array_equal(answer["x"], other["x"])
    assert (answer.variant, answer.request_id) == (other.variant, other.request_id) == ("AllTraffic", "r-1")
    ours, theirs = endpoint.requests
    assert ours[0] == theirs[0]
    assert ours[2] == theirs[2]
    names = [name for name in theirs[1] if name.startswith(("x-amzn", "content-"))]
    assert {name: ours[1][name] for name in names} == {name: theirs[1][name] for name in names}


def test_plain_http_reads_no_certificates(endpoint: Any, environment: pytest.MonkeyPatch) -> None:
    make = ssl.create_default_context

    def without_a_file(*, cafile: str | None = None) -> ssl.SSLContext:  # aiohttp makes one when it is imported
        assert cafile is None
        return make()

    environment.setattr(ssl, "create_default_context", without_a_file)
    assert values([run(lambda client: client.infer(rows(3)))]) == [[3]]


def test_sixty_four_requests_are_on_their_way_at_once(endpoint: Any) -> None:
    all_here = threading.Barrier(64)

    def handle(headers: Any, body: bytes) -> Any:
        all_here.wait(60)
        return identity(body, headers["content-type"])[1]

    endpoint.handle = handle

    async def use(client: AsyncTritonClient) -> Any:
        return await asyncio.gather(*(client.infer(rows(number)) for number in range(64)))

    assert values(run(use)) == [[number] for number in range(64)]


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_has_the_class_and_the_words_that_it_has_with_boto3(endpoint: Any, answer: Any, case: str) -> None:
    status, code, members = ERRORS[case]
    headers = {} if code is None else {"x-amzn-ErrorType": code}
    endpoint.answer = lambda: answer(json.dumps(members).encode(), "application/json", status, headers)

    with pytest.raises(InvocationError) as by_boto3:
        TritonClient("texts", endpoint.runtime()).infer(X)
    with pytest.raises(InvocationError) as caught:
        run(lambda client: client.infer(X))

    assert (type(caught.value), str(caught.value)) == (type(by_boto3.value), str(by_boto3.value))


def test_what_cannot_be_sent_is_rejected_before_anything_is_sent(endpoint: Any) -> None:
    for kind, inputs in (
        (ConfigurationError, {"x": 1.0}),
        (PayloadTooLargeError, {"x": np.zeros(7_000_000, np.uint8)}),
    ):
        with pytest.raises(kind):
            run(lambda client, inputs=inputs: client.infer(inputs))  # type: ignore[misc]
    assert endpoint.requests == []


def test_a_closed_port_is_named(environment: Any, closed_port: int) -> None:
    environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}")
    with pytest.raises(InvocationError, match=f"no connection: .*127.0.0.1:{closed_port}"):
        run(lambda client: client.infer(X))


def test_a_connection_that_breaks_is_an_invocation_error(endpoint: Any) -> None:
    endpoint.answer = lambda: None
    with pytest.raises(InvocationError, match="Connection was closed"):
        run(lambda client: client.infer(X))
    assert len(endpoint.requests) == 1


def test_a_slow_container_is_a_timeout_and_is_asked_once(environment: Any, endpoint: Any, never: Any) -> None:
    endpoint.answer = never
    opened = AioRuntime.open
    environment.setattr(AioRuntime, "open", lambda connections: opened(connections, read_timeout=0.2))
    with pytest.raises(InvocationTimeoutError, match="the model may have run"):
        run(lambda client: client.infer(X))
    assert endpoint.arrived() == 1


def test_no_credentials_are_an_error_with_a_fix(environment: Any, endpoint: Any) -> None:
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(InvocationError, match="configure AWS credentials"):
        run(lambda client: client.infer(X))
    assert endpoint.requests == []


def test_a_client_that_cannot_be_opened_has_a_reason(messages: Messages, environment: Any) -> None:
    async def nothing(_: AsyncTritonClient) -> None: ...

    with messages.raises(ConfigurationError):
        asyncio.run(AsyncTritonClient("texts").infer(X))
    with messages.raises(ConfigurationError):
        AsyncTritonClient("texts", concurrency=0)
    with environment.context() as patch:
        patch.setitem(sys.modules, "aiohttp", None)
        with messages.raises(ConfigurationError):
            run(nothing)
    environment.delenv("AWS_ENDPOINT_URL")
    environment.setenv("HTTPS_PROXY", "http://proxy:3128")
    with messages.raises(ConfigurationError):
        run(nothing)


# What must not hold up the event loop.


CREDENTIALS = """
import json, os, signal, sys, time
directory = sys.argv[1]
signal.alarm(60)
with open(os.path.join(directory, "runs"), "a") as runs:
    runs.write("x")
first = os.path.getsize(os.path.join(directory, "runs")) == 1
if not first:
    open(os.path.join(directory, "started"), "w").close()
    open(os.path.join(directory, "go")).close()
expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + (60 if first else 7200)))
print(json.dumps({"Version": 1, "AccessKeyId": "first" if first else "second", "SecretAccessKey": "s",
                  "SessionToken": "t", "Expiration": expires}))
"""


@pytest.mark.slow
def test_a_slow_source_of_credentials_does_not_hold_up_the_loop(
    environment: Any, endpoint: Any, tmp_path: Path
) -> None:
    # Credentials of a minute are to be renewed at once. The second run of the program waits until the test lets it go.
    for pipe in ("started", "go"):
        os.mkfifo(tmp_path / pipe)
    (tmp_path / "source.py").write_text(CREDENTIALS)
    command = f"{sys.executable} {tmp_path / 'source.py'} {tmp_path}"
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {command}\n")
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")
    environment.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    async def use(client: AsyncTritonClient) -> None:
        calls = [asyncio.create_task(client.infer(X)) for _ in range(8)]
        await asyncio.to_thread((tmp_path / "started").read_bytes)  # the program is running, and so is this loop
        assert not any(call.done() for call in calls)
        calls[0].cancel()  # which does not cancel what the others wait for
        await asyncio.to_thread((tmp_path / "go").write_bytes, b"")
        assert (
            sum(isinstance(found, InferenceResult) for found in await asyncio.gather(*calls, return_exceptions=True))
            == 7
        )

    run(use)

    assert (tmp_path / "runs").read_text() == "xx"
    assert all("Credential=second/" in headers["authorization"] for _, headers, _ in endpoint.requests)
    assert {headers["x-amz-security-token"] for _, headers, _ in endpoint.requests} == {"t"}


@pytest.mark.parametrize(("size", "on_loop"), [(200_000, True), (300_000, False)])
def test_a_large_body_is_hashed_outside_the_loop(environment: Any, size: int, on_loop: bool) -> None:
    threads: list[int] = []
    add_auth = SigV4Auth.add_auth

    def signed(*call: Any) -> None:
        threads.append(threading.get_ident())
        add_auth(*call)

    environment.setattr(SigV4Auth, "add_auth", signed)
    run(lambda client: client.infer({"x": np.zeros(size, np.uint8)}))
    assert [thread == threading.get_ident() for thread in threads] == [on_loop]


def test_a_body_of_the_limit_is_sent(endpoint: Any) -> None:
    # aiohttp warns of large bytes, which this suite makes an error.
    answer = run(lambda client: client.infer({"x": np.zeros(6_000_000, np.uint8)}))
    assert answer["x"].size == 6_000_000


# Cancellation.


@pytest.mark.parametrize("when", ["before the answer", "within the answer"])
def test_a_cancelled_request_leaves_no_connection_behind(environment: Any, when: str) -> None:
    async def main() -> None:
        arrived, closed = asyncio.Event(), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            if when == "within the answer":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
            arrived.set()
            while await reader.read(65_536):
                pass
            closed.set()  # the client has closed the connection
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with AsyncTritonClient("texts", concurrency=1) as client:
            for _ in range(2):  # the second one gets the only place
                arrived.clear()
                closed.clear()
                call = asyncio.create_task(client.infer(X))
                await asyncio.wait_for(arrived.wait(), 30)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                await asyncio.wait_for(closed.wait(), 30)
        server.close()
        await server.wait_closed()

    asyncio.run(main())


# The other methods.


def test_many_requests_are_sent_together_and_a_bad_one_fails_alone(endpoint: Any, answer: Any) -> None:
    endpoint.handle = failing(answer, lambda array: 13 in array)
    requests: list[Any] = [*(rows(number) for number in range(32)), {"x": 1.0}]

    answers = run(lambda client: client.infer_many(requests, max_batch_size=16))

    failed = {number: type(each) for number, each in enumerate(answers) if isinstance(each, CdkTritonError)}
    assert failed == {13: ModelError, 32: ConfigurationError}
    assert values([each for each in answers if isinstance(each, InferenceResult)]) == [
        [n] for n in range(32) if n != 13
    ]


def test_ensembles_are_called_by_name_and_a_target_that_is_gone_is_looked_up(
    environment: Any, endpoint: Any, answer: Any
) -> None:
    environment.setattr("cdk_triton.client.names._JUST_NOW_SECONDS", 0.0)
    ssm = Ssm({"endpoint-name": "fleet", "target-models/text": "text-1.tar.gz"})
    endpoint.handle = without(answer, {"text-1.tar.gz"})

    async def use(client: AsyncTritonClient) -> str:
        with pytest.raises(InvocationError, match="Failed to download"):
            await client.infer(X, ensemble="text")
        ssm.values["target-models/text"] = "text-2.tar.gz"
        await asyncio.gather(*(client.infer(X, ensemble="text") for _ in range(4)))
        return client.endpoint_name

    assert run(use, AsyncTritonClient.from_parameters("/search", ssm=ssm)) == "fleet"
    assert endpoint.handle.asked.count("text-2.tar.gz") == 4


def test_published_ensembles_follow_the_catalogue_to_a_new_platform(environment: Any, endpoint: Any) -> None:
    ssm = Ssm({"endpoint-name": "fleet", "catalogue": CATALOGUE})
    s3 = Catalogues(**{"25.09-a10g": "tenant-1.tar.gz", "26.05-l4": "tenant-2.tar.gz"})

    async def use(client: AsyncTritonClient) -> None:
        await client.infer(X, ensemble="tenant")
        ssm.values["catalogue"] = MOVED
        for _ in range(3):  # each use begins a refresh, unless one that began before the change still runs
            until(lambda: True)
            await client.infer(X, ensemble="tenant")

    run(use, AsyncTritonClient.from_parameters("/search", ssm=ssm, s3=s3, max_age=0))
    asked = [headers["x-amzn-sagemaker-target-model"] for _, headers, _ in endpoint.requests]
    assert (asked[0], asked[-1]) == ("tenant-1.tar.gz", "tenant-2.tar.gz")


def test_parameters_that_are_not_there_are_an_error() -> None:
    client = AsyncTritonClient.from_parameters("/search", ssm=Ssm({}))
    with pytest.raises(ConfigurationError, match="/search/endpoint-name"):
        run(lambda opened: opened.infer(X), client)


def test_a_repository_checks_requests(endpoint: Any, tmp_path: Path) -> None:
    models = repository(tmp_path, model=CONFIG)

    async def use(client: AsyncTritonClient) -> Any:
        checked = client.for_repository(models)
        with pytest.raises(ConfigurationError, match="did you mean 'text'"):
            await checked.infer({"txt": "one"})
        return await checked.infer({"text": "one"}), await checked.infer_many([{"text": "one"}, {"text": "two"}])

    one, many = run(use)
    assert one["text"].tolist() == [[b"one"]]
    assert [each["text"].tolist() for each in many] == [[[b"one"]], [[b"two"]]]
    assert len(endpoint.requests) == 2


def test_requests_to_an_asynchronous_endpoint_are_submitted(endpoint: Any, answer: Any) -> None:
    headers = {"X-Amzn-SageMaker-OutputLocation": "s3://b/out/one"}
    seen, s3 = [], S3()

    def handle(sent: Any, body: bytes) -> Any:
        seen.append((sent, body))
        return answer(json.dumps({"InferenceId": "one"}).encode(), "application/json", 202, headers)

    endpoint.handle = handle

    async def use(client: AsyncTritonClient) -> Any:
        await client.submit({"x": np.zeros(40_000, np.float32)})
        return await client.submit(X, queue_seconds=60)

    found = run(use, AsyncTritonClient("queued", input_location="s3://b/in", s3=s3))

    assert (found.inference_id, found.output_location) == ("one", "s3://b/out/one")
    (large, no_body), (small, body) = seen
    assert large["x-amzn-sagemaker-inputlocation"] in s3.objects
    assert no_body == b""
    assert small["x-amzn-sagemaker-requestttlseconds"] == "60"
    assert body
