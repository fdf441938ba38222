"""CT150 and CT193: whether a Python model reads and makes the tensors of its configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.registry import Problem, in_line, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.modules import python_sources
from cdk_triton.python_models.reader.arrays import numpy_type
from cdk_triton.python_models.reader.tensors import NamedTensor
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig, enum_name


@rule(
    "CT150",
    Severity.WARNING,
    "the tensors of a Python model are not those of its configuration",
    source=backend("python_backend", "src/infer_response.cc", 129, 142),
)
def unknown_tensor(context: CheckContext) -> Iterator[Problem]:
    """A Python model reads or returns a tensor whose name its configuration does not have, or returns another type.

    The server loads the model, so you notice a wrong name only when you send a request. For an input that the
    configuration does not have, `get_input_tensor_by_name` returns `None`. The server removes a tensor from the
    response if the tensor is not an output of the configuration. The caller then gets neither this tensor nor an error.
    In an ensemble, an input of the next step is missing.

    The server does not convert an output to the type of the configuration. The caller gets the type of the array, and
    the next step of an ensemble rejects it. Without a `dtype`, numpy makes FP64 of numbers with a point: write
    `np.array([0.5], np.float32)` for an output of the type `TYPE_FP32`.

    A list of names, or any other value that is not a text, finds no tensor either.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "LENGTH" data_type: TYPE_INT32 dims: 1 }
        # model/1/model.py
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                texts = [pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy() for request in requests]
                lengths = [np.array([len(text[0])], np.int32) for text in texts]
                return [pb_utils.InferenceResponse([pb_utils.Tensor("LENGHT", length)]) for length in lengths]

    Instead:
        # model/1/model.py
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                texts = [pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy() for request in requests]
                lengths = [np.array([len(text[0])], np.int32) for text in texts]
                return [pb_utils.InferenceResponse([pb_utils.Tensor("LENGTH", length)]) for length in lengths]

    Limits:
        The rule checks only literal names, and lists in a variable or an attribute that is set once. It skips an input
        that the model reads under a condition, or that the model tests, for example for `None`, because such an input
        may be optional. The rule checks the tensors that a model creates only if all of these conditions hold: all
        their names are literals, at least one output is not among these names, and the model calls no other models
        (BLS). For the type, all names must be literals too, and literals must show the type of the array. Of a model
        with `auto_complete_config`, which may add inputs and outputs, the rule checks only the types of names.
    """
    suggestions = Suggestions()
    for each, source in python_sources(context):
        tensors = source.tensors
        if tensors is None:
            continue
        for call in tensors.unnamed:
            yield in_line(
                each.path,
                call.line,
                f"calls {call.function} with a name of the type {call.kind} instead of str, so the model gets None "
                "instead of a tensor",
                f"call {call.function} with each name, and collect the tensors in a list",
            )
        inputs, outputs = _inputs(each.config), _outputs(each.config)
        for tensor in _first(tensors.read, inputs) if each.config.input else ():
            yield in_line(
                each.path,
                tensor.line,
                f"takes the input {tensor.name!r} from a request, but the configuration has no such input, so the "
                "model gets None, and the server would answer the request with an error (AttributeError: 'NoneType' "
                "object has no attribute)",
                _fix(tensor, inputs, "inputs", suggestions),
            )
        made = tensors.made or ()
        missing = outputs.difference(tensor.name for tensor in made)
        for tensor in _first(made, outputs) if missing else ():
            yield in_line(
                each.path,
                tensor.line,
                f"makes the tensor {tensor.name!r}, which is not an output of the configuration, so the server would "
                "remove this tensor from the response without a message; the model never makes "
                f"{listed_in_quotes(sorted(missing))}",
                _fix(tensor, missing, "outputs", suggestions),
            )
        types = {tensor.name: enum_name(tensor, "data_type").removeprefix("TYPE_") for tensor in each.config.output}
        for tensor in made:
            wanted = types.get(tensor.name, "INVALID")
            if tensor.kind and wanted not in (tensor.kind, "INVALID"):
                yield in_line(
                    each.path,
                    tensor.line,
                    f"makes the output {tensor.name!r} of the type {tensor.kind}, but the configuration says {wanted}, "
                    f"so callers would get {tensor.kind}, and the next step of an ensemble would reject it",
                    of_type(wanted),
                )


@rule(
    "CT193",
    Severity.WARNING,
    "a Python model requires an input that its configuration makes optional",
    source=backend("python_backend", "src/resources/triton_python_backend_utils.py", 123, 147),
)
def required_input(context: CheckContext) -> Iterator[Problem]:
    """For an optional input that a request leaves out, `get_input_tensor_by_name` returns `None`.

    So the server responds to such a request with an error, although the configuration allows the request.

    Example:
        # model/config.pbtxt
        backend: "python"
        input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        input { name: "LIMIT" data_type: TYPE_INT32 dims: 1 optional: true }
        output { name: "OUT" data_type: TYPE_INT32 dims: 1 }
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                limits = [pb_utils.get_input_tensor_by_name(request, "LIMIT").as_numpy() for request in requests]
                return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", limit)]) for limit in limits]

    Instead:
        # model/1/model.py
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                given = [pb_utils.get_input_tensor_by_name(request, "LIMIT") for request in requests]
                limits = [np.array([8], np.int32) if tensor is None else tensor.as_numpy() for tensor in given]
                return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", limit)]) for limit in limits]

    Limits:
        The rule checks only `execute`, and only literal names. It skips an input that the model reads under a
        condition or tests, and a model that asks a request for its `inputs()` or passes over requests with `continue`.
        The rule skips a model with `auto_complete_config`.
    """
    for each, source in python_sources(context):
        optional = {tensor.name for tensor in each.config.input if tensor.optional}
        tensors = source.tensors.required if source.tensors is not None and optional else ()
        for tensor in (first for first in _first(tensors, ()) if first.name in optional):
            yield in_line(
                each.path,
                tensor.line,
                f"uses the input {tensor.name!r} of every request, but the configuration makes this input optional, so "
                "the server would answer a request without it with an error: AttributeError: 'NoneType' object has no "
                "attribute",
                "use the tensor only if it is not None, or remove `optional: true` from the input",
            )


def of_type(kind: str) -> str:
    """How to make a tensor of one of Triton's types."""
    dtype = numpy_type(kind)
    made_with = "with pb_utils.Tensor.from_dlpack()"
    return f"make a tensor of the type {kind} {made_with}" if dtype is None else f"make the array with dtype={dtype}"


