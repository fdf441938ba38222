"""The options of calls: the name, type and meaning of each, for all methods of all clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict, cast

from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tritonclient.http import InferRequestedOutput

__all__ = [
    "GenerateOptions",
    "GenerateRequestOptions",
    "IdentifierOptions",
    "InferManyOptions",
    "InferOptions",
    "RequestOptions",
    "SingleRequestOptions",
    "SubmitOptions",
    "TargetOptions",
    "listed",
    "single_model",
]


# A mapping of options contains only what the caller gave: the default of an option is in the `get` that reads it.


class TargetOptions(TypedDict, total=False):
    """Options of `infer`, `infer_many`, `sequence` and `for_repository` that select the model.

    The methods of a `RepositoryClient` do not accept these options, because the client already has its model.

    Attributes:
        ensemble: the name of the ensemble to invoke on a multi-model endpoint, whether a stack deployed it or it was
            published. Needs a client that `from_parameters` created.
        target_model: the archive to invoke on a multi-model endpoint, as `TritonMultiModel.target_model(…)` returns it.
        target_variant: the production variant to invoke; by default SageMaker chooses by the variants' weights.
        inference_component: the component to invoke on an endpoint with components, as
            `TritonComponent.component_name` returns it.
    """

    ensemble: str | None
    target_model: str | None
    target_variant: str | None
    inference_component: str | None


class RequestOptions(TypedDict, total=False):
    """Options of `infer`, `infer_many` and `submit`, and of `infer` of a sequence.

    Attributes:
        outputs: the names of the requested outputs (or tritonclient's `InferRequestedOutput`s); all by default.
        parameters: custom parameters of each request, for models that read them.
        priority: the level of each request in Triton's queue, from 1, the highest, to the `priority_levels` of
            `config.pbtxt`; by default the `default_priority_level` there. An ensemble passes the level on to each step.
        queue_timeout_seconds: how long each request may wait in the queue of a model. It has an effect only if
            `config.pbtxt` sets `allow_timeout_override` and a larger `default_timeout_microseconds`. In an ensemble,
            each step may wait for the whole time.
    """

    outputs: Iterable[str | InferRequestedOutput] | None
    parameters: Mapping[str, str | int | bool] | None
    priority: int | None
    queue_timeout_seconds: float | None


class IdentifierOptions(TypedDict, total=False):
    """Options of `infer`, `submit`, `stream` and `generate` that identify a request.

    Attributes:
        request_id: your own identifier of the request. It is also in `InferenceResult.request_id`, and in Triton's
            trace and verbose log.
        inference_id: SageMaker's identifier of the request, of up to 64 characters. Captured data contains it.
        custom_attributes: text of up to 1,024 characters that SageMaker passes on to the container in a header.
    """

    request_id: str
    inference_id: str | None
    custom_attributes: str | None


class SingleRequestOptions(RequestOptions, IdentifierOptions, total=False):
    """Options of `infer` and `submit`, in addition to `RequestOptions` and `IdentifierOptions`.

    Attributes:
        binary: whether to send and request binary tensors; True by default. With False, request and response are JSON,
            which is readable, but several times larger and slower, limited in size by Triton, and without FP16, BF16
            and bytes that are not UTF-8.
    """

    binary: bool


class SubmitOptions(SingleRequestOptions, total=False):
    """Options of `submit`, in addition to `SingleRequestOptions`.

    Attributes:
        queue_seconds: how long the request may wait in the queue, 60 to 21,600 seconds; 21,600 by default.
        invocation_seconds: how long the container may work on the request, 1 to 3,600 seconds; 900 by default.
    """

    queue_seconds: int
    invocation_seconds: int


class InferOptions(SingleRequestOptions, TargetOptions, total=False):
    """The options of `infer`: the options of one request, and the options that select the model."""


class InferManyOptions(RequestOptions, TargetOptions, total=False):
    """The options of `infer_many`: the options of every request, and the options that select the model."""


class GenerateRequestOptions(IdentifierOptions, total=False):
    """Options of `stream` and `generate` for one request. Triton's generate protocol has no other options.

    Attributes:
        parameters: custom parameters of the request, for models that read them.
    """

    parameters: Mapping[str, str | int | bool] | None


class GenerateOptions(GenerateRequestOptions, total=False):
    """The options of `stream` and `generate`; without a target model, because multi-model endpoints do not generate.

    Attributes:
        target_variant: the production variant to invoke; by default SageMaker chooses by the variants' weights.
        inference_component: the component to invoke on an endpoint with components.
    """

    target_variant: str | None
    inference_component: str | None


def single_model(target: TargetOptions) -> GenerateOptions:
    """Return the options of a target for a request to generate.

    Raises:
        ConfigurationError: they name a model of a multi-model endpoint.
    """
    for name in ("ensemble", "target_model"):
        if target.get(name) is not None:
            raise ConfigurationError(
                f"stream() and generate() cannot call {name}={target[name]!r}, because containers of multi-model "
                "endpoints always infer: deploy the model as a TritonModel, and omit this option"
            )
    kept = {name: value for name, value in target.items() if name not in ("ensemble", "target_model")}
    return cast("GenerateOptions", kept)


def listed(outputs: Iterable[str | InferRequestedOutput] | None) -> list[str | InferRequestedOutput] | None:
    """Return outputs that can be read more than once; a text is the name of one output."""
    if outputs is None:
        return None
    return [outputs] if isinstance(outputs, str) else list(outputs)
