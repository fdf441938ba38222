"""The requests of the demo, as a service without cdk-triton makes them: boto3 and tritonclient's payload functions.

`cdk_triton.client.TritonClient` does the same in one line; here every byte is in view.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="


@dataclass(frozen=True)
class Call:
    """One way to ask one ensemble: what goes over the wire, and how to read the answer."""

    target_model: str
    content_type: str
    body: bytes
    output: str

    def send(self, runtime: Any, endpoint: str) -> npt.NDArray[Any]:
        """Invoke the endpoint once and return the output as an array."""
        answer = runtime.invoke_endpoint(
            EndpointName=endpoint, TargetModel=self.target_model, ContentType=self.content_type, Body=self.body
        )
        content_type, body = answer["ContentType"], answer["Body"].read()
        if content_type.startswith(BINARY):
            result = InferenceServerClient.parse_response_body(body, header_length=int(content_type[len(BINARY) :]))
            return np.asarray(result.as_numpy(self.output))
        (tensor,) = (tensor for tensor in json.loads(body)["outputs"] if tensor["name"] == self.output)
        return np.asarray(tensor["data"]).reshape(tensor["shape"])


def text_calls(target_model: str, sentences: tuple[str, ...]) -> dict[str, Call]:
    """All sentences in one request, as binary and as JSON."""
    encoded = np.array([[sentence.encode()] for sentence in sentences], dtype=np.object_)
    return {
        "binary": binary_call(target_model, "INPUT0", encoded, "BYTES", "finaloutput"),
        "JSON": json_call(target_model, "INPUT0", [[sentence] for sentence in sentences], "BYTES", "finaloutput"),
    }


def image_calls(target_model: str, jpeg: bytes) -> dict[str, Call]:
    """One JPEG file, as binary and as JSON: a list of numbers is four times as large."""
    encoded = np.frombuffer(jpeg, dtype=np.uint8)[np.newaxis]
    return {
        "binary": binary_call(target_model, "INPUT", encoded, "UINT8", "OUTPUT"),
        "JSON": json_call(target_model, "INPUT", encoded.tolist(), "UINT8", "OUTPUT"),
    }


def binary_call(target_model: str, name: str, value: npt.NDArray[Any], datatype: str, output: str) -> Call:
    """A request in SageMaker's binary form of the KServe protocol."""
    tensor = InferInput(name, list(value.shape), datatype)
    tensor.set_data_from_numpy(value, binary_data=True)
    requested = [InferRequestedOutput(output, binary_data=True)]
    body, header_size = InferenceServerClient.generate_request_body([tensor], outputs=requested)
    return Call(target_model, f"{BINARY}{header_size}", body, output)


def json_call(target_model: str, name: str, data: list[list[Any]], datatype: str, output: str) -> Call:
    """The same request as KServe JSON, which SageMaker takes as an octet stream."""
    tensor = {"name": name, "shape": [len(data), len(data[0])], "datatype": datatype, "data": data}
    body = json.dumps({"inputs": [tensor], "outputs": [{"name": output}]}).encode()
    return Call(target_model, "application/octet-stream", body, output)
