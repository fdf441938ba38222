"""A boto3 client in front of a double: what goes in and out is checked with botocore's model of the service."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import ClientError, ParamValidationError
from botocore.handlers import handle_copy_source_param
from botocore.model import ServiceModel, Shape
from botocore.validate import ParamValidator

__all__ = ["Call", "Client", "Wire", "refusal"]

Call = Callable[[], dict[str, Any]]


def refusal(code: str, message: str = "refused", status: int = 400) -> ClientError:
    """The error that botocore makes of a service's refusal."""
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "Operation",
    )


def _straight(_service: str, _operation: str, call: Call) -> dict[str, Any]:
    return call()


@dataclass
class Wire:
    """What lies between clients and doubles: it sees every call, and a test may cut it."""

    calls: set[tuple[str, str]] = field(default_factory=set)
    around: Callable[[str, str, Call], dict[str, Any]] = _straight


class Client:
    """A client of one service.

    Args:
        service: botocore's name of it.
        double: has one method per operation, named as boto3 names them, that takes and returns dictionaries.
        wire: what every call goes over.
    """

    def __init__(self, service: str, double: object, wire: Wire) -> None:
        self._service = service
        self._double = double
        self._wire = wire
        self.meta = SimpleNamespace(region_name="us-east-1", endpoint_url="https://service.us-east-1.amazonaws.com")

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        operation = _operations(self._service)[name]
        answer = getattr(self._double, name)

        def call(**parameters: Any) -> dict[str, Any]:
            self._wire.calls.add((self._service, operation))
            handle_copy_source_param(parameters)  # what boto3 does to calls of S3
            _check(self._service, operation, "input", parameters)
            response = self._wire.around(self._service, operation, lambda: answer(parameters))
            try:
                _check(self._service, operation, "output", response)
            except ParamValidationError as error:
                raise AssertionError(f"the double answers what the service never does: {error}") from error
            return response

        return call

    def get_paginator(self, name: str) -> Any:
        """All in one page."""

        def paginate(**parameters: Any) -> Iterator[dict[str, Any]]:
            yield getattr(self, name)(**parameters)

        return SimpleNamespace(paginate=paginate)


@functools.cache
def _model(service: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(service)


@functools.cache
def _operations(service: str) -> dict[str, str]:
    return {xform_name(operation): operation for operation in _model(service).operation_names}


@functools.cache
def _shape(service: str, operation: str, side: str) -> Shape | None:
    model = _model(service).operation_model(operation)
    return model.input_shape if side == "input" else model.output_shape


ENOUGH = 200
"""How often a call of S3 is checked for each set of parameters: the values are keys and contents, and a long test makes
millions of them. Calls of the other services are checked every time."""

_seen: Counter[tuple[str, str, str]] = Counter()


def _check(service: str, operation: str, side: str, values: dict[str, Any]) -> None:
    shape = _shape(service, operation, side)
    signature = (operation, side, ",".join(values))
    if shape is None or (service == "s3" and _seen[signature] >= ENOUGH):
        return
    _seen[signature] += 1
    report = ParamValidator().validate(values, shape)
    problems = [report.generate_report()] if report.has_errors() else list(_finer(values, shape, operation))
    if problems:
        raise ParamValidationError(report=f"{service} {operation} {side}: {'; '.join(problems)}")


def _finer(value: Any, shape: Any, where: str) -> Iterator[str]:
    """What botocore leaves to the service: enumerations, patterns and the largest sizes."""
    if shape.type_name == "structure":
        for name in value:
            yield from _finer(value[name], shape.members[name], f"{where}.{name}")
    elif shape.type_name == "list":
        if len(value) > shape.metadata.get("max", len(value)):
            yield f"{where} has {len(value)} elements"
        for item in value:
            yield from _finer(item, shape.member, where)
    elif shape.type_name == "string" and isinstance(value, str):
        if shape.metadata.get("enum", []) and value not in shape.metadata["enum"]:
            yield f"{where} is {value!r}, not one of {shape.metadata['enum']}"
        if len(value) > shape.metadata.get("max", len(value)):
            yield f"{where} is {len(value)} characters long"
        if not _fits(shape.metadata.get("pattern", ""), value):
            yield f"{where} is {value!r}, which does not fit {shape.metadata['pattern']}"


@functools.cache
def _fits(pattern: str, value: str) -> bool:
    for java, ours in {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s"}.items():  # Python has no Unicode categories
        pattern = pattern.replace(java, ours)
    return not pattern or re.fullmatch(pattern, value) is not None
