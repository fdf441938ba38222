"""A local AWS with endpoints that generate: a decoupled model on real tritonservers, one for each inference type."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdk_triton_local.aws import LocalAws

__all__ = ["StreamingAccount", "streaming_account"]

_IMAGE = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:{release}-py3"
_ROLE = "arn:aws:iam::123456789012:role/role"
_BUCKET = "streams"
_QUIET = {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"}

_CONFIG = """
backend: "python"
max_batch_size: 0
input [
  { name: "PROMPT" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "COUNT" data_type: TYPE_INT32 dims: [ 1 ] optional: true },
  { name: "GATE" data_type: TYPE_STRING dims: [ 1 ] optional: true },
  { name: "FAIL_AFTER" data_type: TYPE_INT32 dims: [ 1 ] optional: true }
]
output [
  { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "SCORES" data_type: TYPE_FP32 dims: [ -1 ] }
]
DECOUPLED
"""
_DECOUPLED = "model_transaction_policy { decoupled: true }"

# One answer to a request at a time. Before the answer after its first one, it waits until the file GATE is there.
_GENERATOR = """
import os, threading, time
import numpy as np
import triton_python_backend_utils as pb


def value(request, name, default):
    tensor = pb.get_input_tensor_by_name(request, name)
    return default if tensor is None else tensor.as_numpy().ravel()[0]


def answer(text, number):
    scores = np.arange(number + 1, dtype=np.float32)
    return pb.InferenceResponse([pb.Tensor("TEXT", np.array([text.encode()], object)), pb.Tensor("SCORES", scores)])


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.generate, args=(request,), daemon=True).start()

    def generate(self, request):
        sender = request.get_response_sender()
        prompt, count = value(request, "PROMPT", b"").decode(), int(value(request, "COUNT", 3))
        gate, fails = value(request, "GATE", b"").decode(), int(value(request, "FAIL_AFTER", -1))
        for number in range(count):
            while number and gate and not os.path.exists(gate):
                if request.is_cancelled():
                    open(gate + ".cancelled", "w").close()
                    sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                    return
                time.sleep(0.005)
            if number == fails:
                sender.send(pb.InferenceResponse(error=pb.TritonError("out of words")))
                break
            if prompt == "die" and number == 1:
                os.kill(os.getppid(), 9)
            sender.send(answer(f"{prompt} {number}", number))
        sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

_ONE_ANSWER = (
    _GENERATOR.partition("class ")[0]
    + """class TritonPythonModel:
    def execute(self, requests):
        return [answer(value(each, "PROMPT", b"").decode(), int(value(each, "COUNT", 0))) for each in requests]
"""
)


@dataclass
class StreamingAccount:
    """The account, and short words for its endpoints. Each is created when a test first asks for it."""

    aws: LocalAws
    directory: Path

    def __post_init__(self) -> None:
        self._made = set[str]()
        self.sagemaker, self.s3 = self.aws.client("sagemaker"), self.aws.client("s3")
        self.runtime = self.aws.client("sagemaker-runtime")
        self.s3.create_bucket(Bucket=_BUCKET)
        self.archive("several", _CONFIG.replace("DECOUPLED", _DECOUPLED), _GENERATOR)
        self.archive("one", _CONFIG.replace("DECOUPLED", ""), _ONE_ANSWER)

    def archive(self, name: str, config: str, program: str, directory: Path | None = None) -> None:
        """Store the archive of a model for `endpoint`, and write the model into a directory if there is one."""
        files = {"generator/config.pbtxt": config, "generator/1/model.py": program}
        self.s3.put_object(Bucket=_BUCKET, Key=f"{name}.tar.gz", Body=_archive(files))
        for path, text in files.items():
            if directory is None:
                return
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def repository(self) -> Path:
        """The directory of the model with several answers."""
        directory = self.directory / "repository"
        self.archive("several", _CONFIG.replace("DECOUPLED", _DECOUPLED), _GENERATOR, directory)
        return directory

    def endpoint(
        self, inference_type: str = "generate_stream", *, model: str = "several", release: str = "25.09"
    ) -> str:
        """The name of an endpoint with a model of `several` answers or `one`."""
        name = f"{model}-{inference_type}-{release}".replace("_", "-").replace(".", "-")
        if name not in self._made:
            self._create_model(name, model, inference_type, release)
            variant = {"VariantName": "AllTraffic", "ModelName": name, "InstanceType": "ml.g5.2xlarge"}
            self._create_endpoint(name, {**variant, "InitialInstanceCount": 1})
        return name

    def fleet(self) -> str:
        """The name of a multi-model endpoint."""
        if "fleet" not in self._made:
            container = {"Image": "image", "Mode": "MultiModel", "ModelDataUrl": f"s3://{_BUCKET}/"}
            self.sagemaker.create_model(ModelName="fleet", ExecutionRoleArn=_ROLE, PrimaryContainer=container)
            variant = {"VariantName": "AllTraffic", "ModelName": "fleet", "InstanceType": "ml.g5.2xlarge"}
            self._create_endpoint("fleet", {**variant, "InitialInstanceCount": 1})
        return "fleet"

    def component(self) -> tuple[str, str]:
        """The names of an endpoint and of its component, which streams."""
        if "shared" not in self._made:
            variant = {"VariantName": "AllTraffic", "InstanceType": "ml.g5.2xlarge", "InitialInstanceCount": 1}
            self._create_endpoint("shared", variant, ExecutionRoleArn=_ROLE)
            self._create_model("words", "several", "generate_stream", "25.09")
            needs = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
            self.sagemaker.create_inference_component(
                InferenceComponentName="words",
                EndpointName="shared",
                VariantName="AllTraffic",
                Specification={"ModelName": "words", "ComputeResourceRequirements": needs},
                RuntimeConfig={"CopyCount": 1},
            )
            self._await(
                lambda: self.sagemaker.describe_inference_component(InferenceComponentName="words")[
                    "InferenceComponentStatus"
                ]
            )
        return "shared", "words"

    def gate(self, name: str) -> Path:
        """A file that a test creates to let the model go on after its first answer."""
        return self.directory / name

    def _create_model(self, name: str, model: str, inference_type: str, release: str) -> None:
        container = {
            "Image": _IMAGE.format(release=release),
            "ModelDataUrl": f"s3://{_BUCKET}/{model}.tar.gz",
            "Environment": {**_QUIET, "SAGEMAKER_TRITON_INFERENCE_TYPE": inference_type},
        }
        self.sagemaker.create_model(ModelName=name, ExecutionRoleArn=_ROLE, PrimaryContainer=container)

    def _create_endpoint(self, name: str, variant: dict[str, Any], **more: Any) -> None:
        self.sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant], **more)
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
        self._await(lambda: self.sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"])
        self._made.add(name)

    @staticmethod
    def _await(status: Any) -> None:
        while (found := status()) == "Creating":
            threading.Event().wait(0.02)
        assert found == "InService"


@contextmanager
def streaming_account(directory: Path) -> Iterator[StreamingAccount]:
    """An account whose servers end with the block."""
    with LocalAws(directory / "aws") as aws:
        yield StreamingAccount(aws, directory)


def _archive(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()
