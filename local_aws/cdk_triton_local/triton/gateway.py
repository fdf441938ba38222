"""Answers an invocation as sagemaker-runtime does: checks it, chooses a variant, and translates its answer.

It never reads or logs the body.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from cdk_triton.sagemaker import limits
from cdk_triton_local.endpoints import Invocation, Response, StreamedResponse
from cdk_triton_local.triton.connection import ContainerReply, OpenReply, ServerGoneError
from cdk_triton_local.triton.deadline import Deadline
from cdk_triton_local.triton.responses import ErrorResponses
from cdk_triton_local.triton.server import INVOCATIONS, TritonServer
from cdk_triton_local.triton.target_models import INSUFFICIENT_STORAGE, TARGET_MODEL_HEADER, TargetModels
from cdk_triton_local.triton.variant import RunningVariant

__all__ = ["Answer", "answer", "choose_variant", "stream", "validate_request"]

_T = TypeVar("_T")

Answer: TypeAlias = Callable[[RunningVariant, Invocation, ErrorResponses, Deadline], _T]
"""How a variant answers: with `answer` as a whole, or with `stream` in parts."""

# The headers that SageMaker passes on to the container. It drops other headers, so the binary format puts the size of
# its JSON part into the content type.
_PASSED_ON: Final = ("Content-Type", "Accept", "X-Amzn-SageMaker-Custom-Attributes")

# Headers of InvokeEndpoint (botocore's service model) whose effect the local AWS does not have. Doing nothing about
# one would be a wrong answer. An inference id only labels captured data (`cdk_triton_local.endpoints.data_capture`).
_NOT_MODELLED: Final = (
    "x-amzn-sagemaker-target-container-hostname",
    "x-amzn-sagemaker-enable-explanations",
    "x-amzn-sagemaker-session-id",
)

_TARGET_MODEL: Final = re.compile(r"[!-~][ -~]*")  # TargetModelHeader: \A\S[\p{Print}]*\z


def validate_request(invocation: Invocation, errors: ErrorResponses) -> None:
    """Reject requests that SageMaker rejects before it looks at the endpoint.

    Raises:
        RejectedInvocationError: the request cannot be answered.
    """
    if len(invocation.body) > invocation.largest:
        raise errors.request_too_large(len(invocation.body))
    for name in _NOT_MODELLED:
        if name in invocation.headers:
            raise errors.header_not_modelled(name)


def choose_variant(
    variants: Sequence[RunningVariant], invocation: Invocation, errors: ErrorResponses
) -> RunningVariant:
    """The variant that the request names, or one by weight.

    Raises:
        RejectedInvocationError: there is no such variant.
    """
    wanted = invocation.headers.get("x-amzn-sagemaker-target-variant")
    if wanted is None:
        if len(variants) == 1:
            return variants[0]
        weights = [variant.weight for variant in variants]
        return random.choices(variants, weights if any(weights) else None)[0]  # noqa: S311 no secret
    for variant in variants:
        if variant.name == wanted:
            return variant
    raise errors.no_variant(wanted)


def answer(variant: RunningVariant, invocation: Invocation, errors: ErrorResponses, deadline: Deadline) -> Response:
    """Have `variant` answer before the deadline.

    Raises:
        RejectedInvocationError: the variant did not answer in time, or answered with an error.
        RetiredError: the variant is no longer in service.
    """
    target = invocation.headers.get(TARGET_MODEL_HEADER.lower())
    if target is None and variant.is_multi_model:
        raise errors.target_model_missing()
    if target is not None and not variant.is_multi_model:
        raise errors.target_model_unexpected()
    since = time.monotonic()
    with variant.use(deadline) as (server, models):
        variant.record("Invocations", 1)
        variant.record("InvocationsPerInstance", 1)
        call = _Call(variant, server, invocation, deadline)
        try:
            with _failures_translated(errors):
                if models is None or target is None:
                    reply = call.send(INVOCATIONS)
                else:
                    reply = _send_to_model(call, models, target, errors)
        finally:
            variant.record("OverheadLatency", time.monotonic() - since - call.seconds)
    if reply.status != 200:
        raise errors.container_error(reply)
    if len(reply.body) > invocation.largest:
        raise errors.response_too_large(len(reply.body))
    return Response(200, _headers(variant, reply.headers), reply.body)


def stream(
    variant: RunningVariant, invocation: Invocation, errors: ErrorResponses, deadline: Deadline
) -> StreamedResponse:
    """Have `variant` answer in parts, all of them before the deadline.

    A request for a stream cannot name a target model, so a multi-model endpoint misses it.

    Raises:
        RejectedInvocationError: the variant did not answer in time, or answered with an error.
        RetiredError: the variant is no longer in service.
    """
    if variant.is_multi_model:
        raise errors.target_model_missing()
    if TARGET_MODEL_HEADER.lower() in invocation.headers:
        raise errors.target_model_unexpected()
    since = time.monotonic()
    with ExitStack() as stack:
        server, _models = stack.enter_context(variant.use(deadline))
        variant.record("Invocations", 1)
        variant.record("InvocationsPerInstance", 1)
        call = _Call(variant, server, invocation, deadline)
        stack.callback(lambda: variant.record("OverheadLatency", time.monotonic() - since - call.seconds))
        stack.enter_context(call.measured())
        with _failures_translated(errors):
            opened = stack.enter_context(closing(call.open()))
            if opened.status != 200:
                raise errors.container_error(ContainerReply(opened.status, opened.headers, opened.read()))
        until_closed = stack.pop_all()
    return StreamedResponse(
        _headers(variant, opened.headers), _parts(server, opened, errors, deadline), until_closed.close
    )


def _parts(server: TritonServer, opened: OpenReply, errors: ErrorResponses, deadline: Deadline) -> Iterator[bytes]:
    try:
        while True:
            with server.loss_noticed():
                some = opened.read_some(deadline.left)
            if not some:
                return
            yield some
    except ServerGoneError:
        raise errors.stream_broken() from None
    except TimeoutError:
        raise errors.stream_timeout() from None


@contextmanager
def _failures_translated(errors: ErrorResponses) -> Iterator[None]:
    try:
        yield
    except ServerGoneError:
        raise errors.container_gone() from None
    except TimeoutError:
        raise errors.container_timeout() from None


@dataclass
class _Call:
    """`seconds` is the time that the server has taken so far, and `status` is that of its last answer."""

    variant: RunningVariant
    server: TritonServer
    invocation: Invocation
    deadline: Deadline
    seconds: float = 0.0
    status: int = 0

    def send(self, path: str, target: str | None = None) -> ContainerReply:
        headers = self._headers if target is None else {**self._headers, TARGET_MODEL_HEADER: target}
        with self.measured():
            reply = self.server.request("POST", path, self.invocation.body, headers, timeout=self.deadline.left)
            self.status = reply.status
        return reply

    def open(self) -> OpenReply:
        body = self.invocation.body
        opened = self.server.open("POST", INVOCATIONS, body, self._headers, timeout=self.deadline.left)
        self.status = opened.status
        return opened

    @property
    def _headers(self) -> dict[str, str]:
        passed = self.invocation.headers
        return {name: value for name in _PASSED_ON if (value := passed.get(name.lower())) is not None}

    @contextmanager
    def measured(self) -> Iterator[None]:
        since, self.status = time.monotonic(), 0
        try:
            yield
        finally:
            took = time.monotonic() - since
            self.seconds += took
            self.variant.record("ModelLatency", took)
            self.variant.record("Invocation4XXErrors", float(400 <= self.status < 500))
            self.variant.record("Invocation5XXErrors", float(self.status >= 500))
            self.variant.record("InvocationModelErrors", float(not 200 <= self.status < 300))


def _send_to_model(call: _Call, models: TargetModels, target: str, errors: ErrorResponses) -> ContainerReply:
    is_path = _TARGET_MODEL.fullmatch(target) is not None and len(target) <= limits.MAX_TARGET_MODEL_LENGTH
    if not is_path or target.startswith("/") or ".." in target.split("/"):
        raise errors.target_model_invalid(target)
    with models.use(target, call.deadline) as path:
        reply = call.send(path, target)
        while reply.status == INSUFFICIENT_STORAGE and models.make_room():
            reply = call.send(path, target)
        return reply


def _headers(variant: RunningVariant, of_reply: Mapping[str, str]) -> dict[str, str]:
    headers = {"x-Amzn-Invoked-Production-Variant": variant.name}
    for name in ("Content-Type", "X-Amzn-SageMaker-Custom-Attributes"):
        if name in of_reply:
            headers[name] = of_reply[name]
    return headers
