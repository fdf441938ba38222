"""CT650 to CT669: whether the endpoint can hold the archive, and pass on what the entry model takes and returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from cdk_triton._wording import in_words
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.decoupling import DECOUPLED_REJECTED, STREAM, known_inference_type, way_to_stream
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import server
from cdk_triton.onnx_models.dimensions import output_dims
from cdk_triton.sagemaker.limits import MAX_INVOCATION_BYTES, MAX_VOLUME_GB
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import DataType, ModelInput, ModelOutput

_INVOKE_ENDPOINT = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"
_CREATE_ENDPOINT_CONFIG = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ProductionVariant.html"

_TYPES = {number: name.removeprefix("TYPE_") for name, number in DataType.items()}
_BYTES = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 1),
    **dict.fromkeys(("FP16", "BF16", "INT16", "UINT16"), 2),
    **dict.fromkeys(("FP32", "INT32", "UINT32"), 4),
    **dict.fromkeys(("FP64", "INT64", "UINT64"), 8),
}

# Characters of one element with its comma: at least that many, and about that many where it is a float, which is
# written with all digits of a double.
_JSON_BYTES = {"BOOL": 5, "FP32": 20, "FP64": 20}
_NOT_IN_JSON = ("FP16", "BF16")
_JSON_BYTES_OF_INTEGER = 2

# Backends whose outputs have the shapes of the configuration.
_DECLARED = ("onnxruntime", "tensorrt")

_GIB = 1024**3


@rule(
    "CT650",
    Severity.WARNING,
    "a response is larger than SageMaker allows",
    source=_INVOKE_ENDPOINT,
)
def answer_too_large(context: CheckContext) -> Iterator[Problem]:
    """The outputs of the entry model are together larger than 6 MiB for one item, in binary form or in JSON.

    SageMaker rejects such a response after the model has computed it. In JSON, a float takes about 20 bytes instead of
    4, so a response that fits in binary form may be too large in JSON. `TritonClient` requests binary outputs. Return
    smaller outputs, request only some of them, or use asynchronous inference on a single-model endpoint.

    Example:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "token_ids" data_type: TYPE_INT32 dims: 512 }
        output { name: "last_hidden_state" data_type: TYPE_FP32 dims: [ 512, 768 ] }

    Instead:
        # model/config.pbtxt
        backend: "python"
        max_batch_size: 8
        input { name: "token_ids" data_type: TYPE_INT32 dims: 512 }
        output { name: "embedding" data_type: TYPE_FP32 dims: 768 }

    Limits:
        The sizes in JSON are estimates. The rule counts only outputs with fixed shapes, and no strings, so a response
        may be larger. It also counts an output with a dimension of -1 if the ONNX file shows the size: the file has a
        number for this dimension, or a name that is also the name of an input's dimension, for which the configuration
        has a number. A request may name only some of the outputs, so its response may be smaller.
    """
    model = context.entry
    if model is None or model.config is None or _smallest_answer(context) > MAX_INVOCATION_BYTES:
        return  # the second is reported by CT655
    size = _Size.of(model.config.output, output_dims(context, model))
    if size.binary > MAX_INVOCATION_BYTES:
        ways = ["return smaller outputs", "request only some of the outputs"]
        if 0 < size.json <= MAX_INVOCATION_BYTES:
            ways.insert(0, "request JSON outputs if the integers are small")
        yield _too_large(model, "output", size, _or_asynchronous(context, ways))
    elif size.json > MAX_INVOCATION_BYTES:
        yield _too_large(
            model, "output", size, "request binary outputs, as TritonClient does, or return smaller outputs"
        )


@rule(
    "CT655",
    Severity.ERROR,
    "every response is larger than SageMaker allows",
    source=_INVOKE_ENDPOINT,
    modes=("multi",),
)
def every_answer_too_large(context: CheckContext) -> Iterator[Problem]:
    """Each output of the entry model alone is larger than 6 MiB for one item, in binary form and in JSON.

    SageMaker rejects every response, whichever outputs a request names. Asynchronous inference, response streams and
    batch transform have other limits, but they cannot name a target model. Return smaller outputs, or serve the model
    on a single-model endpoint with asynchronous inference. For a single-model endpoint, CT650 reports such outputs as a
    warning. The rule skips a model if one of its outputs has a `label_filename`. Callers of such a model may request
    the classes of this output, which are a small response.

    Example:
        $ cdk-triton validate . --mode multi
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "image" data_type: TYPE_FP32 dims: [ 3, 64, 64 ] }
        output { name: "features" data_type: TYPE_FP32 dims: [ 2048, 32, 32 ] }

    Instead:
        # model/config.pbtxt
        backend: "onnxruntime"
        max_batch_size: 8
        input { name: "image" data_type: TYPE_FP32 dims: [ 3, 64, 64 ] }
        output { name: "features" data_type: TYPE_FP32 dims: 2048 }

    Limits:
        The rule is for outputs of ONNX Runtime and TensorRT models, also as steps of an ensemble, because their outputs
        have the shapes of the configuration. A Python model may return less than it declares. A request may ask for the
        classes of any numeric output. If all callers do this, give the output a `label_filename`.
    """
    model = context.entry
    if model is None or model.config is None or _smallest_answer(context) <= MAX_INVOCATION_BYTES:
        return
    size = _Size.of(model.config.output, output_dims(context, model))
    fix = f"return smaller outputs, or serve {model.name!r} on a single-model endpoint with asynchronous inference"
    yield _too_large(model, "output", size, fix)


@rule(
    "CT651",
    Severity.WARNING,
    "a request is larger than SageMaker allows",
    source=_INVOKE_ENDPOINT,
)
def request_too_large(context: CheckContext) -> Iterator[Problem]:
    """The required inputs of the entry model are together larger than 6 MiB for one item, in binary form or in JSON.

    SageMaker rejects such a request. In JSON, a float takes about 20 bytes instead of 4, and an integer takes at least
    2 bytes. So a request that fits in binary form may be too large in JSON. `TritonClient` sends binary inputs. Accept
    smaller inputs, or use asynchronous inference on a single-model endpoint.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "image" data_type: TYPE_FP32 dims: [ 3, 1024, 1024 ] }
        output { name: "label" data_type: TYPE_INT32 dims: 1 }

    Instead:
        # model/config.pbtxt
        backend: "python"
        input { name: "jpeg" data_type: TYPE_UINT8 dims: -1 }
        output { name: "label" data_type: TYPE_INT32 dims: 1 }

    Limits:
        The sizes in JSON are estimates. The rule counts only inputs with fixed shapes, and neither strings nor optional
        inputs, so a request may be larger.
    """
    model = context.entry
    if model is None or model.config is None:
        return
    size = _Size.of(given for given in model.config.input if not given.optional)
    if size.binary > MAX_INVOCATION_BYTES:
        yield _too_large(
            model, "input", size, _or_asynchronous(context, ["accept smaller inputs", "accept compressed input (JPEG)"])
        )
    elif size.json > MAX_INVOCATION_BYTES:
        yield _too_large(model, "input", size, "send binary inputs, as TritonClient does, or accept smaller inputs")


@rule(
    "CT652",
    Severity.ERROR,
    "the endpoint rejects every invocation of a decoupled model",
    source=server("src/sagemaker_server.cc", 444, 461),
)
def decoupled_entry(context: CheckContext) -> Iterator[Problem]:
    """The model that callers invoke is decoupled, so it may return any number of responses to a request.

    The server loads the model, but the endpoint returns an error for every invocation, because SageMaker's protocol
    allows exactly one response. Only a single-model container with `inference_type="generate_stream"` in its
    environment returns several responses, which callers read with `TritonClient.stream`. With
    `inference_type="generate"`, the container accepts a decoupled model that returns one response. Releases before
    25.03 do not read `inference_type`.

    Example:
        $ cdk-triton validate . --mode multi
        # model/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }

    Instead:
        # model/config.pbtxt
        backend: "python"

    Limits:
        CT340 reports an ensemble with a decoupled step. If the environment of a single-model container is not known,
        CT653 reports the model instead.
    """
    if known_inference_type(context) == "infer" and (model := _decoupled(context)) is not None:
        yield Problem(
            model.config_path,
            f"{model.name!r} is decoupled, so the endpoint would answer every invocation with: {DECOUPLED_REJECTED}",
            f"remove model_transaction_policy and return one response for each request, or {way_to_stream(context)}",
            "model_transaction_policy.decoupled",
        )


@rule(
    "CT653",
    Severity.WARNING,
    "a decoupled model needs an endpoint that streams",
    source=server("src/http_server.cc", 3275, 3293),
    modes=("single",),
)
def decoupled_entry_of_unknown_container(context: CheckContext) -> Iterator[Problem]:
    """The model that callers invoke is decoupled, and the container's environment is not given.

    By default, the endpoint rejects every invocation of such a model. With `inference_type="generate_stream"` (from
    25.03 on), the endpoint streams the responses, and callers read them with `TritonClient.stream`. Set this value, or
    remove `model_transaction_policy` and return one response for each request.

    Example:
        # model/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }

    Instead:
        # model/config.pbtxt
        backend: "python"
    """
    if known_inference_type(context) is None and (model := _decoupled(context)) is not None:
        yield Problem(
            model.config_path,
            f"{model.name!r} is decoupled; unless the container's inference_type is 'generate_stream', the "
            f"endpoint would answer every invocation with: {DECOUPLED_REJECTED}",
            f"set inference_type='generate_stream' and call {STREAM}, or remove model_transaction_policy and return "
            "one response for each request",
            "model_transaction_policy.decoupled",
        )


@rule(
    "CT654",
    Severity.WARNING,
    "the models are larger than the volume of an instance",
    source=_CREATE_ENDPOINT_CONFIG,
)
def larger_than_volume(context: CheckContext) -> Iterator[Problem]:
    """All files together are larger than 512 GB, the largest volume that SageMaker attaches to an instance.

    SageMaker downloads an archive to the instance and unpacks it there, so the volume must hold all files. AWS does not
    state a limit for the size of an archive. Split the models over several endpoints, or store their weights in fewer
    bits.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        # model/1/model.safetensors
        (600 GB of weights)

    Instead:
        # model/1/model.safetensors
        (16 GB of weights)

    Limits:
        An instance type with local disks may hold more. The volume of your endpoint may be much smaller than 512 GB.
    """
    size = context.repository.size
    if size > MAX_VOLUME_GB * _GIB:
        yield Problem(
            ".",
            f"the files have {size / _GIB:,.0f} GB together, but the largest volume that SageMaker attaches to an "
            f"instance has {MAX_VOLUME_GB} GB, so the instance could not download and unpack them",
            "split the models over several endpoints, or store their weights in fewer bits",
        )


@dataclass(frozen=True)
class _Size:
    """The bytes of some tensors for one item, as binary and as JSON; 0 if JSON cannot express them."""

    binary: int
    json: int

    @classmethod
    def of(cls, tensors: Iterable[ModelInput | ModelOutput], known: Mapping[str, Sequence[int]] = {}) -> _Size:
        """Add tensors up; `known` has dimensions that the configuration leaves open."""
        binary = json = 0
        expressible = True
        for tensor in tensors:
            kind = _TYPES.get(tensor.data_type, "")
            dims = known.get(tensor.name, tensor.dims)
            if kind not in _BYTES or not dims or any(dim < 1 for dim in dims):
                continue
            elements = prod(dims)
            binary += elements * _BYTES[kind]
            json += elements * _JSON_BYTES.get(kind, _JSON_BYTES_OF_INTEGER)
            expressible = expressible and kind not in _NOT_IN_JSON
        return cls(binary, json if expressible else 0)


def _smallest_answer(context: CheckContext) -> int:
    """The bytes of the smallest output of a multi-model endpoint; 0 if a response may be smaller."""
    model = context.entry
    if context.mode != "multi" or model is None or model.config is None:
        return 0
    known = output_dims(context, model)
    return min((_smallest(context, model, output, known) for output in model.config.output), default=0)


def _smallest(context: CheckContext, model: Model, output: ModelOutput, known: Mapping[str, Sequence[int]]) -> int:
    """The bytes of an output in the smaller of its two forms: in JSON, an integer of 8 bytes may have 2."""
    if output.label_filename or _source_of(context, model, output).backend_name not in _DECLARED:
        return 0
    size = _Size.of([output], known)
    return min(size.binary, size.json) if size.json else size.binary


def _source_of(context: CheckContext, model: Model, output: ModelOutput) -> Model:
    """The model that computes an output: the model itself, or that of an ensemble's step."""
    steps = [] if model.config is None else model.config.ensemble_scheduling.step
    for step in steps:
        if output.name in step.output_map.values():
            return context.repository.model(step.model_name) or model
    return model


def _or_asynchronous(context: CheckContext, ways: Sequence[str]) -> str:
    """The ways to a smaller payload, and asynchronous inference if the endpoint may offer it."""
    return in_words([*ways] if context.mode == "multi" else [*ways, "use asynchronous inference"])


def _too_large(model: Model, field: str, size: _Size, fix: str) -> Problem:
    what = {"input": "the inputs", "output": "the outputs"}[field]
    as_json = f", about {size.json:,} as JSON" if size.json else ""
    return Problem(
        model.config_path,
        f"{what} of {model.name!r} have {size.binary:,} bytes for one item{as_json}, but SageMaker passes on at most "
        f"{MAX_INVOCATION_BYTES:,}",
        fix,
        field,
    )


def _decoupled(context: CheckContext) -> Model | None:
    model = context.entry
    if model is None or model.config is None or model.is_ensemble:
        return None
    return model if model.config.model_transaction_policy.decoupled else None
