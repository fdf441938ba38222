"""The corrections of moto are still needed."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("correction", "without_it"),
    [
        (
            "a bucket policy's Deny is applied without its Condition",
            """
from moto.s3.models import FakeBucket
from moto.iam.access_control import PermissionResult
statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*",
             "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
bucket = FakeBucket("b", "123456789012", "us-east-1")
bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()
assert bucket.get_permission("s3:GetObject", "arn:aws:s3:::b/k") == PermissionResult.DENIED
""",
        ),
        (
            "newer instance types are unknown",
            """
from moto.sagemaker.exceptions import ValidationError
from moto.sagemaker.models import FakeEndpointConfig
try:
    FakeEndpointConfig.validate_instance_type(None, "ml.g6e.2xlarge")
except ValidationError:
    pass
else:
    raise AssertionError
""",
        ),
        (
            "an endpoint configuration forgets its shadow",
            """
import inspect
from moto.sagemaker.models import SageMakerModelBackend
assert "shadow_production_variants" not in inspect.signature(SageMakerModelBackend.create_endpoint_config).parameters
""",
        ),
        (
            "a variant without a model is a KeyError",
            """
from moto.sagemaker.models import sagemaker_backends
try:
    sagemaker_backends["123456789012"]["us-east-1"].validate_production_variants([{"VariantName": "v"}])
except KeyError:
    pass
else:
    raise AssertionError
""",
        ),
        (
            "there are no inference components",
            """
from moto.sagemaker.responses import SageMakerResponse
assert not hasattr(SageMakerResponse, "create_inference_component")
""",
        ),
        (
            "there is no UpdateEndpoint",
            """
from moto.sagemaker.responses import SageMakerResponse
assert not hasattr(SageMakerResponse, "update_endpoint")
""",
        ),
    ],
    ids=lambda value: value if "\n" not in value else "",
)
def test_moto_still_needs_our_corrections(correction: str, without_it: str) -> None:
    """When one of these fails, moto has been corrected, and `moto_state` or `server` can lose a few lines."""
    subprocess.run([sys.executable, "-c", f"import json\n{without_it}"], check=True)
