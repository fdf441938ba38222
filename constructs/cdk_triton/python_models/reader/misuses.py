"""Uses of the server's classes that certainly raise an error of Python. The source is parsed, never executed.

A value counts if it is written in the call, or if a variable has it that the function sets only once. The types of the
parameters are those of `PYBIND11_EMBEDDED_MODULE` in python_backend's src/pb_stub.cc.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from cdk_triton.python_models.reader.calls import certain_type
from cdk_triton.python_models.reader.names import Reference
from cdk_triton.python_models.reader.signatures import INCOMPATIBLE, OF_RESPONSE, Misuse, unsupported_signatures
from cdk_triton.python_models.reader.variables import Function, Variables

__all__ = ["Misuse", "misuses"]

_NO_EXCEPTIONS = ("TritonError", "InferenceResponse", "InferenceRequest", "Tensor")
_POSITIONS = {"InferenceResponse": ("output_tensors", "error"), "Tensor": ("name", "values")}

# Class → parameter → the types that pybind11 certainly rejects, and the fix.
_NO_INTEGER = ("str", "float", "NoneType", "list")
_NO_LIST = ("str", "dict", "int", "float", "tensor", "array", "NoneType")
_TENSORS = "pass a list of tensors, such as [pb_utils.Tensor(name, values)]"
_ERROR = "pass pb_utils.TritonError(message)"
_REJECTED: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("InferenceRequest", "inputs"): (_NO_LIST, _TENSORS),
    ("InferenceRequest", "requested_output_names"): (
        ("str", "dict", "int", "float", "tensor", "NoneType"),
        'pass a list of names, such as ["OUT"]',
    ),
    ("InferenceRequest", "model_name"): (("int", "list", "NoneType"), "pass the name as a str"),
    ("InferenceRequest", "model_version"): (_NO_INTEGER, "pass an int, such as model_version=1"),
    ("InferenceRequest", "flags"): (_NO_INTEGER, "pass an int"),
    ("InferenceRequest", "timeout"): (_NO_INTEGER, "pass an int, which counts microseconds"),
    ("InferenceRequest", "request_id"): (("int", "float", "list", "NoneType"), "pass the identifier as a str"),
    ("InferenceResponse", "output_tensors"): (_NO_LIST, _TENSORS),
    ("InferenceResponse", "error"): (("str", "int", "dict", "list", "exception"), _ERROR),
    ("Tensor", "values"): (("method",), "call the method: as_numpy()"),
}
_IN_COROUTINE = " in a coroutine"
_NO_PARAMETER = ("float", "list", "dict", "tuple", "NoneType", "bytes")
_OF_ELEMENTS = {
    "inputs": (("str", "int", "float", "dict", "list", "array"), _TENSORS),
    "output_tensors": (("str", "int", "float", "dict", "list", "array"), _TENSORS),
    "requested_output_names": (("int", "float", "list", "tensor", "NoneType"), "pass a list of names"),
}


def misuses(nodes: Sequence[ast.AST], utils: Collection[str]) -> Iterator[Misuse]:
    """The uses in a module.

    Args:
        nodes: the nodes of the module.
        utils: the names of the server's module.
    """
    expected = {inner for node in nodes if isinstance(node, ast.With) and _expects(node) for inner in ast.walk(node)}
    yield from unsupported_signatures(nodes, utils, expected)
    if not utils:
        return
    is_nested = any(isinstance(node, ast.alias) and node.name == "nest_asyncio" for node in nodes)
    execute = {
        method
        for node in nodes
        if isinstance(node, ast.ClassDef) and node.name == "TritonPythonModel"
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "execute" and not method.decorator_list
    }
    for node in nodes:
        if isinstance(node, Function):
            function = _Function(node, utils)
            yield from function.misuses(expected)
            if not is_nested:
                yield from function.outside_a_loop() if node in execute else function.inside_a_loop()


def _expects(node: ast.With) -> bool:
    """Whether a test expects an error of what is below: `with self.assertRaises(TypeError):`."""
    return any("Raises" in ast.unparse(item.context_expr) for item in node.items)


class _Function:
    def __init__(self, function: Function, utils: Collection[str]) -> None:
        self._utils = utils
        self._function = function
        self._variables = Variables(function)
        self._resolved = self._variables.resolved

    def misuses(self, expected: Collection[ast.AST]) -> Iterator[Misuse]:
        for node in self._variables.nodes:
            match node:
                case _ if node in expected:
                    pass
                case ast.Await(value=awaited):
                    yield from self._awaited(awaited)
                case ast.Raise(exc=ast.expr() as raised):
                    yield from self._raised(raised)
                case ast.Call():
                    yield from self._arguments(node)
                case ast.Attribute(ctx=ast.Load()):
                    yield from self._attribute(node)

    def outside_a_loop(self) -> Iterator[Misuse]:
        """The calls that need a running event loop: the server calls a plain `execute` without one."""
        for node in self._variables.nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=owner, attr="async_exec")):
                    if self._made(owner) == "InferenceRequest":
                        fix = "call exec(), or write async def execute and await async_exec()"
                        said = "RuntimeError: no running event loop"
                        yield Misuse(Reference(node.lineno, "async_exec"), said, fix, " outside a coroutine")

    def inside_a_loop(self) -> Iterator[Misuse]:
        """The calls of a coroutine that need a thread without a running event loop."""
        if not isinstance(self._function, ast.AsyncFunctionDef):
            return
        for node in self._variables.nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="run")):
                    said = "RuntimeError: asyncio.run() cannot be called from a running event loop"
                    yield Misuse(Reference(node.lineno, "asyncio.run"), said, "write await instead", _IN_COROUTINE)
                case ast.Call(func=ast.Attribute(attr="run_until_complete")):
                    said = "RuntimeError: This event loop is already running"
                    use = Reference(node.lineno, "run_until_complete")
                    yield Misuse(use, said, "write await instead", _IN_COROUTINE)

    def _made(self, value: ast.expr) -> str | None:
        """The name of the function or class of the server's module that makes a value."""
        match self._resolved(value):
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if owner in self._utils:
                return name
        return None

    def _raised(self, raised: ast.expr) -> Iterator[Misuse]:
        name = self._made(raised)
        match raised:
            case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if owner in self._utils:
                name = attribute
        if name in _NO_EXCEPTIONS:
            said = "TypeError: exceptions must derive from BaseException"
            fix = "raise pb_utils.TritonModelException(message)"
            yield Misuse(Reference(raised.lineno, f"raise {name}"), said, fix)

    def _awaited(self, awaited: ast.expr) -> Iterator[Misuse]:
        match self._resolved(awaited):
            case ast.Call(func=ast.Attribute(value=request, attr="exec")):
                if self._made(request) == "InferenceRequest":
                    said = (
                        "TypeError: object c_python_backend_utils.InferenceResponse can't be used in 'await' expression"
                    )
                    yield Misuse(Reference(awaited.lineno, "await exec()"), said, "write await request.async_exec()")

    def _attribute(self, node: ast.Attribute) -> Iterator[Misuse]:
        """An attribute that the response to a request for another model does not have."""
        if node.attr in OF_RESPONSE or node.attr.startswith("__") or not self._is_response(node.value):
            return
        said = f"AttributeError: 'c_python_backend_utils.InferenceResponse' object has no attribute '{node.attr}'"
        fix = "take a tensor first, such as pb_utils.get_output_tensor_by_name(response, name).as_numpy()"
        yield Misuse(Reference(node.lineno, f"<response>.{node.attr}"), said, fix)

    def _is_response(self, value: ast.expr) -> bool:
        match self._resolved(value):
            case ast.Call(func=ast.Attribute(value=request, attr="exec"), args=[], keywords=[]):
                return self._made(request) == "InferenceRequest"
            case ast.Await(value=ast.Call(func=ast.Attribute(value=request, attr="async_exec"), args=[], keywords=[])):
                return self._made(request) == "InferenceRequest"
        return False

    def _arguments(self, call: ast.Call) -> Iterator[Misuse]:
        """The first argument of a call that certainly has a wrong type."""
        name = self._made(call)
        if name is None or any(isinstance(each, ast.Starred) for each in call.args):
            return
        given = [*zip(_POSITIONS.get(name, ()), call.args, strict=False)]
        given += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
        for parameter, value in given:
            wrong, fix = _REJECTED.get((name, parameter), ((), ""))
            kind = self._kind(value)
            if kind in wrong:
                yield Misuse(Reference(call.lineno, f"{name}({parameter}=<{kind}>)"), INCOMPATIBLE, fix)
                return
            if (name, parameter) == ("Tensor", "values") and _is_array_of_texts(self._resolved(value)):
                said, fix = "NumPy dtype is not supported.", "write dtype=np.object_ where the array is made"
                yield Misuse(Reference(call.lineno, "Tensor(<name>, <array of str>)"), said, fix)
                return
            if parameter == "parameters" and (misuse := self._parameter(name, value)) is not None:
                yield misuse
                return
            wrong, fix = _OF_ELEMENTS.get(parameter, ((), ""))
            for element in self._elements(value):
                kind = self._kind(element)
                if kind in wrong:
                    yield Misuse(Reference(call.lineno, f"{name}({parameter}=[<{kind}>])"), INCOMPATIBLE, fix)
                    return

    def _parameter(self, name: str, parameters: ast.expr) -> Misuse | None:
        """The first parameter of a request or response whose value certainly has a type that no parameter has."""
        match self._variables.unchanged(parameters):
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    kind = self._kind(value)
                    if kind in _NO_PARAMETER and isinstance(key, ast.Constant):
                        said = f"Expect parameters values to have type bool/int/str, found type <class '{kind}'>"
                        use = f"{name}(parameters={{{key.value!r}: <{kind}>}})"
                        return Misuse(Reference(value.lineno, use), said, "pass a str, a bool or an int")
        return None

    def _elements(self, value: ast.expr) -> list[ast.expr]:
        """The elements of a list that is written in the call."""
        match value:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return elements
        return []

    def _kind(self, value: ast.expr) -> str | None:
        """The type of a value, as far as the function shows it."""
        match value:
            case ast.Name(id=name) if name in self._variables.exceptions:
                return "exception"
        match self._resolved(value):
            case ast.Call(func=ast.Name(id="str")):
                return "str"
            case ast.Call(func=ast.Attribute(value=tensor, attr="as_numpy"), args=[], keywords=[]):
                return "array" if self._is_tensor(tensor) else None
            case ast.Attribute(value=tensor, attr="as_numpy") if self._is_tensor(tensor):
                return "method"
            case found:
                if self._made(found) == "TritonModelException":
                    return "exception"
                return "tensor" if self._is_tensor(found) else certain_type(found)

    def _is_tensor(self, value: ast.expr) -> bool:
        return self._made(value) in ("Tensor", "get_input_tensor_by_name", "get_output_tensor_by_name")


