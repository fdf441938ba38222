"""What an invocation of a real-time endpoint can carry; `cdk_triton.sagemaker.limits` has SageMaker's other limits."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_INVOCATION_BYTES"]

MAX_INVOCATION_BYTES: Final = 6_291_456
"""Body of a request and of an answer, 6 MiB (BodyBlob of sagemaker-runtime 2017-05-13 in botocore 1.44.5)."""
