"""What the client says when something goes wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import botocore.exceptions
import numpy as np
import pytest
from botocore.loaders import Loader
from botocore.stub import Stubber

from cdk_triton.client import TritonClient
from cdk_triton.client.payload import decode
from cdk_triton.client.runtime import SERVICE_ERRORS, foreign_errors_translated
from cdk_triton.errors import (
    CdkTritonError,
    ConfigurationError,
    InvocationError,
    InvocationTimeoutError,
    ModelError,
    ModelNotReadyError,
    NoCapacityError,
    PayloadTooLargeError,
)

if TYPE_CHECKING:
    from golden_messages import Messages


INPUTS = {"x": np.zeros((1, 4), np.float32)}
LIMIT = 6_291_456


def test_a_body_over_the_limit_is_not_sent(messages: Messages, endpoint: Any) -> None:
    client = TritonClient("images", endpoint.runtime())

    with pytest.raises(PayloadTooLargeError) as caught:
        client.infer({"x": np.zeros(LIMIT, np.uint8)}, target_model="image.tar.gz")

    assert endpoint.requests == []
    assert caught.value.limit == LIMIT
    assert caught.value.size > LIMIT
    messages.record("PayloadTooLargeError", str(caught.value).replace(f"{caught.value.size:,}", "SIZE"))


def test_a_body_of_exactly_the_limit_is_sent(endpoint: Any) -> None:
    client = TritonClient("images", endpoint.runtime())
    with pytest.raises(PayloadTooLargeError) as caught:
        client.infer({"x": np.zeros(LIMIT, np.uint8)})
    size = LIMIT - (caught.value.size - LIMIT)

    client.infer({"x": np.zeros(size, np.uint8)})

    assert int(endpoint.requests[-1][1]["content-length"]) == LIMIT


@pytest.mark.slow
def test_too_much_json_is_told_about_the_binary_format(messages: Messages, endpoint: Any) -> None:
    client = TritonClient("images", endpoint.runtime())
    with pytest.raises(PayloadTooLargeError) as caught:
        client.infer({"x": np.zeros(LIMIT // 2, np.uint8)}, binary=False)
    messages.record("PayloadTooLargeError", str(caught.value).replace(f"{caught.value.size:,}", "SIZE"))


def test_a_model_error_carries_tritons_own_words_and_status(messages: Messages, endpoint: Any) -> None:
    runtime = endpoint.runtime()
    words = "[request id: <id_unknown>] expected 1 inputs but got 2 inputs for model 'ensemble'"
    with Stubber(runtime) as stub:
        stub.add_client_error(
            "invoke_endpoint",
            service_error_code="ModelError",
            service_message='Received client error (400) from primary with message "{...}"',
            http_status_code=424,
            modeled_fields={
                "OriginalStatusCode": 400,
                "OriginalMessage": json.dumps({"error": words}),
                "LogStreamArn": "arn:aws:logs:eu-west-1:1:log-group:/aws/sagemaker/Endpoints/texts",
            },
        )
        with messages.raises(ModelError) as caught:
            TritonClient("texts", runtime).infer(INPUTS, target_model="text.tar.gz")

    assert caught.value.status == 400
    assert caught.value.original_message == words
    assert isinstance(caught.value.__cause__, botocore.exceptions.ClientError)


def test_a_model_error_on_the_wire_is_understood(messages: Messages, endpoint: Any, answer: Any) -> None:
    endpoint.answer = lambda: answer(
        json.dumps({"Message": "m", "OriginalStatusCode": 507, "OriginalMessage": "CUDA out of memory"}).encode(),
        "application/json",
        424,
        {"x-amzn-ErrorType": "ModelError"},
    )
    with messages.raises(ModelError) as caught:
        TritonClient("texts", endpoint.runtime()).infer(INPUTS)
    assert (caught.value.status, caught.value.original_message) == (507, "CUDA out of memory")


def test_a_container_that_did_not_answer_is_said_to(messages: Messages, endpoint: Any, answer: Any) -> None:
    words = "Your invocation timed out while waiting for a response from container primary."
    members = {"Message": "m", "OriginalStatusCode": 0, "OriginalMessage": words}
    endpoint.answer = lambda: answer(
        json.dumps(members).encode(), "application/json", 424, {"x-amzn-ErrorType": "ModelError"}
    )
    with messages.raises(ModelError) as caught:
        TritonClient("texts", endpoint.runtime()).infer(INPUTS)
    assert caught.value.status == 0


LOAD = "/opt/ml/models/0123/model"
NOT_LOADED = (
    f"load failed for model '{LOAD}::text.tar.gz': ensemble '{LOAD}::text.tar.gz' depends on '{LOAD}::label' which has "
    f"no loaded version. Model '{LOAD}::label' loading failed with error: version 1 is at UNAVAILABLE state: Internal: "
    f"RuntimeError: no weights here\n\nAt:\n  {LOAD}/label/1/model.py(11): initialize\n"
    "  <frozen importlib._bootstrap>(241): _call_with_frames_removed\n;\n"
)
"""The answer of Triton 24.10 to a request for a target model whose step raises an error."""


def client_error(endpoint: Any, code: str, message: str, **members: Any) -> Any:
    runtime = endpoint.runtime()
    with Stubber(runtime) as stub:
        stub.add_client_error("invoke_endpoint", code, message, 424, modeled_fields=members)
        with pytest.raises(InvocationError) as caught:
            TritonClient("fleet", runtime).infer(INPUTS, target_model="text")
    return caught.value


def test_a_target_model_that_does_not_load_is_the_cause_in_one_line(messages: Messages, endpoint: Any) -> None:
    members = {"OriginalStatusCode": 400, "OriginalMessage": json.dumps({"error": NOT_LOADED})}

    error = client_error(endpoint, "ModelError", "Received client error (400) from primary", **members)

    assert ": model 'label' does not load: RuntimeError: no weights here (label/1/model.py, line 11);" in str(error)
    assert "\n" not in str(error)
    assert error.original_message == NOT_LOADED
    messages.record("ModelError", str(error))


def test_a_reason_without_a_repository_keeps_its_addresses_and_names_no_place(endpoint: Any) -> None:
    said = (
        "load failed for model 'bert': version 1 is at UNAVAILABLE state: Internal: OSError: cannot reach "
        "https://huggingface.co/bert\n\nAt:\n  /opt/venv/lib/hub.py(9): get\n;"
    )
    members = {"OriginalStatusCode": 400, "OriginalMessage": json.dumps({"error": said})}

    error = client_error(endpoint, "ModelError", "Received client error (400) from primary", **members)

    assert "OSError: cannot reach https://huggingface.co/bert; read more" in str(error)


def test_an_archive_that_is_not_there_says_the_form_of_its_name(messages: Messages, endpoint: Any) -> None:
    said = "Failed to download model data(bucket: b, key: fleets/fleet/text). Please ensure that there is an object."

    error = client_error(endpoint, "ValidationError", said)

    assert "set target_model= to the name of an archive" in str(error)
    messages.record("InvocationError", str(error))


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("Request to multi-model endpoint images is missing a target model header.", "set target_model= to"),
        (
            "Endpoint images is not a multi-model endpoint and does not support target model header.",
            "call the endpoint without target_model=",
        ),
        (
            "Inference Component Name header is required for endpoints to which you plan to deploy inference "
            "components. Please include Inference Component Name header or consider using SageMaker models.",
            "set inference_component= to",
        ),
        (
            "Inference Component Name header is not allowed for endpoints to which you dont plan to deploy inference "
            "components. Please remove the Inference Component Name header and try again.",
            "call the endpoint without inference_component=",
        ),
    ],
)
def test_a_missing_or_needless_name_has_its_fix(messages: Messages, endpoint: Any, said: str, fix: str) -> None:
    error = client_error(endpoint, "ValidationError", said)

    assert f"; {fix}" in str(error)
    messages.record("InvocationError", str(error))


def service_errors() -> list[str]:
    model = Loader().load_service_model("sagemaker-runtime", "service-2")
    return [shape["shape"] for shape in model["operations"]["InvokeEndpoint"]["errors"]]


@pytest.mark.parametrize("code", service_errors())
def test_every_error_of_the_service_model_has_a_class_and_a_mend(code: str) -> None:
    kind, fix = SERVICE_ERRORS[code]
    error = botocore.exceptions.ClientError({"Error": {"Code": code, "Message": "Reason."}}, "InvokeEndpoint")

    with pytest.raises(InvocationError) as caught, foreign_errors_translated("endpoint 'e'"):
        raise error

    assert type(caught.value) is kind
    assert fix in str(caught.value)
    assert "Reason" in str(caught.value)
    assert caught.value.__cause__ is error


def test_a_model_that_is_still_loading_has_its_own_class(messages: Messages) -> None:
    error = botocore.exceptions.ClientError(
        {"Error": {"Code": "ModelNotReadyException", "Message": "Model is loading."}}, "InvokeEndpoint"
    )
    with messages.raises(ModelNotReadyError), foreign_errors_translated("endpoint"):
        raise error


def test_a_component_without_a_copy_has_its_own_class(messages: Messages) -> None:
    text = (
        "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress (if "
        "configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
    )
    error = botocore.exceptions.ClientError({"Error": {"Code": "ValidationError", "Message": text}}, "InvokeEndpoint")
    with messages.raises(NoCapacityError), foreign_errors_translated("endpoint 'e', component 'text'"):
        raise error


@pytest.mark.parametrize(("name", "is_told"), [("Search--LaBSE", True), ("search--labse", False)])
def test_a_denied_call_says_how_a_policy_writes_a_name_with_capitals(
    messages: Messages, name: str, is_told: bool
) -> None:
    arn = "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/search--labse"
    said = (
        f"User: arn:aws:iam::111122223333:user/me is not authorized to perform: sagemaker:InvokeEndpoint on resource: "
        f"{arn} because no identity-based policy allows the sagemaker:InvokeEndpoint action"
    )
    answer: Any = {"Error": {"Code": "AccessDeniedException", "Message": said}}
    error = botocore.exceptions.ClientError(answer, "InvokeEndpoint")
    with messages.raises(InvocationError) as caught, foreign_errors_translated(f"endpoint '{name}'"):
        raise error
    assert str(caught.value).endswith(arn) is is_told


def test_an_unknown_code_keeps_its_name_and_message(messages: Messages) -> None:
    error = botocore.exceptions.ClientError({"Error": {"Code": "NewOne", "Message": "Why."}}, "InvokeEndpoint")
    with messages.raises(InvocationError), foreign_errors_translated("endpoint"):
        raise error


def botocore_errors() -> list[type[botocore.exceptions.BotoCoreError]]:
    def below(kind: type[Any]) -> set[type[Any]]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    return sorted(below(botocore.exceptions.BotoCoreError), key=lambda kind: kind.__name__)


TIMEOUTS = {"ReadTimeoutError", "ConnectTimeoutError"}


def test_no_error_of_botocore_escapes() -> None:
    for kind in botocore_errors():
        error = kind.__new__(kind)
        Exception.__init__(error, "Why it failed.")
        error.kwargs = {"endpoint_url": "https://runtime.example"}

        with pytest.raises(CdkTritonError) as caught, foreign_errors_translated("endpoint 'e'"):
            raise error

        expected = ConfigurationError if kind.__name__ == "ParamValidationError" else InvocationError
        assert isinstance(caught.value, expected), kind
        assert isinstance(caught.value, InvocationTimeoutError) == (kind.__name__ in TIMEOUTS), kind
        assert caught.value.__cause__ is error
        assert str(caught.value).startswith("endpoint 'e': ")


def test_a_slow_container_is_a_timeout_and_is_asked_once(messages: Messages, endpoint: Any, never: Any) -> None:
    endpoint.answer = never
    client = TritonClient("slow", endpoint.runtime(read_timeout=0.2))

    with pytest.raises(InvocationTimeoutError) as caught:
        client.infer(INPUTS)

    assert endpoint.arrived() == 1
    messages.record("InvocationTimeoutError", str(caught.value).replace(str(endpoint.port), "PORT"))


def test_a_closed_port_is_named(messages: Messages, endpoint: Any, closed_port: int) -> None:
    endpoint.port = closed_port
    with pytest.raises(InvocationError) as caught:
        TritonClient("texts", endpoint.runtime()).infer(INPUTS)
    assert f"if http://127.0.0.1:{closed_port} was the local AWS, start it again" in str(caught.value)
    assert "otherwise check AWS_ENDPOINT_URL" in str(caught.value)  # of a tunnel, for example
    messages.record("InvocationError", str(caught.value).replace(str(closed_port), "PORT"))


def test_a_connection_that_breaks_is_an_invocation_error(endpoint: Any) -> None:
    endpoint.answer = lambda: None
    with pytest.raises(InvocationError, match="Connection was closed"):
        TritonClient("texts", endpoint.runtime()).infer(INPUTS)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html>hello</html>", "text/html"),
        (b"\xff\xfe", "application/json"),
        (b"{}", "application/json"),
        (b'{"outputs": [{"name": "x", "datatype": "FP32", "shape": [1]}]}', "application/json"),
        (b'{"outputs": [{"name": "x", "datatype": "FP32", "shape": [3], "data": [1]}]}', "application/json"),
        (b"{}", "application/vnd.sagemaker-triton.binary+json;json-header-size=99"),
        (b"{}", "application/vnd.sagemaker-triton.binary+json;json-header-size=two"),
    ],
    ids=["html", "not text", "no outputs", "no data", "too little data", "header too long", "size is a word"],
)
def test_an_answer_that_is_not_tritons_is_an_invocation_error(
    messages: Messages, endpoint: Any, answer: Any, body: bytes, content_type: str
) -> None:
    endpoint.answer = lambda: answer(body, content_type)
    with messages.raises(InvocationError):
        TritonClient("texts", endpoint.runtime()).infer(INPUTS)


@pytest.mark.parametrize(
    "name",
    ["", "my_endpoint", "arn:aws:sagemaker:eu-west-1:1:endpoint/texts", "${Token[TOKEN.7]}", "e" * 64],
    ids=["empty", "underscore", "ARN", "token", "too long"],
)
def test_what_cannot_be_an_endpoint_name_is_rejected(messages: Messages, name: str) -> None:
    with messages.raises(ConfigurationError):
        TritonClient(name)


def test_without_a_region_the_sentence_says_which_variable_to_set(
    messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with messages.raises(ConfigurationError):
        TritonClient("texts")


def test_the_default_runtime_sends_once_and_waits_longer_than_sagemaker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    config = TritonClient("texts")._runtime.meta.config  # type: ignore[attr-defined]
    assert config.retries["total_max_attempts"] == 1
    assert config.read_timeout > 60


@pytest.mark.parametrize(
    ("before", "after", "is_answer"),
    [("", " \n", True), (" ", "", True), ("", "}", False), ("x", "", False)],
    ids=["spaces after", "a space before", "more after", "more before"],
)
def test_a_header_may_have_spaces_around_it_and_nothing_else(before: str, after: str, is_answer: bool) -> None:
    tensor = {"name": "y", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}}
    head = f"{before}{json.dumps({'model_name': 'ä', 'outputs': [tensor]}, ensure_ascii=False)}{after}".encode()
    content_type = f"application/vnd.sagemaker-triton.binary+json;json-header-size={len(head)}"

    if is_answer:
        assert decode(head + bytes(4), content_type)["y"].tolist() == [0.0]
    else:
        with pytest.raises(InvocationError, match="not an inference response"):
            decode(head + bytes(4), content_type)
