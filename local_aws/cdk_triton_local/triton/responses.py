"""The error responses of sagemaker-runtime, shaped so that an unmodified SDK raises its own exceptions.

Codes, statuses and members are those of botocore's service model `sagemaker-runtime` 2017-05-13. The texts are those
that callers of the service have quoted in public issues (cited at each); if no quotation was found, the docstring
states that the text is ours.
"""

from __future__ import annotations

import json
from typing import Final

from cdk_triton.sagemaker import limits
from cdk_triton_local.endpoints import BrokenStreamError, Response
from cdk_triton_local.triton.connection import ContainerReply

__all__ = ["ErrorResponses", "RejectedInvocationError"]

CONTAINER: Final = "primary"
"""SageMaker's name for the container of a variant with one container."""


class RejectedInvocationError(Exception):
    """Carries the error response that a caller gets.

    Attributes:
        response: the response.
    """

    def __init__(self, response: Response) -> None:
        super().__init__(response.body.decode())
        self.response = response


class ErrorResponses:
    """The errors of one endpoint.

    Args:
        endpoint: its name.
        account: the account that the messages name.
        region: the region of the log group's ARN.
        log_options: the options, after a space, with which `cdk-triton local logs` finds the state directory.
    """

    def __init__(self, endpoint: str, *, account: str, region: str, log_options: str = "") -> None:
        self._endpoint = endpoint
        self._account = account
        self._log_options = log_options
        self._log_group = f"arn:aws:logs:{region}:{account}:log-group:/aws/sagemaker/Endpoints/{endpoint}"

    def no_endpoint(self) -> RejectedInvocationError:
        """There is no such endpoint (aws/amazon-sagemaker-examples#293)."""
        return _validation(f"Endpoint {self._endpoint} of account {self._account} not found.")

    def no_variant(self, name: str) -> RejectedInvocationError:
        """There is no such production variant; the text is ours."""
        return _validation(f"Variant {name} of endpoint {self._endpoint} of account {self._account} not found.")

    def component_missing(self) -> RejectedInvocationError:
        """The endpoint has no model of its own (aws-samples/amazon-kendra-langchain-extensions#64)."""
        return _validation(
            "Inference Component Name header is required for endpoints to which you plan to deploy inference "
            "components. Please include Inference Component Name header or consider using SageMaker models."
        )

    def component_unexpected(self) -> RejectedInvocationError:
        """The endpoint has a model of its own (quoted in the tests of BerriAI/litellm)."""
        return _validation(
            "Inference Component Name header is not allowed for endpoints to which you dont plan to deploy inference "
            "components. Please remove the Inference Component Name header and try again."
        )

    def no_component(self, name: str) -> RejectedInvocationError:
        """There is no such component on this endpoint; the text is ours."""
        return _validation(f"Inference Component {name} of endpoint {self._endpoint} not found.")

    def component_without_capacity(self) -> RejectedInvocationError:
        """The component has no copy ("Unlock cost savings with the new scale down to zero feature", AWS ML Blog)."""
        return _validation(
            "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress "
            "(if configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
        )

    def target_model_missing(self) -> RejectedInvocationError:
        """A request to a multi-model endpoint names no model (aws/sagemaker-tensorflow-serving-container#166)."""
        return _validation(
            f"Request to multi-model endpoint {self._endpoint} is missing a target model header.",
            code="TARGET_MODEL_HEADER_MISSING",
        )

    def target_model_unexpected(self) -> RejectedInvocationError:
        """A single-model endpoint has nothing to choose (aws/amazon-sagemaker-examples#1026, #1216)."""
        return _validation(
            f"Endpoint {self._endpoint} is not a multi-model endpoint and does not support target model header.",
            code="TARGET_MODEL_HEADER_NOT_SUPPORTED",
        )

    def target_model_invalid(self, name: str) -> RejectedInvocationError:
        """The target model is not a relative path of an object; the text is ours."""
        return _validation(
            f"Target model {name[:80]!r} is not valid: it has to be a relative path of printable characters."
        )

    def header_not_modelled(self, name: str) -> RejectedInvocationError:
        """The local AWS does not do what the header requests; the text is ours."""
        return _validation(f"The header {name} is not modelled by the local AWS; remove it.")

    def model_data_missing(self, bucket: str, key: str) -> RejectedInvocationError:
        """The target model's archive is not there, or S3 denies reading it.

        SageMaker's words about a single model (aws-solutions-library-samples/fraud-detection-using-machine-learning#9).
        """
        return _validation(
            f"Failed to download model data(bucket: {bucket}, key: {key}). Please ensure that there is an object "
            "located at the URL and that the role passed to CreateModel has permissions to download the object."
        )

    def request_too_large(self, size: int) -> RejectedInvocationError:
        """The request body exceeds BodyBlob's maximum.

        The service rejects it in front of the API, without an error type; an SDK then shows the status as the code.
        """
        text = f"Request body of {size} bytes is larger than {limits.MAX_INVOCATION_BYTES} bytes."
        return RejectedInvocationError(
            Response(413, {"Content-Type": "application/json"}, json.dumps({"message": text}).encode())
        )

    def response_too_large(self, size: int) -> RejectedInvocationError:
        """The response body exceeds BodyBlob's maximum; the text is ours."""
        return self._model(
            200,
            f"The response of {size} bytes from {CONTAINER} is larger than {limits.MAX_INVOCATION_BYTES} bytes.",
            "",
        )

    def container_error(self, reply: ContainerReply) -> RejectedInvocationError:
        """The container answered with an error (aws/amazon-sagemaker-examples#1809)."""
        side = "client" if reply.status < 500 else "server"
        text = f'Received {side} error ({reply.status}) from {CONTAINER} with message "{reply.text}".'
        return self._model(reply.status, text, reply.text)

    def container_gone(self) -> RejectedInvocationError:
        """The container died before it answered (aws/amazon-sagemaker-examples#2815)."""
        return self._no_answer(f"Amazon SageMaker could not get a response from the {self._endpoint} endpoint.")

    def container_timeout(self) -> RejectedInvocationError:
        """The container exceeded the time limit of an invocation (documentation of InvokeEndpoint: 60 seconds)."""
        return self._no_answer(f"Your invocation timed out while waiting for a response from container {CONTAINER}.")

    def stream_broken(self) -> BrokenStreamError:
        """The container died, or closed the connection, within its answer; the text is ours."""
        return BrokenStreamError(
            f"The connection to {CONTAINER} was closed before the end of the response. {self._hint}", "StreamBroken"
        )

    def stream_timeout(self) -> BrokenStreamError:
        """The container exceeded the time limit of a streamed answer (repost.aws, "Invoke streaming timeout error")."""
        return BrokenStreamError(
            f"Your model {CONTAINER} did not complete sending the inference response in the allotted time.",
            "ModelInvocationTimeExceeded",
        )

    def model_not_ready(self, name: str) -> RejectedInvocationError:
        """The target model is still being downloaded or loaded (shape ModelNotReadyException); the text is ours."""
        return _rejected(429, "ModelNotReadyException", f"Model {name} is not ready for inference yet; try again.")

    def model_data_unusable(self, reason: str) -> RejectedInvocationError:
        """The target model's archive cannot be unpacked; the text is ours, SageMaker's is not public."""
        return self._model(400, f"Failed to unpack the model data: {reason}.", reason)

    def internal(self, reason: str) -> RejectedInvocationError:
        """A fault of the local AWS itself."""
        return _rejected(500, "InternalFailure", reason)

    @property
    def _hint(self) -> str:
        return (
            f"See the log group {self._log_group} (here: `cdk-triton local logs --endpoint "
            f"{self._endpoint}{self._log_options}`) for more information."
        )

    def _no_answer(self, text: str) -> RejectedInvocationError:
        return self._model(0, f'Received server error (0) from {CONTAINER} with message "{text}"', text)

    def _model(self, status: int, text: str, original: str) -> RejectedInvocationError:
        code = "INTERNAL_FAILURE_FROM_MODEL" if status == 0 or status >= 500 else "CLIENT_ERROR_FROM_MODEL"
        return _rejected(
            424,
            "ModelError",
            f"{text} {self._hint}",
            ErrorCode=code,
            OriginalStatusCode=status,
            OriginalMessage=original,
            LogStreamArn=self._log_group,
        )


def _validation(text: str, *, code: str | None = None) -> RejectedInvocationError:
    return _rejected(400, "ValidationError", text, **({} if code is None else {"ErrorCode": code}))


def _rejected(status: int, error: str, text: str, **members: str | int) -> RejectedInvocationError:
    body = json.dumps({"Message": text, **members}).encode()
    return RejectedInvocationError(
        Response(status, {"Content-Type": "application/json", "x-amzn-ErrorType": error}, body)
    )
