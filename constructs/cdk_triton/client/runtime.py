"""The boundary to boto3: the client in use, and the one place where botocore's errors become this library's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from cdk_triton._load_failures import rejected_model
from cdk_triton.errors import (
    ConfigurationError,
    InvocationError,
    InvocationTimeoutError,
    ModelError,
    ModelNotReadyError,
    NoCapacityError,
)
from cdk_triton.sagemaker.limits import MAX_INVOCATION_SECONDS

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

__all__ = [
    "CONNECT_TIMEOUT_SECONDS",
    "READ_TIMEOUT_SECONDS",
    "SERVICE_ERRORS",
    "AsyncRuntime",
    "SageMakerRuntime",
    "StreamingRuntime",
    "default_client",
    "default_runtime",
    "foreign_errors_translated",
    "model_error",
    "server_words",
    "takes_body",
]

READ_TIMEOUT_SECONDS = MAX_INVOCATION_SECONDS + 10
"""As the API reference of InvokeEndpoint advises for containers that use the whole time."""

CONNECT_TIMEOUT_SECONDS = 10

_CREDENTIALS = "check the AWS credentials and the clock of this machine"
_LOCAL_HINT = re.compile(r"\((here: `cdk-triton local logs[^`]*`)\)")
_AGAIN = "call again, and look at the SageMaker service health if it stays so"

_NO_CAPACITY = "has no capacity to process this request"
"""In the ValidationError of an inference component without a copy ("Unlock cost savings with the new scale down to zero
feature in SageMaker Inference", AWS Machine Learning Blog)."""

_TARGETS = "such as text-0123456789.tar.gz; the outputs of the stack contain these names"
_OF_VALIDATION = {
    "Failed to download model data": f"set target_model= to the name of an archive that exists, {_TARGETS}",
    "is missing a target model header": f"set target_model= to the name of an archive, {_TARGETS}",
    "does not support target model header": "call the endpoint without target_model=, because it serves one model",
    "Inference Component Name header is required": "set inference_component= to the name of a component",
    "remove the Inference Component Name header": (
        "call the endpoint without inference_component=, because it has no components"
    ),
}
"""What to do about a ValidationError that has these words (see `local.triton.responses` for their sources)."""

SERVICE_ERRORS: Mapping[str, tuple[type[InvocationError], str]] = {
    "InternalDependencyException": (InvocationError, _AGAIN),
    "InternalFailure": (InvocationError, _AGAIN),
    "InternalStreamFailure": (InvocationError, _AGAIN),
    "ModelError": (ModelError, "read more in the log of the endpoint"),
    "ModelStreamError": (ModelError, "read more in the log of the endpoint"),
    "ModelNotReadyException": (ModelNotReadyError, "wait for the model to be loaded and call again"),
    "ServiceUnavailable": (InvocationError, "the endpoint is busy or out of capacity; call again more slowly"),
    "ValidationError": (
        InvocationError,
        "check the endpoint's name and region, and the target model, variant or component; an asynchronous endpoint "
        "takes submit(), and an endpoint with components needs inference_component=",
    ),
    # The errors that every AWS service can answer with (API reference, "Common Error Types").
    "AccessDeniedException": (
        InvocationError,
        "allow the caller sagemaker:InvokeEndpoint on this endpoint and, if it has any, on the component",
    ),
    "ExpiredTokenException": (InvocationError, _CREDENTIALS),
    "InvalidSignatureException": (InvocationError, _CREDENTIALS),
    "ThrottlingException": (InvocationError, "call more slowly, or have the account's quota raised"),
    "UnrecognizedClientException": (InvocationError, _CREDENTIALS),
}
"""Exception class and fix by SageMaker's error code; an unlisted code becomes a plain `InvocationError`."""


_GENERATES = (
    "call generate() or stream() instead of infer() if the container has the inference_type 'generate' or "
    "'generate_stream'"
)
_OWN_NAMES = (
    "give the inputs and outputs that config.pbtxt has, by their names, whose case counts; client.for_repository(…) "
    "checks them before it sends"
)
_OF_WORDS = {
    **dict.fromkeys(("unexpected inference input", "unexpected inference output", " inputs for model '"), _OWN_NAMES),
    "parameter 'inputs' has invalid type": _GENERATES,
    "The document root must not be followed by other values": _GENERATES,
    "attempt to access non-existing object member 'inputs'": (
        "call infer() instead of generate() or stream() if the container has no inference_type, or set "
        "inference_type='generate_stream' in its ContainerEnvironment"
    ),
    "must specify a non-zero or non-empty correlation ID": (
        "call the model in a sequence, with client.sequence(…) or `cdk-triton invoke --sequence`"
    ),
    "must specify the START flag on the first request of the sequence": (
        "begin the sequence again, because this container has not seen it starting, or has ended it after the "
        "max_sequence_idle_microseconds of config.pbtxt, by default a second"
    ),
}
"""What to do about an answer of Triton that has these words."""

_DENIED = ("AccessDenied", "AccessDeniedException")
_ARN = re.compile(r"arn:\S+:(?:endpoint|inference-component)/(?P<name>[\w-]+)")
"""Its name is in lower case, and IAM compares it with a policy letter by letter (philschmid/cdk-samples issue 2)."""


class SageMakerRuntime(Protocol):
    """The part of `boto3.client("sagemaker-runtime")` that the client needs."""

    def invoke_endpoint(self, *args: Any, **kwargs: Any) -> Any:
        """Call InvokeEndpoint."""
        ...


class AsyncRuntime(Protocol):
    """The part of the same client that `submit` needs."""

    def invoke_endpoint_async(self, *args: Any, **kwargs: Any) -> Any:
        """Call InvokeEndpointAsync."""
        ...


class StreamingRuntime(Protocol):
    """The part of the same client that `stream` needs."""

    def invoke_endpoint_with_response_stream(self, *args: Any, **kwargs: Any) -> Any:
        """Call InvokeEndpointWithResponseStream."""
        ...


def takes_body(runtime: Any) -> bool:
    """Whether InvokeEndpointAsync of a boto3 client takes a request as `Body`: AWS added that in June 2026."""
    try:
        operation = runtime.meta.service_model.operation_model("InvokeEndpointAsync")
    except AttributeError:  # not a client of boto3
        return True
    return "Body" in operation.input_shape.members


def default_runtime(session: boto3.Session | None = None) -> SageMakerRuntime:
    """Return a boto3 client that sends each request once.

    Args:
        session: the session that creates it; by default boto3's default session.

    Raises:
        ConfigurationError: no AWS region is configured, or the environment names a profile that does not exist.
    """
    from botocore.config import Config

    config = Config(
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        retries={"total_max_attempts": 1},
    )
    client = default_client("sagemaker-runtime", "runtime", config, session)
    # botocore assembles its User-Agent twice for each call, which takes a tenth of the call, unless it has a fixed one.
    fixed = config.merge(Config(user_agent=_user_agent(client.meta.config)))
    runtime: SageMakerRuntime = default_client("sagemaker-runtime", "runtime", fixed, session)
    return runtime


def _user_agent(config: Any) -> str:
    """The User-Agent of the configuration, and the name of the application if `AWS_SDK_UA_APP_ID` has one."""
    from botocore.useragent import sanitize_user_agent_string_component

    agent, application = str(config.user_agent), config.user_agent_appid
    if not application:
        return agent
    return f"{agent} app/{sanitize_user_agent_string_component(raw_str=application, allow_hash=True)}"


def default_client(
    service: str, argument: str | None = None, config: Config | None = None, session: boto3.Session | None = None
) -> Any:
    """Return a boto3 client.

    Args:
        service: the service.
        argument: the argument that accepts another client, for the message; by default the service's name.
        config: how the client sends requests; by default as botocore does.
        session: the session that creates it; by default boto3's default session.

    Raises:
        ConfigurationError: no AWS region is configured, or the environment names a profile that does not exist.
    """
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        make = boto3.client if session is None else session.client
        return make(service, config=config)  # type: ignore[call-overload]  # the stubs know literal names only
    except BotoCoreError as error:
        raise ConfigurationError(
            f"no {service} client can be made: {_sentence(error)}; set AWS_DEFAULT_REGION, or pass "
            f'{argument or service}=…, or run `eval "$(cdk-triton local status)"` for the local AWS of this directory'
        ) from error


@contextmanager
def foreign_errors_translated(where: str, permission: str = "") -> Iterator[None]:
    """Turn every error of botocore into one of `cdk_triton.errors`, with the cause kept.

    Args:
        where: the endpoint and the target of the request, for the message.
        permission: the permission that a caller needs, if it differs from that of InvokeEndpoint.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _from_service(error, where, permission) from error
    except BotoCoreError as error:
        raise _from_botocore(error, where) from error


def _from_service(error: ClientError, where: str, permission: str) -> InvocationError:
    # A TypedDict of the stubs, which does not know the members of SageMaker's ModelError.
    response: Mapping[str, Any] = error.response
    code = str(response.get("Error", {}).get("Code", "Unknown"))
    message = _without_full_stop(str(response.get("Error", {}).get("Message", "") or "no message"))
    if code == "ValidationError" and _NO_CAPACITY in message:
        return NoCapacityError(
            f"{where}: AWS answered {code}: {message}; if the component scales from zero, call again in "
            "some minutes; otherwise raise the component's number of copies"
        )
    kind, fix = SERVICE_ERRORS.get(code, (InvocationError, "look the error up in the API reference of InvokeEndpoint"))
    if code == "ValidationError":
        fix = next((other for sign, other in _OF_VALIDATION.items() if sign in message), fix)
    if permission and code in _DENIED:
        fix = f"allow the caller {permission}"
    elif permission and code not in SERVICE_ERRORS:
        fix = "look the error up in the API reference of the service"
    denied = _ARN.search(message) if code in _DENIED else None
    if denied is not None and denied["name"] not in where:
        fix += f", in a policy with the name in lower case, as in {denied[0]}"
    if code == "ModelStreamError":  # AWS's text; botocore drops the ErrorCode
        text = f"{where}: the model container broke its answer off: {message}; {fix}"
        return ModelError(text, status=0, original_message=message)
    if kind is not ModelError:
        return kind(f"{where}: AWS answered {code}: {message}; {fix}")
    status = int(response.get("OriginalStatusCode") or 0)
    words = server_words(str(response.get("OriginalMessage") or message))
    arn = response.get("LogStreamArn")
    # The local AWS says in its message how its log is printed (`cdk_triton_local.triton.responses`).
    hint = _LOCAL_HINT.search(message)
    here = f"; {hint[1]}" if hint else ""
    log = f" ({arn}{here})" if arn else ""
    return model_error(where, status, words, log)


def model_error(where: str, status: int, words: str, log: str = "") -> ModelError:
    """Return the error of a model container.

    Args:
        where: the endpoint and the target of the request, for the message.
        status: the status of its answer; 0 if the container died or took longer than SageMaker waits.
        words: the text of its answer.
        log: the place of its log, as the end of the message.
    """
    _, fix = SERVICE_ERRORS["ModelError"]
    fix = next((other for sign, other in _OF_WORDS.items() if sign in words), fix)
    # A stream has begun with the status 200 before the model fails.
    outcome = {0: "did not answer", 200: "failed during its answer"}.get(status, f"answered {status}")
    # What the server answers about a model that does not load has many lines, with the cause in the last ones.
    reason = rejected_model(words) or _without_full_stop(words)
    return ModelError(
        f"{where}: the model container {outcome}: {reason}; {fix}{log}",
        status=status,
        original_message=words,
    )


def _from_botocore(error: BotoCoreError, where: str) -> InvocationError | ConfigurationError:
    from botocore.exceptions import (
        ConnectTimeoutError,
        EndpointConnectionError,
        NoCredentialsError,
        ParamValidationError,
        ReadTimeoutError,
    )

    reason = _sentence(error)
    if isinstance(error, ParamValidationError):
        return ConfigurationError(f"{where}: boto3 rejects the call: {reason}")
    if isinstance(error, ReadTimeoutError):
        return InvocationTimeoutError(
            f"{where}: no answer in time: {reason}; the model may have run, so decide whether to call again"
        )
    if isinstance(error, ConnectTimeoutError | EndpointConnectionError):
        kind = InvocationTimeoutError if isinstance(error, ConnectTimeoutError) else InvocationError
        fix = "check the region, the network and AWS_ENDPOINT_URL"
        if isinstance(error, EndpointConnectionError):
            fix = _on_this_machine(error.kwargs["endpoint_url"]) or fix
        return kind(f"{where}: no connection: {reason}; {fix}")
    if isinstance(error, NoCredentialsError):
        return InvocationError(f"{where}: {reason}; configure AWS credentials, or pass a runtime that has them")
    return InvocationError(f"{where}: the call failed: {reason}")


def _on_this_machine(address: str) -> str:
    """What to do if nothing answers at an address of this machine; "" for any other address.

    It may be that of the local AWS, or for example the end of a tunnel.
    """
    url = urlsplit(address)
    if url.hostname not in ("127.0.0.1", "localhost"):
        return ""
    return (
        f"if {url.scheme}://{url.netloc} was the local AWS, start it again with `cdk-triton local up`, or unset its "
        "variables with the line that `cdk-triton local down` prints; otherwise check AWS_ENDPOINT_URL"
    )


def server_words(original: str) -> str:
    """Return the text in Triton's `{"error": …}`, which may be an event, or the original if it has another form."""
    try:
        parsed = json.loads(original.removeprefix("data: "))
    except ValueError:
        return original
    return str(parsed["error"]) if isinstance(parsed, dict) and "error" in parsed else original


def _sentence(error: BotoCoreError) -> str:
    return _without_full_stop(" ".join(str(error).split()))


def _without_full_stop(text: str) -> str:
    return text.strip().removesuffix(".")