def _first(tensors: Collection[NamedTensor], known: Collection[str]) -> Iterator[NamedTensor]:
    """The first mention of each unknown tensor."""
    first = {tensor.name: tensor for tensor in reversed(tuple(tensors))}
    return (tensor for name, tensor in sorted(first.items(), key=lambda item: item[1]) if name not in known)


def _fix(tensor: NamedTensor, names: Collection[str], side: str, suggestions: Suggestions) -> str:
    close = suggestions.closest(tensor.name, sorted(names))
    if close is not None:
        return f"did you mean {close!r}?"
    known = listed_in_quotes(sorted(names))
    return f"use a name of the configuration's {side} ({known}), or add {tensor.name!r} to the {side}"


def _inputs(config: ModelConfig) -> set[str]:
    """The tensors that a request may contain."""
    sequences = config.sequence_batching
    controls = {control.name for control in sequences.control_input}
    states = {state.input_name for state in sequences.state}
    made = {name for batch_input in config.batch_input for name in batch_input.target_name}
    return {tensor.name for tensor in config.input} | controls | states | made


def _outputs(config: ModelConfig) -> set[str]:
    """The tensors that a response may contain, or that the server keeps."""
    states = {state.output_name for state in config.sequence_batching.state}
    return {tensor.name for tensor in config.output} | states
