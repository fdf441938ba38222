"""CT657 to CT659, and CT662: what the protocol of a container with `generate` or `generate_stream` does not carry."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.decoupling import STREAM, decoupled_models, known_inference_type
from cdk_triton.checks.derived.tensors import ConfiguredTensor, named_tensors
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import server
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.inference_type import GENERATING
from cdk_triton.triton.schema import enum_name

_HTTP = "src/http_server.cc"
_MEMBERS = {"input": ("parameters",), "output": ("model_name", "model_version")}
"""The members of requests and of responses that are never tensors (`ConvertGenerateRequest` and `FinalizeResponse`)."""


@rule(
    "CT657",
    Severity.ERROR,
    "the endpoint returns the error of a second response as a success",
    source=server(_HTTP, 4526, 4545),
    modes=("single",),
    can_be_acknowledged=True,
)
def several_responses_to_generate(context: CheckContext) -> Iterator[Problem]:
    """`inference_type` is `generate`, and the entry model is decoupled, so it may return any number of responses.

    `generate` passes on exactly one response. After a second one, the container answers with status 200 and an error in
    the body. SageMaker counts a success, so no metric and no alarm shows the error. Use `generate_stream`. If the model
    returns exactly one response to each request, acknowledge this error in `cdk-triton.toml`, or with `acknowledge=` of
    `ModelRepository.from_directory`. It is the only error that you can acknowledge.

    Example:
        # environment=ContainerEnvironment(inference_type="generate")
        # model/config.pbtxt
        backend: "python"
        model_transaction_policy { decoupled: true }

    Instead:
        # environment=ContainerEnvironment(inference_type="generate_stream")
    """
    entry = context.entry
    if known_inference_type(context) != "generate" or entry is None or entry.name not in decoupled_models(context):
        return
    cause = decoupled_models(context)[entry.name]
    runs = "is decoupled" if cause == entry.name else f"runs the decoupled model {cause!r}"
    yield Problem(
        entry.config_path,
        f"{entry.name!r} {runs}, but inference_type is 'generate', which turns a second response into an error with "
        "status 200 that no metric counts",
        f"set inference_type='generate_stream' and call {STREAM}, or acknowledge CT657 if the model returns exactly "
        "one response to each request",
    )


@rule(
    "CT658",
    Severity.ERROR,
    "the generate protocol cannot carry a tensor",
    source=server(_HTTP, 690, 716),
    modes=("single",),
)
def tensor_without_json(context: CheckContext) -> Iterator[Problem]:
    """`inference_type` is `generate` or `generate_stream`, and the entry model has a tensor of FP16 or BF16.

    The generate protocol is JSON, in which Triton reads and writes neither of the two types. So the endpoint answers
    every request with an error.

    Example:
        # environment=ContainerEnvironment(inference_type="generate_stream")
        # model/config.pbtxt
        backend: "python"
        input { name: "x" data_type: TYPE_FP16 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }

    Instead:
        # environment=ContainerEnvironment(inference_type="generate_stream")
        # model/config.pbtxt
        backend: "python"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "y" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The rule does not report an optional input, because a request can omit it.
    """
    for tensor in _entry_tensors(context):
        datatype = enum_name(tensor.message, "data_type").removeprefix("TYPE_")
        if datatype not in ("FP16", "BF16") or getattr(tensor.message, "optional", False):
            continue
        work = "reads" if tensor.repeated == "input" else "writes"
        yield tensor.problem(
            "data_type",
            f"the {tensor.text} is {datatype}, but inference_type is {known_inference_type(context)!r}, whose "
            f"protocol is JSON: the server {work} no {datatype} in JSON, so every request would fail",
            "declare the tensor as TYPE_FP32, with a conversion in the model or in a step of the ensemble, or use the "
            "inference_type 'infer'",
        )


@rule(
    "CT659",
    Severity.WARNING,
    "the generate protocol fixes the shape of an input",
    source=server(_HTTP, 3747, 3793),
    modes=("single",),
)
def shape_without_freedom(context: CheckContext) -> Iterator[Problem]:
    """`inference_type` is `generate` or `generate_stream`, and an input of the entry model has several variable dims.

    The generate protocol has no shapes: a request has a list of elements. The server replaces the innermost -1 with the
    number that the fixed dimensions leave, and every other -1 with 1. So no request can have another shape.

    Example:
        # environment=ContainerEnvironment(inference_type="generate_stream")
        # model/config.pbtxt
        backend: "python"
        input { name: "image" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
        output { name: "label" data_type: TYPE_STRING dims: 1 }

    Instead:
        # environment=ContainerEnvironment(inference_type="generate_stream")
        # model/config.pbtxt
        backend: "python"
        input { name: "image" data_type: TYPE_UINT8 dims: [ 224, -1, 3 ] }
        output { name: "label" data_type: TYPE_STRING dims: 1 }

    Limits:
        A batch dimension is a variable dimension, too: an input with another -1 always has one row. The rule does not
        report this.
    """
    kind = known_inference_type(context)
    for tensor in _entry_tensors(context):
        if tensor.repeated != "input" or tensor.dims.count(-1) < 2:
            continue
        yield tensor.problem(
            "dims",
            f"the {tensor.text} has the dims {list(tensor.dims)}, but inference_type is {kind!r}, whose "
            "requests have no shapes: the server makes 1 of every -1 except the innermost",
            "fix all dimensions but one, or send the shape as another input, or use the inference_type 'infer'",
        )


@rule(
    "CT662",
    Severity.ERROR,
    "a tensor has the name of a member of the generate protocol",
    source=server(_HTTP, 4583, 4600),
    modes=("single",),
)
def name_of_a_member(context: CheckContext) -> Iterator[Problem]:
    """`inference_type` is `generate` or `generate_stream`, and the protocol uses the name of a tensor for itself.

    Requests and responses are flat JSON objects. Beside the tensors, a request has the member `parameters`, and a
    response has `model_name` and `model_version`. The server rejects every request with an input `parameters`, and
    callers do not receive an output with one of the other two names.

    Example:
        # environment=ContainerEnvironment(inference_type="generate_stream")
        # model/config.pbtxt
        backend: "python"
        input { name: "parameters" data_type: TYPE_STRING dims: 1 }
        output { name: "text" data_type: TYPE_STRING dims: 1 }

    Instead:
        # environment=ContainerEnvironment(inference_type="generate_stream")
        # model/config.pbtxt
        backend: "python"
        input { name: "settings" data_type: TYPE_STRING dims: 1 }
        output { name: "text" data_type: TYPE_STRING dims: 1 }

    Limits:
        The rule does not report an optional input, because a request can omit it. It does not report the name `id`
        either, although a request cannot have an identifier and an input `id`, and a response with an identifier does
        not have an output `id`. `TritonClient` reads an output `id` as the identifier, so use another name.
    """
    kind = known_inference_type(context)
    for tensor in _entry_tensors(context):
        if tensor.name not in _MEMBERS[tensor.repeated] or getattr(tensor.message, "optional", False):
            continue
        whole, loss = (
            ("requests", "no request can contain the input")
            if tensor.repeated == "input"
            else ("responses", "callers do not receive the output")
        )
        yield tensor.problem(
            "name",
            f"the {tensor.text} has a name that {whole} of the inference_type {kind!r} use for another member, so "
            f"{loss}",
            "rename the tensor in the model, or map it to another name in an ensemble, or use the inference_type "
            "'infer'",
        )


def _entry_tensors(context: CheckContext) -> Iterator[ConfiguredTensor]:
    """The tensors that callers send and receive, of a container that generates."""
    if known_inference_type(context) in GENERATING:
        yield from (each for each in named_tensors(context) if each.owner.model is context.entry)
