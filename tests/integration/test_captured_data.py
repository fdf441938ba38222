"""What a real server's binary answer looks like when it was captured, read as the user guide says."""

from __future__ import annotations

import io
import tarfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.docs.blocks import of_kind

from cdk_triton.client import TritonClient
from cdk_triton_local.aws import LocalAws

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "text" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "embedding" data_type: TYPE_FP32 dims: [ -1 ] }
"""
MODEL = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "text").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("embedding", 2 * value)]) for value in values]
"""


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in {"model/config.pbtxt": CONFIG, "model/1/model.py": MODEL}.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def deploy(aws: LocalAws) -> None:
    s3, sagemaker = aws.client("s3"), aws.client("sagemaker")
    for bucket in ("models", "captured"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="models", Key="model.tar.gz", Body=archive())
    environment = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "model", "SAGEMAKER_TRITON_LOG_VERBOSE": "false"}
    container = {"Image": "image", "ModelDataUrl": "s3://models/model.tar.gz", "Environment": environment}
    sagemaker.create_model(ModelName="model", PrimaryContainer=container)
    variant = {"VariantName": "AllTraffic", "ModelName": "model", "InstanceType": "ml.g5.xlarge"}
    sagemaker.create_endpoint_config(
        EndpointConfigName="config",
        ProductionVariants=[{**variant, "InitialInstanceCount": 1}],
        DataCaptureConfig={
            "InitialSamplingPercentage": 100,
            "DestinationS3Uri": "s3://captured/data-capture",
            "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
            "CaptureContentTypeHeader": {"JsonContentTypes": ["application/json"]},
        },
    )
    sagemaker.create_endpoint(EndpointName="search", EndpointConfigName="config")
    while (found := sagemaker.describe_endpoint(EndpointName="search"))["EndpointStatus"] == "Creating":
        threading.Event().wait(0.05)
    assert found["EndpointStatus"] == "InService", found.get("FailureReason")


def test_the_guide_reads_captured_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (shown,) = of_kind("integration/test_captured_data.py")
    with LocalAws(tmp_path / "aws") as aws:
        deploy(aws)
        for name, value in aws.environment().items():
            monkeypatch.setenv(name, value)
        TritonClient("search").infer({"text": np.array([[1, 2, 3]], dtype=np.float32)})
        s3: Any = aws.client("s3")
        (found,) = s3.list_objects_v2(Bucket="captured")["Contents"]
        lines = s3.get_object(Bucket="captured", Key=found["Key"])["Body"].read().decode().splitlines()

    exec(shown.text, {"lines": lines})

    assert capsys.readouterr().out == "[[2. 4. 6.]]\n"
