"""AWS JSON 1.1, which CodeBuild, SageMaker and others use: requests are checked, answers shaped, by botocore's model.

botocore has the constraints of a service (required members, types, ranges, lengths, patterns, permitted values) but
checks only some of them before it sends; the services check all. So does this module.
"""

from __future__ import annotations

import functools
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from botocore.loaders import Loader
from botocore.model import Shape
from botocore.validate import ParamValidator
from moto.core.model import ServiceModel
from moto.core.serialize import JSONSerializer, SerializationContext

from cdk_triton_local.wire.reply import Reply

__all__ = ["JsonApi", "JsonApiError", "Operation", "checked_members"]

Operation = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Gets the members of a request and returns those of the result, or raises `JsonApiError`."""


class JsonApiError(Exception):
    """An error answer.

    Attributes:
        code: the error code as the service's API reference names it; "" for the code of a request that is not valid.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class JsonApi:
    """Some operations of one service.

    Args:
        service: botocore's name of it.
        operations: the function that answers each operation.
        invalid: the service's code for a request that is not valid.
    """

    def __init__(self, service: str, operations: Mapping[str, Operation], invalid: str) -> None:
        self._service = service
        self._operations = operations
        self._invalid = invalid

    def __contains__(self, operation: str) -> bool:
        return operation in self._operations

    def answer(self, name: str, body: bytes) -> Reply:
        """Answer one request.

        Args:
            name: the operation.
            body: the request's JSON.
        """
        try:
            if name not in self._operations:
                raise JsonApiError(
                    f"{self._service}'s {name or 'request without X-Amz-Target'} is not modelled by the local AWS, "
                    f"which models {', '.join(sorted(self._operations))}"
                )
            members = checked_members(self._service, name, body)
            result = self._operations[name](members)
        except JsonApiError as error:
            answer = {"__type": error.code or self._invalid, "message": str(error)}
            return _reply(400, json.dumps(answer))
        model = _service_model(self._service).operation_model(name)
        serialized = JSONSerializer(model, SerializationContext(str(uuid.uuid4()))).serialize(dict(result))
        return _reply(200, str(serialized["body"]))


def checked_members(service: str, operation: str, body: bytes) -> dict[str, Any]:
    """The members of a request, which the service's model accepts.

    Args:
        service: botocore's name of it.
        operation: the operation; one that the model does not have is not checked.
        body: the request's JSON.

    Raises:
        JsonApiError: the request is not JSON, or breaks a constraint of the model.
    """
    members, model = _members(body), _service_model(service)
    shape = model.operation_model(operation).input_shape if operation in model.operation_names else None
    if fault := next(_request_faults(members, shape), None):
        raise JsonApiError(fault)
    return members


def _reply(status: int, body: str) -> Reply:
    return Reply(status, {"Content-Type": "application/x-amz-json-1.1"}, body.encode())


def _members(body: bytes) -> dict[str, Any]:
    try:
        members = json.loads(body or b"{}")
    except ValueError as error:
        raise JsonApiError(f"the request is not JSON: {error}", "SerializationException") from error
    if not isinstance(members, dict):
        raise JsonApiError("the request is not a JSON object", "SerializationException")
    return members


@functools.cache
def _service_model(service: str) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(service, "service-2"), service)


def _request_faults(members: dict[str, Any], shape: Shape | None) -> Iterator[str]:
    if shape is None:
        return
    report = ParamValidator().validate(members, shape)
    if report.has_errors():
        yield report.generate_report()
        return
    for found in _constraint_faults(members, shape, ""):
        yield (
            f"1 validation error detected: Value '{found.value}' at '{found.path}' failed to satisfy constraint: "
            f"Member must {found.rule}"
        )


class _Fault(NamedTuple):
    value: Any
    path: str
    rule: str


def _constraint_faults(value: Any, shape: Any, path: str) -> Iterator[_Fault]:
    """Permitted values, maxima and patterns, which botocore leaves to the service."""
    if shape.type_name == "structure":
        for name, member in value.items():
            yield from _constraint_faults(member, shape.members[name], f"{path}.{name}".lstrip("."))
        return
    if shape.type_name == "list":
        for number, item in enumerate(value, 1):
            yield from _constraint_faults(item, shape.member, f"{path}.{number}.member")
    size = value if shape.type_name in ("integer", "long") else len(value) if hasattr(value, "__len__") else 0
    if size > shape.metadata.get("max", size):
        what = "have value" if shape.type_name in ("integer", "long") else "have length"
        yield _Fault(value, path, f"{what} less than or equal to {shape.metadata['max']}")
    allowed = getattr(shape, "enum", None)
    if allowed and value not in allowed:
        yield _Fault(value, path, f"satisfy enum value set: [{', '.join(allowed)}]")
    if isinstance(value, str) and not _matches(shape.metadata.get("pattern"), value):
        yield _Fault(value, path, f"satisfy regular expression pattern: {shape.metadata['pattern']}")


def _matches(pattern: str | None, value: str) -> bool:
    # Java's classes of Unicode properties (`\p{L}`) and surrogate ranges are not Python's: such a pattern is not looked
    # at.
    if pattern is None or r"\p{" in pattern or r"\uD800" in pattern:
        return True
    return re.fullmatch(pattern, value) is not None
