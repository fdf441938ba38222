"""The AWS Query protocol, which CloudFormation uses: moto's parser and serialiser over botocore's service model."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from botocore.loaders import Loader
from botocore.model import OperationNotFoundError
from moto.core.model import ServiceModel
from moto.core.parse import QueryParser
from moto.core.serialize import QuerySerializer, SerializationContext

from cdk_triton_local.wire.reply import Reply

__all__ = ["QueryApiError", "answer", "service_model"]


class QueryApiError(Exception):
    """An error answer.

    Attributes:
        code: the error code as CloudFormation's API reference names it.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@functools.cache
def service_model() -> ServiceModel:
    """CloudFormation's API as botocore ships it."""
    return ServiceModel(Loader().load_service_model("cloudformation", "service-2"), "cloudformation")


def answer(body: bytes, handle: Callable[[str, dict[str, Any]], Mapping[str, Any]]) -> Reply:
    """Answer one request.

    Args:
        body: the form-encoded request.
        handle: gets the operation and its parameters, and returns the members of the result or raises `QueryApiError`.
    """
    values = {name: items[-1] for name, items in parse_qs(body.decode(), keep_blank_values=True).items()}
    name = values.get("Action", "")
    try:
        operation = service_model().operation_model(name)
    except OperationNotFoundError:
        operation = service_model().operation_model("DescribeStacks")  # any: an error looks the same everywhere
        result: Any = QueryApiError("ValidationError", f"CloudFormation has no operation {name!r}")
    else:
        request: Any = {
            "method": "POST",
            "values": values,
            "headers": {},
            "body": "",
            "url_path": "/",
            "url_params": {},
        }
        parameters = QueryParser(operation).parse(request)
        try:
            result = dict(handle(name, parameters))
        except QueryApiError as error:
            result = error
    serializer = QuerySerializer(operation, SerializationContext(str(uuid.uuid4())))
    reply = serializer.serialize(result)
    return Reply(int(reply["status_code"]), {"Content-Type": "text/xml"}, str(reply["body"]).encode())
