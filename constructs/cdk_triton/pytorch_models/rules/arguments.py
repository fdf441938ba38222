"""CT842 to CT846: whether the configuration of a TorchScript model fits the signature of its `forward`."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.pytorch_models.models import ScriptedModel, scripted_rule
from cdk_triton.pytorch_models.naming import Naming, index_in, naming_of
from cdk_triton.pytorch_models.reader.signature import Argument, Type
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import enum_name

_SOURCE = "src/pt/model_instance_state.cc"

_TENSOR, _TEXTS = Type("Tensor"), Type("List", (Type("str"),))
_DICTIONARY = Type("Dict", (Type("str"), _TENSOR))
_SCALARS = ("int", "float", "bool", "str", "number", "NoneType", "complex", "Device")
_CONTROLS = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_CORRID")


@scripted_rule(
    "CT842",
    Severity.ERROR,
    "forward of a PyTorch model has an argument that the backend rejects",
    source=backend("pytorch_backend", _SOURCE, 1326, 1358),
)
def rejected_argument(each: ScriptedModel) -> Iterator[Problem]:
    """Each argument of `forward` must be a tensor or a list, or the only argument a dictionary of tensors.

    The server does not load a model with an optional argument, a number, a boolean, a text or a tuple, even if the
    argument has a default. Export a module whose `forward` takes only tensors, and sets the other values itself.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt
        def forward(self, x: Tensor, scale: float=1.) -> Tensor

    Instead:
        # model/1/model.pt
        def forward(self, x: Tensor) -> Tensor
    """
    rejected = each.rejected
    if rejected is None:
        return
    if any(argument.type.name == "Dict" for argument in each.forward.arguments[1:]):
        words = (
            "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is "
            "supported."
        )
    else:
        words = (
            f"An input of type '{rejected.type}' was detected in the model. Only a single input of type Dict(str, "
            "Tensor) or input(s) of type Tensor are supported."
        )
    yield each.unloadable(
        f"the argument {rejected.name!r} of forward has the type {rejected.type.annotation}",
        words,
        "export a module whose forward takes only tensors, for example one that calls the model with the other values",
    )


@scripted_rule(
    "CT843",
    Severity.ERROR,
    "a configuration has more or fewer inputs than forward of the PyTorch model",
    source=backend("pytorch_backend", _SOURCE, 1360, 1371),
)
def other_number_of_inputs(each: ScriptedModel) -> Iterator[Problem]:
    """The configuration of a TorchScript model must have one input for each argument of `forward`.

    The server counts batch inputs, the controls of sequences and the input of each state as inputs, and arguments that
    have a default as arguments. If the numbers differ, the server does not load the model. A model whose only argument
    is a dictionary takes any number of inputs.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "input_ids" data_type: TYPE_INT64 dims: 128 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt
        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "input_ids" data_type: TYPE_INT64 dims: 128 }
        input { name: "attention_mask" data_type: TYPE_INT64 dims: 128 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
    """
    arguments, given = each.forward.arguments, _number_of_inputs(each)
    if each.takes_dictionary or each.rejected is not None or not arguments or not each.config.input:
        return  # the last is CT218's
    if given != len(arguments):
        yield each.owner.unloadable(
            "input",
            f"forward in {each.file.path} has the arguments {_listed(arguments)}, and the configuration has {given} "
            f"input{'s'[: given != 1]}",
            f"unable to load model '{each.name}', configuration expects {given} inputs, model provides "
            f"{len(arguments)}",
            "write an input for each argument, with its name, or export the model with other arguments",
        )


def _number_of_inputs(each: ScriptedModel) -> int:
    batching = each.config.sequence_batching
    kinds = {enum_name(one, "kind") for control in batching.control_input for one in control.control}
    controls = sum(kind in kinds for kind in _CONTROLS)
    return len(each.config.input) + len(each.config.batch_input) + controls + len(batching.state)


def _listed(arguments: tuple[Argument, ...]) -> str:
    return listed_in_quotes(each.name for each in arguments)


@scripted_rule(
    "CT844",
    Severity.ERROR,
    "an input of a PyTorch model does not fit its argument",
    source=backend("pytorch_backend", _SOURCE, 1163, 1215),
)
def other_kind_of_argument(each: ScriptedModel) -> Iterator[Problem]:
    """The backend passes an input of `TYPE_STRING` as a list of texts, and every other input as a tensor.

    The argument of `forward` must have the type `List[str]` or `Tensor` accordingly. If the only argument is a
    dictionary, its type must be `Dict[str, Tensor]`. The server loads a model with any other list or dictionary, but
    every request fails.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "images" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt
        def forward(self, images: List[Tensor]) -> Tensor

    Instead:
        # model/1/model.pt
        def forward(self, images: Tensor) -> Tensor
    """
    arguments = each.forward.arguments
    if each.rejected is not None:
        return
    for index, (tensor, place) in enumerate(zip(each.config.input, each.places, strict=True)):
        is_text = enum_name(tensor, "data_type") == "TYPE_STRING"
        if each.takes_dictionary:
            argument, given, wanted = arguments[0], _DICTIONARY, _DICTIONARY
            if is_text:
                given = Type("Dict", (Type("str"), _TEXTS))
        elif place < len(arguments):
            argument, given = arguments[place], _TEXTS if is_text else _TENSOR
            wanted = argument.type
        else:
            continue  # CT848 reports it
        if given == wanted == argument.type:
            continue
        yield each.owner.problem(
            f"input[{index}].data_type",
            f"the input {tensor.name!r} is {enum_name(tensor, 'data_type')}, and the argument {argument.name!r} of "
            f"forward in {each.file.path} has the type {argument.type.annotation}, so every request to {each.name!r} "
            f"would fail: PyTorch execute failure: Expected a value of type '{argument.type}' for argument "
            f"'{argument.name}' but instead found type '{given}'",
            _fitting(argument.type, is_text=is_text),
        )


def _fitting(wanted: Type, *, is_text: bool) -> str:
    if wanted == _TEXTS:
        return "write data_type: TYPE_STRING, or export the model with a tensor as the argument"
    if wanted == _TENSOR:
        return "write the type of the tensor, or export the model with an argument of the type List[str]"
    if wanted.name == "Dict":
        return "export the model with an argument of the type Dict[str, Tensor]" if not is_text else "pass tensors only"
    return f"export a module whose forward takes {'List[str]' if is_text else 'tensors, one argument for each'}"


@scripted_rule(
    "CT845",
    Severity.ERROR,
    "the backend cannot return the result of a PyTorch model",
    source=backend("pytorch_backend", _SOURCE, 316, 356),
)
def unusable_result(each: ScriptedModel) -> Iterator[Problem]:
    """`forward` must return a tensor, a list of texts, or a tuple of these, and not a list or dictionary of tensors.

    The server loads the model, but every request fails. Many models of Hugging Face's transformers return a dictionary,
    unless you load them with `return_dict=False` or `torchscript=True`.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt
        def forward(self, x: Tensor) -> Dict[str, Tensor]

    Instead:
        # model/1/model.pt
        def forward(self, x: Tensor) -> Tensor

    Limits:
        The rule skips results whose type shows no fault, such as `Optional[Tensor]`, `Any`, and named tuples.
    """
    words = _fault_of_result(each.forward.result)
    if words:
        yield each.problem(
            f"forward returns {each.forward.result.annotation}, so every request to {each.name!r} would fail: PyTorch "
            f"execute failure: {words}",
            "export a module whose forward returns a tensor or a tuple of tensors",
        )


def _fault_of_result(result: Type) -> str:
    if result.name == "Tuple":
        return next((fault for fault in map(_fault_of_part, range(len(result.of)), result.of) if fault), "")
    if result.name == "List" and result.of != _TEXTS.of:
        return f"output must be of type Tensor or List[str], received List[{_element(result)}]"
    if result.name == "Dict" or result.name in _SCALARS:
        return (
            "output must be of type Tensor, List[str] or Tuple containing one of these two types. It should not be a "
            "List / Dictionary of Tensors or a Scalar"
        )
    return ""


def _fault_of_part(index: int, part: Type) -> str:
    if part.name == "List" and part.of != _TEXTS.of:
        return f"output at index {index} must be of type Tensor or List[str], received List[{_element(part)}]"
    names = {"Dict": "GenericDict", "Tuple": "Tuple", "int": "Int", "float": "Double", "bool": "Bool", "str": "String"}
    name = names.get(part.name)
    return f"Expected Tensor but got {name}" if name else ""


def _element(part: Type) -> str:
    return str(part.of[0]) if part.of else ""


@scripted_rule(
    "CT846",
    Severity.ERROR,
    "a configuration names more outputs than the PyTorch model returns",
    source=backend("pytorch_backend", _SOURCE, 735, 757),
)
def missing_output(each: ScriptedModel) -> Iterator[Problem]:
    """An output of the configuration, or of a state, has an index that the result of `forward` does not have.

    If all outputs are named `<name>__<index>`, the index selects the result, from 0 on. Otherwise, the place in the
    configuration does. The server loads the model, but every request fails.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__1" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt
        def forward(self, x: Tensor) -> Tensor

    Instead:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }

    Limits:
        The rule checks only models that return a tensor, a list of texts, or a tuple of these.
    """
    number = _number_of_results(each.forward.result)
    if number is None:
        return
    for field, name, index in _outputs(each):
        if index >= number:
            yield each.owner.problem(
                field,
                f"the output {name!r} is number {index} of the results, and forward in {each.file.path} returns "
                f"{each.forward.result.annotation}, so every request to {each.name!r} would fail: The output {name} in "
                f"the model configuration refers to an output index which doesn't exist. This model has {number} "
                "outputs",
                "remove the output, or name the outputs by their places in the result, from 0 on: OUTPUT__0",
            )


def _number_of_results(result: Type) -> int | None:
    if result in (_TENSOR, _TEXTS):
        return 1
    return len(result.of) if result.name == "Tuple" and not _fault_of_result(result) else None


def _outputs(each: ScriptedModel) -> Iterator[tuple[str, str, int]]:
    """The outputs, and those of states: field, name, and index in the result."""
    by_index = naming_of([tensor.name for tensor in each.config.output], []) is Naming.INDEX
    for place, tensor in enumerate(each.config.output):
        yield f"output[{place}].name", tensor.name, (index_in(tensor.name) or 0) if by_index else place
    for place, state in enumerate(each.config.sequence_batching.state):
        index = index_in(state.output_name)
        if index is not None:
            yield f"sequence_batching.state[{place}].output_name", state.output_name, index
