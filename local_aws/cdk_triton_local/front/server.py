"""The one HTTP server of the local AWS, on loopback.

Every AWS client and the CDK CLI call it; browsers are rejected. Requests to an endpoint bypass WSGI, because users
measure their latency (see `connection`). CloudFormation and the few operations that moto lacks are answered here.
Everything else goes to moto.
"""

from __future__ import annotations

import errno
import io
import json
import queue
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import unquote

from werkzeug.wrappers import Request, Response

from cdk_triton.errors import LocalError
from cdk_triton_local.endpoints import EndpointHost, Invocation
from cdk_triton_local.endpoints import Response as Answer
from cdk_triton_local.endpoints.components import ComponentOperations
from cdk_triton_local.endpoints.operations import EndpointOperations
from cdk_triton_local.endpoints.rejected_updates import SageMakerError
from cdk_triton_local.faults import ServiceError
from cdk_triton_local.front.connection import HOST, MAILBOX, Listener
from cdk_triton_local.front.signatures import Signatures, SignedRequest
from cdk_triton_local.lambdas import FunctionError, NotRunError
from cdk_triton_local.moto_state.dispatch import NoServiceError
from cdk_triton_local.moto_state.missing import NoOperationError, missing_operation
from cdk_triton_local.services import StateMachines, TritonImages
from cdk_triton_local.wire import JsonApi, JsonApiError, Reply, checked_members

__all__ = ["ResponseMailbox", "Routes", "Server"]

_JOB = re.compile(r"Create\w+Job(V2)?|StartPipelineExecution")
"""The operations of SageMaker that run something elsewhere. For moto, most of these jobs are `Completed` at once."""
_LAMBDA = re.compile(r"^/2015-03-31/functions/(?P<function>[^/]+)/invocations$")

StartResponse = Callable[..., Any]


class Lambdas(Protocol):
    """Runs Lambda functions."""

    def invoke(self, function: str, event: Any) -> Any:
        """See `LambdaRuntime.invoke`."""


class CloudFormation(Protocol):
    """Answers CloudFormation requests."""

    def answer(self, body: bytes, caller: str) -> Reply:
        """See `CloudFormationApi.answer`."""


