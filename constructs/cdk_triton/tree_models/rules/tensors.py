"""CT815 to CT817: the names and types of the tensors of the backend `fil`."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import listed_in_quotes, quoted
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, rapids_triton
from cdk_triton.tree_models.fil_models import FilModel, fil_model_rule
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_INPUT, _OUTPUT = "input__0", "output__0"
_SHAPLEY = "treeshap_output"
_FLOAT = "TYPE_FP32"
_NUMBER_OF_FLOAT = 11  # TRITONSERVER_DataType, which the backend prints


@fil_model_rule(
    "CT815",
    Severity.ERROR,
    "a tensor of a tree model has a name that FIL does not use",
    source=backend("fil_backend", "src/model.h", 57, 138),
)
def other_name(each: FilModel) -> Iterator[Problem]:
    """FIL reads the input `input__0` and writes the output `output__0`, whatever the configuration calls them.

    The server loads a model with other names, and then responds to every request with an error. To give a tensor
    another name for your callers, run the model as a step of an ensemble.

    FIL ignores every other input. The only other output that it writes is `treeshap_output`, the Shapley values.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "features" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
    """
    config = each.owner.config
    sides = {
        "input": (_INPUT, [tensor.name for tensor in config.input], f"unknown request input name {_INPUT}"),
        "output": (
            _OUTPUT,
            [tensor.name for tensor in config.output],
            f"No output with name {_OUTPUT} in configuration.",
        ),
    }
    for side, (name, names, words) in sides.items():
        if not names or name in names or "" in names:
            continue  # CT218 and CT243 report a side without a tensor, CT201 and others a tensor without a name
        yield each.owner.problem(
            f"{side}[0].name",
            f"the {side}s are called {listed_in_quotes(names)}, but FIL uses only {name!r}, so the server would "
            f"respond to every request with an error: {words}",
            f'write name: "{name}"',
        )
    yield from _further(each)


def _further(each: FilModel) -> Iterator[Problem]:
    """The tensors beside those of FIL."""
    inputs = [tensor.name for tensor in each.owner.config.input]
    for index, name in enumerate(inputs):
        if _INPUT in inputs and name not in (_INPUT, ""):
            yield each.owner.problem(
                f"input[{index}].name",
                f"FIL reads only the input {_INPUT!r}, so it would ignore {quoted(name)}, although each "
                "request must have it",
                "remove the input",
            )
    outputs = [tensor.name for tensor in each.owner.config.output]
    for index, name in enumerate(outputs):
        if _OUTPUT in outputs and name not in (_OUTPUT, _SHAPLEY, ""):
            yield each.owner.problem(
                f"output[{index}].name",
                f"FIL writes only the outputs {_OUTPUT!r} and {_SHAPLEY!r}, so responses would not contain "
                f"{quoted(name)}",
                "remove the output",
            )


@fil_model_rule(
    "CT816",
    Severity.ERROR,
    "the input of a tree model is not FP32",
    source=rapids_triton("cpp/include/rapids_triton/triton/input.hpp", 58, 63),
)
def other_input_type(each: FilModel) -> Iterator[Problem]:
    """FIL reads only 32-bit floating-point numbers, and responds with an error to a request with any other type.

    The type in the configuration is the type of every request. Convert the values where you send them, or in a step
    before the model.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP64 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
    """
    for index, tensor in enumerate(each.owner.config.input):
        kind = enum_name(tensor, "data_type")
        is_read = tensor.name == _INPUT or (tensor.name and len(each.owner.config.input) == 1)  # CT815 gives the name
        if is_read and kind not in (_FLOAT, "TYPE_INVALID"):
            yield each.owner.problem(
                f"input[{index}].data_type",
                f"the input {quoted(tensor.name)} is {kind}, so FIL would respond to every request with an error: "
                f"incorrect type {tensor.data_type} for input with required type {_NUMBER_OF_FLOAT}",
                f"write data_type: {_FLOAT}",
            )


@fil_model_rule(
    "CT817",
    Severity.ERROR,
    "the output of a tree model is not FP32",
    source=rapids_triton("cpp/include/rapids_triton/tensor/tensor.hpp", 160, 171),
)
def other_output_type(each: FilModel) -> Iterator[Problem]:
    """FIL writes 32-bit floating-point numbers into `output__0`, also the number of a class.

    If the configuration has another type, the response does not have the type that callers and the steps of an ensemble
    expect.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_INT64 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
    """
    for index, tensor in enumerate(each.owner.config.output):
        kind = enum_name(tensor, "data_type")
        is_written = tensor.name == _OUTPUT or (tensor.name and len(each.owner.config.output) == 1)
        if is_written and kind not in (_FLOAT, "TYPE_INVALID"):
            yield each.owner.problem(
                f"output[{index}].data_type",
                f"the output {quoted(tensor.name)} is {kind}, but FIL writes {_FLOAT}",
                f"write data_type: {_FLOAT}",
            )
