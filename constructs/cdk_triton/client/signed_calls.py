"""Calls of SageMaker's runtime as HTTP: what to send, signed, and what an answer of any status means.

botocore does the work in which a mistake would be expensive: endpoint, credentials, signature and the parsing of
answers. So a call that another HTTP library sends succeeds and fails as a call of boto3 does.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from cdk_triton.client.runtime import default_client
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    import boto3
    from botocore.credentials import Credentials, ReadOnlyCredentials

__all__ = ["Call", "EventReader", "SignedCalls"]

_OPERATIONS = {
    "InvokeEndpoint": "invocations",
    "InvokeEndpointAsync": "async-invocations",
    "InvokeEndpointWithResponseStream": "invocations-response-stream",
}
"""Operations and the last parts of their paths (`requestUri` in the service model)."""


@dataclass(frozen=True)
class Call:
    """A call that can be sent.

    Attributes:
        url: the whole URL.
        path: the path of the URL.
        headers: the headers, including the signature.
        body: the body of the request; empty for a call without a body.
    """

    url: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class EventReader:
    """Turns the bytes of an event stream into the events that botocore's `EventStream` returns.

    Args:
        operation: the operation, for errors.
        shape: the shape of the events.
        parser: the parser of the protocol.
    """

    def __init__(self, operation: str, shape: Any, parser: Any) -> None:
        from botocore.eventstream import EventStreamBuffer

        self._operation, self._shape = operation, shape
        self._parser = parser.EVENT_STREAM_PARSER_CLS()
        self._buffer = EventStreamBuffer()

    def feed(self, data: bytes) -> Iterator[Mapping[str, Any]]:
        """Return the events that these bytes complete.

        Raises:
            EventStreamError: an event is an error.
            ParserError: the bytes are not an event stream.
        """
        from botocore.exceptions import EventStreamError

        self._buffer.add_data(data)
        for message in self._buffer:
            response = message.to_response_dict()
            event = self._parser.parse(response, self._shape)
            if response["status_code"] != 200:
                raise EventStreamError(event, self._operation)
            yield event


class SignedCalls:
    """Writes calls of a boto3 session, and reads their answers.

    Args:
        fix: what to do instead if the environment sets a proxy or a CA bundle, for the message.
        session: the session; by default boto3's default session.

    Raises:
        ConfigurationError: no AWS region is configured, or the environment sets a proxy or a CA bundle, which only
            boto3 uses.
    """

    def __init__(self, fix: str, session: boto3.Session | None = None) -> None:
        import boto3
        from botocore.parsers import create_parser

        client = default_client("sagemaker-runtime", session=session)
        self.url: str = client.meta.endpoint_url.rstrip("/")
        self._host = urlsplit(self.url).netloc.rpartition("@")[2]
        self._region, self._model = client.meta.region_name, client.meta.service_model
        self._operations = {name: self._model.operation_model(name) for name in _OPERATIONS}
        self._headers = {name: _header_names(operation.input_shape) for name, operation in self._operations.items()}
        self._answered = {name: _header_names(operation.output_shape) for name, operation in self._operations.items()}
        self._parser = create_parser("rest-json")
        self._session = boto3.DEFAULT_SESSION if session is None else session
        self._credentials: Credentials | None = None
        assert self._session is not None
        # boto3 calls a profile `default` that does not have to exist.
        profile = self._session.profile_name
        _reject_unused_settings(self.url, profile if profile in self._session.available_profiles else None, fix)

    def may_block(self) -> bool:
        """Whether `credentials` would fetch new ones, from a file, a process or the network."""
        if self._credentials is None:
            return True
        refresh_needed = getattr(self._credentials, "refresh_needed", None)
        return refresh_needed is not None and bool(refresh_needed())

    def credentials(self) -> ReadOnlyCredentials:
        """Return credentials that are valid now.

        Raises:
            NoCredentialsError: boto3 finds no credentials.
            BotoCoreError: expired credentials could not be renewed.
        """
        from botocore.exceptions import NoCredentialsError

        if self._credentials is None:
            assert self._session is not None
            self._credentials = self._session.get_credentials()
            if self._credentials is None:
                raise NoCredentialsError
        return self._credentials.get_frozen_credentials()

    def sign(self, operation: str, arguments: Mapping[str, Any], credentials: ReadOnlyCredentials) -> Call:
        """Write a call. Send it at once, because its signature contains the time.

        Args:
            operation: `InvokeEndpoint`, `InvokeEndpointAsync` or `InvokeEndpointWithResponseStream`.
            arguments: the arguments of boto3's method.
            credentials: what to sign with.

        Raises:
            ParamValidationError: the operation does not have an argument, or its value cannot be a header.
        """
        from cdk_triton.client.signature import Signature, Unsigned

        path = f"/endpoints/{quote(arguments['EndpointName'], safe='')}/{_OPERATIONS[operation]}"
        headers = {
            self._header(operation, name): _header_value(name, value)
            for name, value in arguments.items()
            if name not in ("EndpointName", "Body")
        }
        request = Unsigned(self.url + path, {"Host": self._host, **headers}, arguments.get("Body", b""))
        Signature(credentials, self._model.signing_name, self._region).add_auth(request)
        # No library is to ask for compressed answers: the first bytes of a body decide how long its header is.
        request.headers["Accept-Encoding"] = "identity"
        return Call(request.url, urlsplit(request.url).path, request.headers, request.body)

    def read(self, operation: str, status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Return what boto3's method would return, apart from `ResponseMetadata`.

        Raises:
            ClientError: the answer is an error.
        """
        from botocore.exceptions import ClientError

        shape = self._operations[operation]
        if status < 300 and shape.has_streaming_output:  # members are headers and the body, and need no parser
            return {**self.members(operation, headers), "Body": io.BytesIO(body)}
        answer = {"status_code": status, "headers": headers, "body": body}
        parsed: dict[str, Any] = self._parser.parse(answer, shape.output_shape)
        if status < 300:
            return parsed
        # As `botocore.endpoint.Endpoint` does: the members of an error are parsed by the shape of the error.
        error = self._model.shape_for_error_code(parsed.get("Error", {}).get("Code"))
        if error is not None:
            parsed.update(self._parser.parse(answer, error))
        raise ClientError(parsed, operation)  # type: ignore[arg-type]  # the stubs have a TypedDict

    def members(self, operation: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the members of a successful answer that are headers."""
        return {name: headers[header] for name, header in self._answered[operation].items() if header in headers}

    def events(self, operation: str) -> EventReader:
        """Return what reads the body of a streamed answer."""
        output = self._operations[operation].output_shape.members["Body"]
        return EventReader(operation, output, self._parser)

    def _header(self, operation: str, name: str) -> str:
        from botocore.exceptions import ParamValidationError

        header = self._headers[operation].get(name)
        if header is None:
            raise ParamValidationError(report=f"Unknown parameter in input: {name!r}")
        return header


def _header_names(shape: Any) -> dict[str, str]:
    return {
        member: each.serialization["name"]
        for member, each in shape.members.items()
        if each.serialization.get("location") == "header"
    }


def _header_value(name: str, value: Any) -> str:
    from botocore.exceptions import ParamValidationError

    text = str(value) if isinstance(value, int) else value
    if not isinstance(text, str) or not text or not (text.isascii() and text.isprintable()):
        raise ParamValidationError(report=f"Invalid value for parameter {name}: {value!r}, which cannot be a header")
    return text


def _reject_unused_settings(url: str, profile: str | None, fix: str) -> None:
    import os

    import botocore.session
    from botocore.utils import get_environ_proxies

    scheme = urlsplit(url).scheme
    if get_environ_proxies(url).get(scheme):
        raise ConfigurationError(
            f"the environment has a proxy for {url} ({scheme.upper()}_PROXY), which only boto3 uses: {fix}, or name "
            "the host in NO_PROXY"
        )
    bundle = botocore.session.Session(profile=profile).get_config_variable("ca_bundle") or os.environ.get(
        "REQUESTS_CA_BUNDLE"
    )
    if bundle and scheme == "https":
        raise ConfigurationError(
            f"the environment has a CA bundle for {url} ({bundle}), which only boto3 uses: {fix}, or unset "
            "AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE and ca_bundle of the profile"
        )
