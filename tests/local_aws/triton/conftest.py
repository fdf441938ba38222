"""A host, model archives and an S3 for tests of the local Triton."""

import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_triton_local.endpoints import Container, Endpoint, Invocation, Response, Variant
from cdk_triton_local.triton import TritonHost

QUIET = {"SAGEMAKER_TRITON_LOG_VERBOSE": "false", "SAGEMAKER_TRITON_PING_MODE": "live"}

IDENTITY = """
import os
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            value = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            if (value == 666).any():
                os.kill(os.getppid(), 9)  # the server: this is how it dies with a request in flight
            responses.append(pb.InferenceResponse([pb.Tensor("OUT", value + ADD)]))
        return responses
"""

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
instance_group { kind: KIND_GPU count: 1 }
"""

ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
ensemble_scheduling { step { model_name: "step" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }
"""


class S3Double:
    """The calls that the host makes, answered from memory."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.reads: list[str] = []

    def get_object(self, *, Bucket: str, Key: str) -> Mapping[str, Any]:  # noqa: N803 boto3's names
        self.reads.append(Key)
        if Bucket != "bucket" or Key not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": io.BytesIO(self.objects[Key])}

    def list_objects_v2(self, *, Bucket: str, Prefix: str, ContinuationToken: str = "") -> Mapping[str, Any]:  # noqa: N803 boto3's names
        """Two keys per page."""
        keys = sorted(key for key in self.objects if key.startswith(Prefix) and key > ContinuationToken)
        found = {"Contents": [{"Key": key} for key in keys[:2]]} if keys else {}
        return {**found, "IsTruncated": len(keys) > 2, "NextContinuationToken": keys[1] if len(keys) > 1 else ""}


class Bench:
    """A host with its S3, and short words for what tests do with them."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        self.s3 = S3Double()
        self.lines: list[str] = []
        self.host = TritonHost(lambda role: self.s3, directory, log=self.lines.append, **settings)

    def single(self, name: str, data: bytes, *, environment: Mapping[str, str] | None = None) -> None:
        """Deploy a single-model endpoint."""
        self.s3.objects[f"{name}.tar.gz"] = data
        self._deploy(
            name, Container("image", "SingleModel", f"s3://bucket/{name}.tar.gz", QUIET | dict(environment or {}))
        )

    def uncompressed(self, name: str, files: Mapping[str, str]) -> None:
        """Deploy a single-model endpoint whose files are served as they are."""
        self.s3.objects.update({f"{name}/{path}": content.encode() for path, content in files.items()})
        self._deploy(name, Container("image", "SingleModel", f"s3://bucket/{name}/", QUIET, compressed=False))

    def fleet(
        self,
        name: str,
        *,
        model_cache: bool = True,
        prefix: str | None = None,
        environment: Mapping[str, str] | None = None,
        image: str = "image",
        **archives: bytes,
    ) -> None:
        """Deploy a multi-model endpoint, below a prefix of its name if none is given."""
        prefix = f"{name}/" if prefix is None else prefix
        self.s3.objects.update({f"{prefix}{key}.tar.gz": data for key, data in archives.items()})
        self._deploy(
            name,
            Container(image, "MultiModel", f"s3://bucket/{prefix}", QUIET | dict(environment or {}), model_cache),
        )

    def _deploy(self, name: str, container: Container) -> None:
        self.host.deploy(Endpoint(name, "config", (Variant("AllTraffic", 1.0, "ml.g5.xlarge", container),)))

    def invoke(self, endpoint: str, *values: float, model: str | None = None, **headers: str) -> Response:
        """Send values to a model with the tensors IN and OUT."""
        tensor = {"name": "IN", "shape": [1, len(values)], "datatype": "FP32", "data": values}
        return self.send(endpoint, json.dumps({"inputs": [tensor]}).encode(), model=model, **headers)

    def send(self, endpoint: str, body: bytes, *, model: str | None = None, **headers: str) -> Response:
        """Send a body."""
        sent = {"content-type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
        if model is not None:
            sent["x-amzn-sagemaker-target-model"] = f"{model}.tar.gz"
        return self.host.invoke(Invocation(endpoint, sent, body))

    def answer(self, endpoint: str, *values: float, model: str | None = None) -> list[float]:
        """The values of OUT."""
        response = self.invoke(endpoint, *values, model=model)
        assert response.status == 200, response.body
        result: list[float] = json.loads(response.body)["outputs"][0]["data"]
        return result


def pack(files: Mapping[str, str | bytes | None]) -> bytes:
    """A .tar.gz of these files; None is a directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else content or b""
            member.size = len(data)
            if content is None:
                member.type = tarfile.DIRTYPE
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture(scope="session")
def packed() -> Callable[[Mapping[str, str | bytes | None]], bytes]:
    return pack


@pytest.fixture(scope="session")
def adder() -> Callable[..., bytes]:
    """An archive whose model adds a number; as an ensemble around a model `step`, as one model, or flat at the top."""

    def build(number: float, shape: str = "model") -> bytes:
        python = IDENTITY.replace("ADD", repr(float(number)))
        if shape == "ensemble":
            step = {"step/config.pbtxt": CONFIG, "step/1/model.py": python}
            return pack({"ensemble/config.pbtxt": ENSEMBLE, "ensemble/1": None, **step})
        top = "" if shape == "flat" else "model/"
        return pack({f"{top}config.pbtxt": CONFIG, f"{top}1/model.py": python})

    return build


@pytest.fixture(scope="session")
def bench_in() -> Callable[..., Bench]:
    """Makes a bench below a directory; who calls it closes its host."""
    return lambda directory, **settings: Bench(directory / "a host", **settings)  # a blank, as users' directories have


@pytest.fixture
def new_bench(tmp_path: Path, bench_in: Callable[..., Bench]) -> Iterator[Callable[..., Bench]]:
    """Makes benches with directories of their own, and closes their hosts."""
    benches: list[Bench] = []

    def build(**settings: Any) -> Bench:
        benches.append(bench_in(tmp_path / str(len(benches)), **settings))
        return benches[-1]

    yield build
    for bench in benches:
        bench.host.close()
