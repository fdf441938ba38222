"""The error for an operation that moto does not implement, in the wire format of its service."""

from __future__ import annotations

import re
from typing import Any

from botocore.exceptions import UnknownServiceError
from werkzeug.exceptions import NotFound

from cdk_triton.errors import LocalError
from cdk_triton_local.wire import Reply

__all__ = ["NoOperationError", "missing_operation"]


class NoOperationError(LocalError):
    """A request is for an operation that moto does not implement.

    Attributes:
        code: the error code, which moto's serializers read, as they read the message.
        reply: the answer that the client of the service understands.
    """

    code = "NotImplemented"
    reply: Reply

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def missing_operation(environ: dict[str, Any], action: str, backend: str) -> NoOperationError:
    """Describe a request that moto could not answer.

    Args:
        environ: the WSGI environment of the request.
        action: the operation that a form in the body names; "" without one.
        backend: moto's name of the service.
    """
    from moto.core.errors import COMMON_ERROR_CODES
    from moto.core.model import OperationModel
    from moto.core.request import determine_request_protocol
    from moto.core.serialize import get_serializer_class

    service = _service_model(environ.get("HTTP_AUTHORIZATION", ""), backend)
    name = (
        environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2] or action or _operation(environ, service.service_name)
    )
    full_name = re.sub("^(AWS|Amazon) ", "", service.metadata["serviceFullName"])
    error = NoOperationError(f"the local AWS does not have {name} of {full_name}")
    model = service.operation_model(name) if name in service.operation_names else OperationModel({}, service)
    protocol = determine_request_protocol(service, environ.get("CONTENT_TYPE"))
    serializer = get_serializer_class(service.service_name, protocol)(operation_model=model)
    if error.code not in COMMON_ERROR_CODES:
        COMMON_ERROR_CODES.append(error.code)  # moto warns of a code that the service's model does not have
    answer = serializer.serialize(error)
    body = answer["body"]
    error.reply = Reply(400, dict(answer["headers"]), body if isinstance(body, bytes) else str(body).encode())
    return error


def _service_model(authorization: str, backend: str) -> Any:
    """By the service's name in the signature, or by moto's name."""
    from moto.core.utils import get_service_model, service_name_from_moto_package_name

    signed = re.search(r"/([^/]+)/aws4_request", authorization)
    try:
        return get_service_model(signed[1].lower() if signed else backend)
    except UnknownServiceError:  # Step Functions signs as 'states'
        return get_service_model(service_name_from_moto_package_name(backend))


def _operation(environ: dict[str, Any], service: str) -> str:
    """The operation, or method and path if botocore has no such request."""
    from moto.core.request import Request
    from moto.core.routing import get_service_router

    try:
        return str(get_service_router(service).match(Request(environ))[0].name)
    except (NotFound, NotImplementedError):
        return f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
