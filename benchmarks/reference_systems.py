"""The reference systems against their published form: rates, bytes, archives, cold loads, tokens per second.

Both forms of the text ensemble are target models of one local Triton, have the same weights, and ask ONNX Runtime with
one thread, which stands in for TensorRT in both. One client sends them the same 200 sentences of 8 to 16 tokens, in
turns, over a connection to the server's own port, and waits for each answer. The published form sends and gets JSON, as
its text shows; ours the binary form. The client's work to write and read a request counts. `_packed.py` makes the
archives.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from _figures import progress, report
from _packed import ASSETS, example_text, generating, prepare, published_text
from cdk_triton.client import payload
from cdk_triton_local.endpoints import Container, Endpoint, Invocation, Variant
from cdk_triton_local.triton import TritonHost

REQUESTS = 1000
TURN = 25
COLD_LOADS = 3
ROUNDS = 5
SENTENCES = 200
SHORTEST, LONGEST = 8, 16
WORDS = re.findall(
    r"\w+",
    "the a one some river house garden letter child teacher engine window morning city paper train friend market song "
    "opens closes finds sees carries writes reads leaves keeps moves near under behind before after old small green",
)
PROMPTS = [
    "What is the capital of France?",
    "Write one sentence about the sea.",
    "Name three colours.",
    "Who wrote Hamlet?",
    "Describe a forest in the morning.",
    "Explain what a bridge is.",
    "Tell me about the moon.",
    "Give an example of a kind word.",
]
MAX_TOKENS = 32

Array = npt.NDArray[Any]


class Bucket:
    """The one call of S3 that the host makes, answered from a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 boto3's names
        """Return an archive."""
        return {"Body": (self._directory / Path(Key).name).open("rb")}


@dataclass(frozen=True)
class Form:
    """One form of the text ensemble.

    Attributes:
        archive: its archive.
        network: the file of its network.
        binary: whether its client sends and gets the binary form.
    """

    archive: Path
    network: Path
    binary: bool

    @property
    def target(self) -> str:
        """The name of the target model."""
        return self.archive.name

    def request(self, texts: Sequence[str]) -> tuple[bytes, str]:
        """Body and content type."""
        if self.binary:
            return payload.encode({"INPUT0": [[text] for text in texts]}, {})
        tensor = {"name": "INPUT0", "shape": [len(texts), 1], "datatype": "BYTES", "data": [[text] for text in texts]}
        return json.dumps({"inputs": [tensor]}).encode(), "application/octet-stream"

    def embeddings(self, body: bytes, content_type: str) -> Array:
        """The embeddings of an answer."""
        if self.binary:
            return payload.decode(body, content_type)["finaloutput"]
        (output,) = json.loads(body)["outputs"]
        return np.array(output["data"], dtype=np.float32).reshape(output["shape"])


class Server:
    """One local Triton with the archives of a directory, and connections to its port.

    Args:
        host: it has the endpoint.
        port: the server's own port.
        directory: the host's.
    """

    def __init__(self, host: TritonHost, port: int, directory: Path) -> None:
        self.host = host
        self.port = port
        self._directory = directory

    def load(self, target: str, body: bytes, content_type: str) -> str:
        """Load a target model with its first request; return the path that its requests go to."""
        before = set(self._models())
        answer = self.host.invoke(
            Invocation("texts", {"content-type": content_type, "x-amzn-sagemaker-target-model": target}, body)
        )
        if answer.status != 200:
            raise RuntimeError(f"{target} answered {answer.status}: {bytes(answer.body).decode(errors='replace')}")
        (new,) = set(self._models()) - before
        return f"/models/{new}/invoke"

    def _models(self) -> list[str]:
        """The names under which the server has the target models."""
        return [path.name for path in self._directory.glob("endpoints/*/models/*")]