class ResponseMailbox:
    """Takes the answer that a custom resource PUTs to its `ResponseURL`."""

    def __init__(self, url: str, forget: Callable[[], None]) -> None:
        self.url = url
        self._forget = forget
        self._answers: queue.Queue[Mapping[str, Any]] = queue.Queue()

    def deliver(self, answer: Mapping[str, Any]) -> None:
        """An answer has come."""
        self._answers.put(answer)

    def wait(self, seconds: float) -> Mapping[str, Any] | None:
        """The first answer, or None if none came in time."""
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Accept no further answers."""
        self._forget()


class Routes:
    """The WSGI application, which passes each request to the part that answers it.

    Args:
        moto: the application for all requests that no other part answers.
        signatures: checks the signatures of requests.
        log: called with a line for each request that the local AWS cannot answer.

    Attributes:
        signatures: the argument.
        on_request: called with each request that is signed correctly, before it is answered. If it returns an error,
            this is the answer.
        cloudformation: set before the server is started, like the attributes after it, because some need its URL.
    """

    cloudformation: CloudFormation
    codebuild: JsonApi
    components: ComponentOperations
    endpoints: EndpointOperations
    host: EndpointHost
    images: TritonImages
    lambdas: Lambdas
    processing: JsonApi
    quotas: JsonApi
    state_machines: StateMachines
    submit: Callable[[Invocation], Answer]

    def __init__(
        self,
        moto: Callable[[dict[str, Any], StartResponse], Iterable[bytes]],
        signatures: Signatures,
        log: Callable[[str], None],
    ) -> None:
        self.signatures = signatures
        self.on_request: Callable[[SignedRequest], ServiceError | None] = lambda _: None
        self._log = log
        self._moto = moto
        self._mailboxes: dict[str, ResponseMailbox] = {}

    def open_mailbox(self, base_url: str) -> ResponseMailbox:
        """A new URL for the answer of one custom resource."""
        token = secrets.token_urlsafe(16)
        mailbox = ResponseMailbox(f"{base_url}{MAILBOX}{token}", lambda: self._forget(token))
        self._mailboxes[token] = mailbox
        return mailbox

    def _forget(self, token: str) -> None:
        self._mailboxes.pop(token, None)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request, with the error of a service where it cannot be answered."""
        try:
            return self._answer(environ, start_response)
        except NoOperationError as error:
            self._log(f"{error}, so it rejects the request")
            return _sent(error.reply)(environ, start_response)
        except OSError as error:  # a full disk, or a file that this user cannot read
            self._log(_sentence(error))
            return _rest_error("ServiceException", _sentence(error), 500)(environ, start_response)
        except Exception as error:
            message = f"the local AWS failed: {error!r}"
            return _rest_error("InternalFailure", message, 500)(environ, start_response)

    def _answer(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        service = _service(environ.get("HTTP_AUTHORIZATION", ""))
        if path.startswith(MAILBOX):
            return self._deliver(Request(environ))(environ, start_response)
        operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        if service == "cloudformation":
            caller = environ.get("HTTP_USER_AGENT", "")
            return _sent(self.cloudformation.answer(Request(environ).get_data(), caller))(environ, start_response)
        if service in ("codebuild", "servicequotas"):
            api = self.codebuild if service == "codebuild" else self.quotas
            return _sent(api.answer(operation, Request(environ).get_data()))(environ, start_response)
        if service == "ecr" and operation == "BatchGetImage":
            return self._batch_get_image(environ, start_response)
        if service == "sagemaker" and operation in self.processing:
            return _sent(self.processing.answer(operation, Request(environ).get_data()))(environ, start_response)
        if service == "lambda" and environ["REQUEST_METHOD"] == "POST" and (function := _LAMBDA.match(path)):
            return self._invoke(unquote(function["function"]), Request(environ))(environ, start_response)
        if service == "sagemaker" and operation:
            return self._sagemaker(operation, environ, start_response)
        if service == "states" and operation == "StartExecution":
            return self._start_execution(environ, start_response)
        return self._others(service, operation, environ, start_response)

    def _others(
        self, service: str, operation: str, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        if service == "cloudtrail" and operation == "LookupEvents":
            # The CLI looks for the cause of a failed deployment here, and tries for a long time if it gets errors.
            return _json({"Events": []})(environ, start_response)
        try:
            return self._moto(environ, start_response)
        except NoServiceError:
            message = f"the local AWS does not have the service '{service}'"
            self._log(f"{message}, so it rejects {operation or environ['REQUEST_METHOD']}")
            return _rest_error("NotImplemented", message)(environ, start_response)

    def _start_execution(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """The execution is accepted by moto and run by `StateMachines`."""
        body = Request(environ).get_data()
        answer = Response.from_app(self._moto, _with_body(environ, body))
        if answer.status_code == HTTPStatus.OK:
            self.state_machines.started(json.loads(body))
        return answer(environ, start_response)

    def _deliver(self, request: Request) -> Response:
        mailbox = self._mailboxes.get(request.path.removeprefix(MAILBOX))
        if mailbox is None:
            return Response("no custom resource waits here", 404)
        try:
            mailbox.deliver(json.loads(request.get_data()))
        except ValueError:
            return Response("the response is not JSON", 400)
        return Response(status=200)

    def _invoke(self, function: str, request: Request) -> Response:
        """A function runs to its end even if an event invocation is requested."""
        headers = {"Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
        try:
            result = self.lambdas.invoke(function, json.loads(request.get_data() or b"null"))
        except FunctionError as error:
            return Response(json.dumps(error.payload), 200, {**headers, "X-Amz-Function-Error": "Unhandled"})
        except NotRunError as error:
            return _rest_error(error.code, str(error), error.status)
        except LocalError as error:
            return _rest_error("ResourceNotFoundException", str(error), 404)
        except ValueError as error:
            return _rest_error("InvalidRequestContentException", f"the event is not JSON: {error}")
        if request.headers.get("X-Amz-Invocation-Type") == "Event":
            return Response(status=202)
        return Response(json.dumps(result), 200, headers)

    def _batch_get_image(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """ECR's BatchGetImage; moto answers it for the registry of this account."""
        body = Request(environ).get_data(cache=True)
        reply = self.images.answer(body)
        if reply is None:
            return self._moto(_with_body(environ, body), start_response)
        return _sent(reply)(environ, start_response)

    def _sagemaker(self, operation: str, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        answered = {
            "UpdateEndpoint": self.endpoints.update,
            "UpdateEndpointWeightsAndCapacities": self.endpoints.adjust,
            **self.components.operations,
        }
        prepared = {
            "CreateEndpointConfig": self.endpoints.before_configure,
            "CreateEndpoint": self.endpoints.before_create,
        }
        if _JOB.fullmatch(operation):  # the answer of moto would be a success, although nothing runs
            raise missing_operation(environ, operation, "sagemaker")
        body = Request(environ).get_data()
        try:
            members = checked_members("sagemaker", operation, body)
            if operation in answered:
                return _json(answered[operation](members))(environ, start_response)
            carried_out = prepared[operation](members) if operation in prepared else lambda: None
        except (JsonApiError, SageMakerError) as error:
            code = getattr(error, "code", "") or "ValidationException"
            return _json({"__type": code, "message": str(error)}, 400)(environ, start_response)
        answer = Response.from_app(self._moto, _with_body(environ, body))
        if answer.status_code == HTTPStatus.OK:
            carried_out()
        return answer(environ, start_response)


class Server:
    """Serves `routes` on loopback; the port is taken at once, requests are answered from `start` on.

    Args:
        routes: the WSGI application.
        port: 0 for any free one.

    Raises:
        LocalError: the port is in use.
    """

    def __init__(self, routes: Routes, port: int = 0) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise LocalError(
                    f"port {port} on {HOST} cannot be used: {error.strerror}; choose another port with --port"
                ) from error
            raise LocalError(
                f"port {port} on {HOST} is in use by another program; choose another port with --port"
            ) from error
        listener.listen(128)
        self.port: int = listener.getsockname()[1]
        self.url = f"http://{HOST}:{self.port}"
        # The socket is ours, so that a port in use is our sentence: werkzeug would print one and exit.
        self._server = Listener(self.port, routes, listener.fileno())
        self._listener = listener
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="local-aws", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.hang_up()
        self._server.server_close()
        self._listener.close()


def _service(authorization: str) -> str:
    """From the credential scope of the signature (Signature Version 4)."""
    scope = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request", authorization)
    return scope[1].lower() if scope else ""


def _with_body(environ: dict[str, Any], body: bytes) -> dict[str, Any]:
    """The environment of a request whose body has been read, for another application."""
    return {name: value for name, value in environ.items() if not name.startswith("werkzeug.")} | {
        "wsgi.input": io.BytesIO(body),
        "CONTENT_LENGTH": str(len(body)),
    }


def _sent(reply: Reply) -> Response:
    return Response(reply.body, reply.status, dict(reply.headers))


def _json(members: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(members), status, content_type="application/x-amz-json-1.1")


def _sentence(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    fix = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "remove this cause"
    return f"the local AWS cannot continue: {error.strerror or error}{where}; {fix}, and repeat the request"


def _rest_error(code: str, message: str, status: int = 400) -> Response:
    members = json.dumps({"__type": code, "Message": message, "message": message})
    return Response(members, status, {"X-Amzn-ErrorType": code}, content_type="application/json")
