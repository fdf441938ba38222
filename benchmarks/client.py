"""How fast the client writes, reads and sends requests, against JSON, tritonclient, a copy and boto3.

The two sides of each figure take turns in one process, and a figure is the ratio of their medians, so that a busy
machine slows both. Calls go to a trivial HTTP server of a process of its own, on the loopback interface. It takes about
50 µs of a processor for a call, and the clients take 300 (asyncio) to 1,000 (boto3 in threads).
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import numpy as np
from botocore.config import Config
from tritonclient.http import InferenceServerClient, InferInput

from _figures import progress, report
from cdk_triton.client import AsyncTritonClient, TritonClient
from cdk_triton.client.direct_runtime import DirectRuntime
from cdk_triton.client.payload import decode, encode

ONE_CALL_ROUNDS = 2000
WARM_UP = 100
THREADS = 16
AT_ONCE = 64
CALLS = 1600
THROUGHPUT_ROUNDS = 5


def medians(rounds: int, functions: Mapping[str, Callable[[], Any]], *, warm_up: int = 3) -> dict[str, float]:
    """The median seconds of each function; they take turns, in one order and in the other."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(warm_up + rounds):
        for name, function in list(functions.items())[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            function()
            if number >= warm_up:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def answered(body: bytes, content_type: str) -> tuple[bytes, str]:
    """The answer that has the tensors of a request: only the name of the list is another one."""
    prefix, _, size = content_type.rpartition("=")
    head = body[: int(size)].replace(b'"inputs":', b'"outputs":', 1)
    return head + body[int(size) :], f"{prefix}={len(head)}"


def image_against_json() -> None:
    """One image, as the published notebooks send it, and as the client does."""
    image = np.random.default_rng(0).random((1, 3, 224, 224), dtype=np.float32)

    def as_json() -> str:
        tensor = {"name": "x", "shape": list(image.shape), "datatype": "FP32", "data": image.tolist()}
        return json.dumps({"inputs": [tensor]})

    text = as_json()
    binary = encode({"x": image}, {})
    answer = answered(*binary)

    def by_json() -> Any:
        as_json()
        return np.array(json.loads(text)["inputs"][0]["data"], np.float32)

    def by_client() -> Any:
        encode({"x": image}, {})
        return decode(*answer)["x"]

    assert np.array_equal(by_json(), by_client())
    found = {"json": medians(9, {"json": by_json})["json"]} | medians(400, {"client": by_client})
    progress(f"client: an image there and back: {found['json'] * 1e3:.1f} ms as JSON, {found['client'] * 1e6:.1f} µs")
    report("client.image.time", found["json"] / found["client"], "times as fast as JSON", at_least=4000)
    report("client.image.bytes", 100 * len(binary[0]) / len(text), "% of JSON", at_most=20)


def tensor_against_copy() -> None:
    """4 MB of FP32, against one copy of them."""
    tensor = np.random.default_rng(0).random(1_000_000, dtype=np.float32)
    answer = answered(*encode({"x": tensor}, {}))
    found = medians(
        300,
        {
            "copy": tensor.tobytes,
            "encode": lambda: encode({"x": tensor}, {}),
            "decode": lambda: decode(*answer)["x"],
        },
    )
    progress("client: 4 MB: " + ", ".join(f"{name} {seconds * 1e6:.1f} µs" for name, seconds in found.items()))
    report("client.encode", found["encode"] / found["copy"], "copies", at_most=1.2)
    report("client.decode", found["decode"] / found["copy"], "copies", at_most=0.1)


def strings_against_tritonclient() -> None:
    """1,000 short strings."""
    texts = np.array([[f"A man is eating food number {number}."] for number in range(1000)], dtype=object)

    def by_tritonclient() -> bytes:
        tensor = InferInput("x", list(texts.shape), "BYTES").set_data_from_numpy(texts)
        body: bytes = InferenceServerClient.generate_request_body([tensor])[0]
        return body

    def by_client() -> bytes:
        return encode({"x": texts}, {})[0]

    if by_client() != by_tritonclient():
        raise RuntimeError("the client and tritonclient write other bytes for the same strings")
    found = medians(300, {"tritonclient": by_tritonclient, "client": by_client})
    progress("client: strings: " + ", ".join(f"{name} {seconds * 1e6:.1f} µs" for name, seconds in found.items()))
    report("client.strings", found["tritonclient"] / found["client"], "times as fast as tritonclient", at_least=3)


@contextmanager
def endpoint() -> Iterator[None]:
    """A server of its own process, to which the environment leads."""
    command = [sys.executable, str(Path(__file__).with_name("_trivial_endpoint.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        variables = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{process.stdout.readline().strip()}",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "NO_PROXY": "127.0.0.1",
        }
        os.environ.update(variables)
        try:
            yield
        finally:
            process.stdin.close()


def one_call() -> None:
    """A request of 1 kB, one after the other."""
    inputs = {"x": np.zeros((1, 256), np.float32)}
    body, content_type = encode(inputs, {})
    runtime = boto3_runtime()
    client, direct = TritonClient("text"), TritonClient("text", DirectRuntime())

    def by_boto3() -> bytes:
        answer = runtime.invoke_endpoint(EndpointName="text", Body=body, ContentType=content_type)
        content: bytes = answer["Body"].read()
        return content

    progress(f"client: {ONE_CALL_ROUNDS} calls each way ...")
    functions = {"boto3": by_boto3, "client": lambda: client.infer(inputs), "direct": lambda: direct.infer(inputs)}
    found = medians(ONE_CALL_ROUNDS, functions, warm_up=WARM_UP)
    progress("client: p50: " + ", ".join(f"{name} {seconds * 1e3:.3f} ms" for name, seconds in found.items()))
    report("client.call", found["client"] / found["boto3"], "times the p50 of boto3", at_most=1.05)
    report("client.direct_call", found["direct"] / found["boto3"], "times the p50 of boto3", at_most=0.65)


def many_calls() -> None:
    """The same request, many at a time: the clients take turns, and the figure is the median of the rounds' ratios."""
    inputs = {"x": np.zeros((1, 256), np.float32)}
    body, content_type = encode(inputs, {})
    runtime = boto3_runtime()

    def call(_: int) -> None:
        runtime.invoke_endpoint(EndpointName="text", Body=body, ContentType=content_type)["Body"].read()

    async def some(client: AsyncTritonClient) -> None:
        for _ in range(CALLS // AT_ONCE):
            await client.infer(inputs)

    async def compare() -> list[tuple[float, float]]:
        rounds = []
        with ThreadPoolExecutor(THREADS) as pool:
            async with AsyncTritonClient("text", concurrency=AT_ONCE) as client:
                for _ in range(1 + THROUGHPUT_ROUNDS):
                    start = time.perf_counter()
                    list(pool.map(call, range(CALLS)))
                    middle = time.perf_counter()
                    await asyncio.gather(*(some(client) for _ in range(AT_ONCE)))
                    rounds.append((CALLS / (middle - start), CALLS / (time.perf_counter() - middle)))
        return rounds[1:]

    progress(f"client: {THROUGHPUT_ROUNDS} rounds of {CALLS} calls each way ...")
    rounds = asyncio.run(compare())
    speeds = [statistics.median(each) for each in zip(*rounds, strict=True)]
    progress(f"client: {speeds[0]:.0f} calls/s with boto3 in {THREADS} threads, {speeds[1]:.0f} with asyncio")
    ratio = statistics.median(asynchronous / threads for threads, asynchronous in rounds)
    report("client.async", ratio, f"times the calls/s of boto3 in {THREADS} threads", at_least=2.5)


def boto3_runtime() -> Any:
    """Boto3's client, which sends each request once, as the library's does."""
    return boto3.client(
        "sagemaker-runtime", config=Config(retries={"total_max_attempts": 1}, max_pool_connections=THREADS)
    )


def main() -> None:
    """Measure and report."""
    image_against_json()
    tensor_against_copy()
    strings_against_tritonclient()
    with endpoint():
        one_call()
        many_calls()


if __name__ == "__main__":
    main()
