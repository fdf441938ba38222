"""Reads the call of a request, which AWS would authorize."""

from __future__ import annotations

import io
from typing import Final
from urllib.parse import unquote

from cdk_triton_local.front.signatures import SignedRequest
from cdk_triton_local.process import Call

__all__ = ["read_call"]


_CLIENTS: Final = {
    "application-autoscaling": "application-autoscaling",
    "monitoring": "cloudwatch",
    "servicequotas": "service-quotas",
    "states": "stepfunctions",
}
"""boto3's name of a service that signs its requests with another name."""


def read_call(principal: str, request: SignedRequest, service: str) -> Call | None:
    """Read the operation and the parameters of a request; None if it names no operation of the service.

    Args:
        principal: who has sent it.
        request: the request.
        service: the name of the service in the signature.
    """
    from moto.core.parse import PROTOCOL_PARSERS
    from moto.core.request import Request, determine_request_protocol
    from moto.core.routing import get_service_router
    from moto.core.utils import get_service_model
    from werkzeug.exceptions import NotFound

    is_invocation = service == "sagemaker" and request.target.startswith("/endpoints/")
    client = "sagemaker-runtime" if is_invocation else _CLIENTS.get(service, service)
    path, _, query = request.target.partition("?")
    is_content = is_invocation or (service == "s3" and request.method == "PUT" and path.count("/") > 1)
    body = b"" if is_content else request.body()
    environ = {
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()},
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "PATH_INFO": unquote(path),
        "QUERY_STRING": query,
        "RAW_URI": request.target,
        "REQUEST_METHOD": request.method,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http",
    }
    parsed = Request(environ)
    try:
        model, labels = get_service_router(client).match(parsed)
    except NotFound:
        return None
    parser = PROTOCOL_PARSERS[determine_request_protocol(get_service_model(client), parsed.content_type)](model)
    parameters = parser.parse(
        {
            "body": body,
            "headers": parsed.headers,
            "method": parsed.method,
            "url_params": labels,
            "url_path": path,
            "values": parsed.values,
        }
    )
    return Call(principal, client, model.name, parameters)
