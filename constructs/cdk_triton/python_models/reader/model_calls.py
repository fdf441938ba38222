"""The requests that a Python source sends to other models (BLS), as far as literals show them. It is never executed.

A value counts if it is written in the call, or if a variable has it that the function sets only once. A text counts
too if an attribute of `self` has it that the module sets only once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cdk_triton.python_models.reader.arrays import array_shape, array_type
from cdk_triton.python_models.reader.signatures import OF_RESPONSE
from cdk_triton.python_models.reader.variables import Function, Variables, attributes_set_once, constants

__all__ = ["OF_PLACE", "ModelCall", "model_calls"]

_Read = TypeVar("_Read")

OF_PLACE = frozenset({"is_cpu", "to_dlpack", "from_dlpack"})
"""With one of these attributes, a source may handle tensors in the memory of the GPU."""


@dataclass(frozen=True)
class ModelCall:
    """A request for another model.

    Attributes:
        line: where the source creates the request.
        model: the name of the other model.
        version: the version that the request names; None if it names none, or one that is not known.
        inputs: the names of the inputs that are known.
        has_all_inputs: whether these are all inputs.
        passed_on: those that come from the request that the source answers; None if the request passes on all of them.
        types: the inputs whose type the source shows, with this type, such as `FP64`.
        shapes: the inputs whose number of dimensions the source shows, with their shape; -1 is any size.
        outputs: the names of the requested outputs that are known.
        has_all_outputs: whether these are all of them.
        has_correlation_id: whether the request may have the identifier of a sequence.
        plain: the line of a call that sends the request without `decoupled=True`; 0 if there is none.
        misread: the line of a call with `decoupled=True` whose result is certainly used as a single response; 0 if
            there is none.
        on_host: the outputs that `as_numpy` reads and that may be on the GPU, with their lines; "" is any of them.
        unrequested: the outputs that `as_numpy` reads at once and that the request does not ask for, with their lines.
    """

    line: int
    model: str
    version: int | None = None
    inputs: tuple[str, ...] = ()
    has_all_inputs: bool = False
    passed_on: tuple[str, ...] | None = ()
    types: tuple[tuple[str, str], ...] = ()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    outputs: tuple[str, ...] = ()
    has_all_outputs: bool = False
    has_correlation_id: bool = False
    plain: int = 0
    misread: int = 0
    on_host: tuple[tuple[int, str], ...] = ()
    unrequested: tuple[tuple[int, str], ...] = ()


def model_calls(nodes: Sequence[ast.AST]) -> tuple[ModelCall, ...]:
    """The requests of a module for models that it names.

    Args:
        nodes: the nodes of the module.
    """
    if not any(_is_request(node) for node in nodes):
        return ()
    handles_places = any(isinstance(node, ast.Attribute) and node.attr in OF_PLACE for node in nodes)
    set_once, given = constants(nodes), attributes_set_once(nodes)
    attributes = {name: value for name, value in given.items() if isinstance(value, ast.Constant)}
    functions = [_Function(node, set_once, attributes) for node in nodes if isinstance(node, Function)]
    found = [call for function in functions for call in function.calls(handles_places)]
    return tuple(sorted(dict.fromkeys(found), key=lambda call: call.line))


def _is_request(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="InferenceRequest") | ast.Name(id="InferenceRequest")):
            return True
    return False


class _Function:
    def __init__(
        self, function: Function, constants: Mapping[str, ast.expr], attributes: Mapping[str, ast.expr]
    ) -> None:
        self._variables = Variables(function, constants)
        self._resolved = self._variables.resolved
        self._attributes = attributes
        self._sent: dict[ast.expr | None, list[tuple[ast.Call, bool | None]]] = {}
        self._read: dict[ast.expr | None, set[tuple[int, str]]] = {}
        self._read_at_once: dict[ast.expr | None, set[tuple[int, str]]] = {}
        self._used_as_one: set[ast.expr | None] = set()
        for node in self._variables.nodes:
            self._note(node)

    def calls(self, handles_places: bool) -> Iterator[ModelCall]:
        for node in self._variables.nodes:
            if isinstance(node, ast.Call) and _is_request(node):
                given = {str(keyword.arg): keyword.value for keyword in node.keywords}
                model = self._text(given.get("model_name"))
                if model is not None:
                    yield self._call(node, model, given, handles_places)

    def _call(self, node: ast.Call, model: str, given: Mapping[str, ast.expr], handles_places: bool) -> ModelCall:
        tensors = self._elements(given.get("inputs"))
        inputs = [self._tensor(each) for each in tensors or ()]
        outputs = [self._text(each) for each in self._elements(given.get("requested_output_names")) or ()]
        all_outputs = set(outputs) if outputs and None not in outputs else None
        sent = self._sent.get(node, [])
        is_open = bool(node.args) or "None" in given
        return ModelCall(
            node.lineno,
            model,
            self._version(given.get("model_version")),
            tuple(name for name in inputs if name is not None),
            tensors is not None and None not in inputs and not is_open and not self._additions(given.get("inputs")),
            self._passed_on(given.get("inputs"), tensors or ()),
            tuple(self._of_arrays(tensors or (), array_type)),
            tuple(self._of_arrays(tensors or (), array_shape)),
            tuple(name for name in outputs if name is not None),
            all_outputs is not None and not is_open,
            "correlation_id" in given or is_open,
            plain=next((call.lineno for call, decoupled in sent if decoupled is False), 0),
            misread=next((call.lineno for call, decoupled in sent if decoupled and call in self._used_as_one), 0),
            on_host=()
            if handles_places or "preferred_memory" in given or is_open
            else tuple(sorted({each for call, _ in sent for each in self._read.get(call, ())})),
            unrequested=()
            if all_outputs is None or is_open
            else tuple(
                sorted(
                    {
                        each
                        for call, _ in sent
                        for each in self._read_at_once.get(call, ())
                        if each[1] not in all_outputs
                    }
                )
            ),
        )

    def _text(self, value: ast.expr | None) -> str | None:
        match self._resolved(value):
            case ast.Constant(value=str(text)):
                return text
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self._attributes:
                return self._text(self._attributes[name])
        return None

    def _version(self, value: ast.expr | None) -> int | None:
        match self._resolved(value):
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
        return None

    def _elements(self, value: ast.expr | None) -> list[ast.expr] | None:
        """The elements that a list may have, if only `append` before its use changes it; None if they are not known."""
        added = self._additions(value)
        is_shared = isinstance(value, ast.Name) and self._variables.loads[value.id] != 1 + len(added)
        is_late = value is not None and any(each.lineno > value.lineno for each in added)
        match self._resolved(value):
            case ast.List(elts=elements) | ast.Tuple(elts=elements) if not is_shared and not is_late:
                return None if any(isinstance(each, ast.Starred) for each in elements) else [*elements, *added]
        return None

    def _additions(self, value: ast.expr | None) -> list[ast.expr]:
        """What the function appends to the list in a variable."""
        variable = value.id if isinstance(value, ast.Name) else ""
        found = []
        for node in self._variables.nodes:
            match node:
                case ast.Expr(ast.Call(ast.Attribute(ast.Name(id=name), "append"), [added], [])) if name == variable:
                    found.append(added)
        return found

    def _passed_on(self, inputs: ast.expr | None, tensors: Sequence[ast.expr]) -> tuple[str, ...] | None:
        match self._resolved(inputs):
            case ast.Call(func=ast.Attribute(attr="inputs"), args=[], keywords=[]):
                return None
        found = []
        for each in tensors:
            match self._resolved(each):
                case ast.Call(
                    func=ast.Attribute(attr="get_input_tensor_by_name"), args=[_, ast.Constant(value=str(name))]
                ):
                    found.append(name)
        return tuple(found)

    def _of_arrays(self, tensors: Sequence[ast.expr], read: Callable[..., _Read | None]) -> Iterator[tuple[str, _Read]]:
        """The names of tensors, with what `read` finds of their arrays."""
        for each in tensors:
            match self._resolved(each):
                case ast.Call(func=ast.Attribute(attr="Tensor"), args=[ast.Constant(value=str(name)), values]):
                    if (found := read(values, self._variables.unchanged)) is not None:
                        yield name, found

    def _tensor(self, value: ast.expr) -> str | None:
        """The name of a tensor."""
        match self._resolved(value):
            case ast.Call(func=ast.Attribute(attr="Tensor"), args=[ast.Constant(value=str(name)), *_]):
                return name
            case ast.Call(
                func=ast.Attribute(attr="get_input_tensor_by_name" | "get_output_tensor_by_name"),
                args=[_, ast.Constant(value=str(name))],
            ):
                return name
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="Tensor"), attr="from_dlpack"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                return name
        return None

    def _note(self, node: ast.AST) -> None:
        """Note a call that sends a request, or a use of its result, under the request."""
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="exec" | "async_exec")):
                self._sent.setdefault(self._resolved(owner), []).append((node, _decoupled(node)))
            case ast.Call(func=ast.Attribute(value=owner, attr="as_numpy")):
                match self._resolved(owner):
                    case ast.Call(func=ast.Attribute(attr="get_output_tensor_by_name"), args=[response, named]):
                        sender, name = self._sender(response), self._text(named)
                        self._read.setdefault(sender, set()).add((node.lineno, name or ""))
                        is_asked = isinstance(owner, ast.Name) and self._variables.loads[owner.id] > 1
                        if name is not None and not is_asked:  # whether it is None
                            self._read_at_once.setdefault(sender, set()).add((node.lineno, name))
                    case ast.Subscript(value=tensors):
                        self._note_any(node, tensors)
                    case ast.Name(id=name) if name in self._variables.looped:
                        self._note_any(node, self._variables.looped[name])
            case ast.Attribute(attr=attribute, value=response) if attribute in OF_RESPONSE:
                self._used_as_one.add(self._sender(response))

    def _note_any(self, node: ast.Call, tensors: ast.expr) -> None:
        """Note that `as_numpy` reads one of these tensors, if they are all outputs of a response."""
        match self._resolved(tensors):
            case ast.Call(func=ast.Attribute(value=response, attr="output_tensors"), args=[]):
                self._read.setdefault(self._sender(response), set()).add((node.lineno, ""))

    def _sender(self, response: ast.expr) -> ast.expr | None:
        """The call that sends a request and returns this response."""
        found = self._resolved(response)
        return found.value if isinstance(found, ast.Await) else found


def _decoupled(call: ast.Call) -> bool | None:
    """The value of the argument `decoupled`; None if it is not known."""
    match [*call.args, *(each.value for each in call.keywords)]:
        case []:
            return False
        case [ast.Constant(value=bool(decoupled))]:
            return decoupled
    return None
