"""How much later an answer comes through the local AWS than straight from tritonserver's SageMaker port.

One multi-model endpoint with a model that returns its input. The same request goes, in turns and over one keep-alive
connection each, to the front server (`POST /endpoints/<name>/invocations`) and to tritonserver (`POST
/models/<hash>/invoke`), so that a busy machine slows both.
"""

from __future__ import annotations

import http.client
import io
import json
import re
import socket
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from _figures import progress, report
from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Container, Endpoint, Variant
from cdk_triton_local.triton import TritonHost

ROUNDS = 2000
WARM_UP = 200
ALLOWED_MILLISECONDS = 0.6

TARGET = {"Content-Type": "application/json", "X-Amzn-SageMaker-Target-Model": "identity.tar.gz"}
REQUEST = json.dumps({"inputs": [{"name": "IN", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}).encode()

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""

MODEL = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", value)]) for value in values]
"""


class OneArchive:
    """An S3 with the model, whatever is asked for."""

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 boto3's names
        """Return the archive."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name, text in (("identity/config.pbtxt", CONFIG), ("identity/1/model.py", MODEL)):
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        return {"Body": io.BytesIO(buffer.getvalue())}


def signed(aws: LocalAws, path: str) -> dict[str, str]:
    """The request's headers with a signature, without which the front server answers nobody."""
    variables = aws.environment()
    credentials = Credentials(variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"])
    request = AWSRequest("POST", f"{aws.url}{path}", TARGET, REQUEST)
    SigV4Auth(credentials, "sagemaker", aws.region).add_auth(request)
    return dict(request.headers)


def sender(port: int, path: str, headers: Mapping[str, str] = TARGET) -> Callable[[], float]:
    """A function that sends the request and returns how many milliseconds the answer took."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send() -> float:
        start = time.perf_counter()
        connection.request("POST", path, REQUEST, headers)
        response = connection.getresponse()
        body = response.read()
        took = time.perf_counter() - start
        if response.status != 200:
            raise RuntimeError(f"{path} answered {response.status}: {body.decode()}")
        return took * 1000

    return send


def measure(directory: Path) -> None:
    """Measure in `directory` and report."""
    log: list[str] = []
    host = TritonHost(lambda role: OneArchive(), directory / "host", log=log.append)
    with LocalAws(directory / "aws", host_factory=lambda aws: host) as aws:
        container = Container("image", "MultiModel", "s3://bucket/fleet/", {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"})
        host.deploy(Endpoint("fleet", "config", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))
        port = int(next(match[1] for line in log if (match := re.search(r"127\.0\.0\.1:(\d+)", line))))
        path = "/endpoints/fleet/invocations"
        through = sender(int(aws.url.rpartition(":")[2]), path, signed(aws, path))
        through()  # loads the model
        [model] = directory.glob("host/endpoints/*/models/*")
        direct = sender(port, f"/models/{model.name}/invoke")
        progress(f"gateway: {ROUNDS} requests each way ...")
        pairs = [(direct(), through()) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    medians = [statistics.median(times) for times in zip(*pairs, strict=True)]
    p99 = [statistics.quantiles(times, n=100)[98] for times in zip(*pairs, strict=True)]
    progress(f"gateway: p50 {medians[0]:.3f} ms direct, {medians[1]:.3f} ms through; p99 {p99[0]:.3f}, {p99[1]:.3f} ms")
    report("gateway.p50", medians[1] - medians[0], "ms more than direct", at_most=ALLOWED_MILLISECONDS)


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-") as directory:
        measure(Path(directory))


if __name__ == "__main__":
    main()