@contextmanager
def server(directory: Path, archives: Path) -> Iterator[Server]:
    """Start a server in `directory`."""
    log: list[str] = []
    host = TritonHost(lambda role: Bucket(archives), directory, log=log.append)
    try:
        container = Container("image", "MultiModel", "s3://bucket/fleet/", {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"})
        host.deploy(Endpoint("texts", "config", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
        port = next(match[1] for line in log if (match := re.search(r"127\.0\.0\.1:(\d+)", line)))
        yield Server(host, int(port), directory)
    finally:
        host.close()


class Caller:
    """One connection to a server's port, kept open."""

    def __init__(self, port: int, path: str, target: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._path, self._target = path, target

    def send(self, body: bytes, content_type: str) -> tuple[bytes, str, int]:
        """The answer's body and content type, and the bytes of request and answer with their headers."""
        headers = {"Content-Type": content_type, "X-Amzn-SageMaker-Target-Model": self._target}
        self._connection.request("POST", self._path, body, headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f"{self._target} answered {response.status}: {answer.decode(errors='replace')}")
        sent = f"POST {self._path} HTTP/1.1\r\nHost: 127.0.0.1:{self._connection.port}\r\n"
        sent += f"Accept-Encoding: identity\r\nContent-Length: {len(body)}\r\n"
        sent += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
        got = "HTTP/1.1 200 OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in response.getheaders()) + "\r\n"
        return answer, str(response.headers["Content-Type"]), len(sent) + len(body) + len(got) + len(answer)


def sentences() -> list[str]:
    """Sentences whose numbers of tokens are drawn evenly from `SHORTEST` to `LONGEST`."""
    tokenizer = Tokenizer.from_file(str(ASSETS / "sentence_embedding/tokenizer/1/tokenizer.json"))
    tokenizer.no_padding()
    random = np.random.default_rng(7)
    # Each word is one token; two more begin and end the text.
    texts = [" ".join(random.choice(WORDS, int(random.integers(SHORTEST, LONGEST + 1)) - 2)) for _ in range(SENTENCES)]
    counts = {len(encoded.ids) for encoded in tokenizer.encode_batch(texts)}
    assert counts == set(range(SHORTEST, LONGEST + 1)), counts
    return texts


def measure_text(directory: Path, published: Form, ours: Form) -> None:
    """Measure both forms on one server."""
    texts = sentences()
    with server(directory / "host", directory) as running:
        callers = {}
        for form in (published, ours):
            progress(f"reference_systems: loading {form.target} ...")
            path = running.load(form.target, *form.request(texts[:1]))
            callers[form.target] = Caller(running.port, path, form.target)

        def ask(form: Form, batch: Sequence[str]) -> tuple[float, Array, int]:
            start = time.perf_counter()
            answer, content_type, wire = callers[form.target].send(*form.request(batch))
            found = form.embeddings(answer, content_type)
            return time.perf_counter() - start, found, wire

        _, ours_found, ours_wire = ask(ours, texts[:16])
        _, published_found, published_wire = ask(published, texts[:16])
        cosines = (ours_found * published_found).sum(axis=1)
        if cosines.min() < 0.999:
            raise RuntimeError(f"the forms give other embeddings: the smallest cosine is {cosines.min()}")
        report("reference_systems.bytes", ours_wire / published_wire, "of the published JSON", at_most=0.22)
        for size in (1, 16):
            progress(f"reference_systems: {REQUESTS} requests of {size} in each form ...")
            times: dict[str, list[float]] = {published.target: [], ours.target: []}
            for turn in range(REQUESTS // TURN):
                for form in (published, ours):
                    for number in range(turn * TURN, (turn + 1) * TURN):
                        batch = [texts[(number * size + each) % SENTENCES] for each in range(size)]
                        times[form.target].append(ask(form, batch)[0])
            tell(size, times[published.target], times[ours.target])


def tell(size: int, published: Sequence[float], ours: Sequence[float]) -> None:
    """Report rate and p99 of a batch size."""
    ninety_nine = [statistics.quantiles(times, n=100)[98] for times in (published, ours)]
    rates = [len(times) / sum(times) for times in (published, ours)]
    progress(
        f"reference_systems: batch {size}: {rates[0]:.1f} and {rates[1]:.1f} requests per second, p99 "
        f"{ninety_nine[0] * 1000:.1f} and {ninety_nine[1] * 1000:.1f} ms (published and ours)"
    )
    report(f"reference_systems.rate_{size}", rates[1] / rates[0], "times the published form", at_least=4)
    report(f"reference_systems.p99_{size}", ninety_nine[1] / ninety_nine[0], "of the published form", at_most=1 / 3)


def measure_archives(published: Form, ours: Form) -> None:
    """Compare the archives, as a whole and without the network, which both have."""
    sizes = [form.archive.stat().st_size for form in (published, ours)]
    rest = [size - form.network.stat().st_size for size, form in zip(sizes, (published, ours), strict=True)]
    progress(f"reference_systems: archives of {sizes[0] / 1e6:.0f} and {sizes[1] / 1e6:.0f} MB (published and ours)")
    report("reference_systems.archive", sizes[1] / sizes[0], "of the published form", at_most=1 / 5)
    report("reference_systems.archive_rest", rest[1] / rest[0], "of the published form", at_most=1 / 20)


def measure_cold_loads(directory: Path, published: Form, ours: Form) -> None:
    """Measure from the archive to the first answer: fetched, unpacked and loaded by a server that has no model."""
    times: dict[str, list[float]] = {published.target: [], ours.target: []}
    for number in range(COLD_LOADS):
        for form in (published, ours):
            with server(directory / f"cold{number}-{form.target}", directory) as running:
                start = time.perf_counter()
                running.load(form.target, *form.request(["A man is eating food."]))
                times[form.target].append(time.perf_counter() - start)
    medians = [statistics.median(times[form.target]) for form in (published, ours)]
    progress(f"reference_systems: cold loads of {medians[0]:.1f} and {medians[1]:.1f} s (published and ours)")
    report("reference_systems.cold_load", medians[1] / medians[0], "of the published form", at_most=1 / 3)


@contextmanager
def on_one_processor() -> Iterator[None]:
    """Let this process and what it starts have one processor."""
    everything = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everything)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, everything)


def measure_generation(directory: Path, archive: Path) -> None:
    """Measure the generating model, on one processor: eight requests at once, and one by one."""
    with on_one_processor(), server(directory / "generating-host", directory) as running:
        limit = np.array([[MAX_TOKENS]], dtype=np.int32)
        requests = [payload.encode({"prompt": [[each]], "max_tokens": limit}, {}) for each in PROMPTS]
        path = running.load(archive.name, *requests[0])
        callers = [Caller(running.port, path, archive.name) for _ in PROMPTS]

        def ask(caller: Caller, request: tuple[bytes, str]) -> int:
            answer, content_type, _ = caller.send(*request)
            return int(payload.decode(answer, content_type)["tokens"].sum())

        def rate(tokens: Callable[[], Sequence[int]]) -> float:
            start = time.perf_counter()
            return sum(tokens()) / (time.perf_counter() - start)

        with ThreadPoolExecutor(len(PROMPTS)) as pool:
            alone, together = [], []
            for _ in range(ROUNDS):
                alone.append(rate(lambda: [ask(callers[0], request) for request in requests]))
                together.append(rate(lambda: list(pool.map(ask, callers, requests))))
    medians = [statistics.median(alone), statistics.median(together)]
    progress(f"reference_systems: {medians[0]:.0f} tokens per second one by one, {medians[1]:.0f} at once")
    report("reference_systems.tokens", medians[1] / medians[0], "times one by one", at_least=2)


def main() -> None:
    """Measure and report."""
    prepare()
    with tempfile.TemporaryDirectory(prefix="cdk-triton-") as name:
        directory = Path(name)
        published = Form(*published_text(directory), binary=False)
        ours = Form(*example_text(directory), binary=True)
        measure_archives(published, ours)
        measure_generation(directory, generating(directory))
        measure_cold_loads(directory, published, ours)
        measure_text(directory, published, ours)


if __name__ == "__main__":
    main()
