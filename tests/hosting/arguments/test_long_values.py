"""A text that is much too long is not repeated whole: its beginning and its length are what a reader can use."""

from __future__ import annotations

from collections.abc import Callable

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3

from cdk_triton import DataCapture, S3File, ServingPlatform, TensorRTPlan, TritonArtifactStore
from cdk_triton.client import TritonClient
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.endpoints.parameters import check_parameters

LONG = "x" * 5000


def _stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Stack")


TOO_LONG: dict[str, Callable[[], object]] = {
    "a prefix of parameters": lambda: check_parameters(f"/{LONG}", ()),
    "a prefix of data capture": lambda: DataCapture(
        bucket=s3.Bucket(_stack(), "Bucket"), sampling_percentage=10, prefix=LONG
    ),
    "a prefix of exports": lambda: TritonArtifactStore(_stack(), "Store", export_prefix=LONG),
    "the name of an endpoint": lambda: TritonClient(LONG, runtime=object()),  # type: ignore[arg-type] # never called
    "a release": lambda: ServingPlatform(release=LONG, instance_type="ml.g5.xlarge"),
    "an instance type": lambda: ServingPlatform(release="25.09", instance_type=LONG),
    "an image": lambda: ServingPlatform(image=LONG, instance_type="ml.g5.xlarge"),
    "a bucket": lambda: S3File(bucket=LONG, key="a", sha256="0" * 64),
    "a key": lambda: S3File(bucket="bucket", key=LONG, sha256="0" * 64),
    "a path of a recipe": lambda: TensorRTPlan("net", onnx=f"/{LONG}"),
}


@pytest.mark.parametrize("case", TOO_LONG)
def test_a_long_value_is_shown_by_its_beginning_and_its_length(case: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        TOO_LONG[case]()
    assert len(str(caught.value)) < 1000
    assert "5,00" in str(caught.value)