def _is_array_of_texts(value: ast.expr) -> bool:
    """Whether numpy certainly gives an array the type `<U`, which no type of Triton is (src/pb_stub_utils.cc)."""
    match value:
        case ast.Call(func=ast.Attribute(attr="astype"), args=[kind], keywords=[]):
            return _is_text_type(kind)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="array" | "asarray"),
            args=[_],
            keywords=[ast.keyword(arg="dtype", value=kind)],
        ):
            return _is_text_type(kind)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="array" | "asarray"), args=[values], keywords=[]
        ):
            return _has_texts(values)
    return False


def _is_text_type(kind: ast.expr) -> bool:
    match kind:
        case ast.Name(id="str") | ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="str_"):
            return True
    return False


def _has_texts(values: ast.expr) -> bool:
    """Whether all values of a nested list are texts."""
    match values:
        case ast.List(elts=[_, *_] as elements) | ast.Tuple(elts=[_, *_] as elements):
            return all(_is_text(each) or _has_texts(each) for each in elements)
        case ast.ListComp(elt=element):
            return _is_text(element) or _has_texts(element)
        case ast.BinOp(left=ast.List() as repeated, op=ast.Mult()):
            return _has_texts(repeated)
    return False


def _is_text(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="str")):
            return True
    return certain_type(value) == "str"
