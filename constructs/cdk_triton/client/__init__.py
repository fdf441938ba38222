"""Invokes a Triton endpoint: numpy arrays in, numpy arrays out.

::

    client = TritonClient("my-endpoint")
    answer = client.infer({"INPUT0": [["A man is eating food."]]}, target_model=text_model)
    answer["finaloutput"]        # float32 [1, 384]

Importing this package costs milliseconds: boto3, numpy, aiohttp and tritonclient (whose HTTP part imports gevent) are
loaded at the first use. It never imports `aws_cdk`.
"""

from __future__ import annotations

from cdk_triton.client.aio import AsyncTritonClient
from cdk_triton.client.async_result import AsyncResult
from cdk_triton.client.endpoint import TritonClient
from cdk_triton.client.payload import InferenceResult
from cdk_triton.client.streams import AsyncResultStream, ResultStream

__all__ = [
    "AsyncResult",
    "AsyncResultStream",
    "AsyncTritonClient",
    "InferenceResult",
    "ResultStream",
    "TritonClient",
]
