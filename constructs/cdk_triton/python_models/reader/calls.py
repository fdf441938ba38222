"""How a function of a Python source can be called, and what a call returns as far as the source shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Method", "certain_type", "method_of", "own_nodes"]

# The methods of the server's `ModelConfig` that return nothing, and the one that returns something else
# (python_backend: src/resources/triton_python_backend_utils.py).
_OF_CONFIG = {
    "add_input": "NoneType",
    "add_output": "NoneType",
    "set_dynamic_batching": "NoneType",
    "set_max_batch_size": "NoneType",
    "set_model_transaction_policy": "NoneType",
    "as_dict": "dict",
}
# Calls that do not keep a request, and the methods of a request that do not answer it either (python_backend:
# src/pb_stub.cc).
_READING = frozenset({"get_input_tensor_by_name", "len", "print", "str", "repr"})
_OF_REQUEST = frozenset(
    {
        *("inputs", "request_id", "correlation_id", "requested_output_names", "flags", "set_flags", "timeout"),
        *("parameters", "trace", "is_cancelled"),
    }
)
_NO_RESPONSES = ("dict", "c_python_backend_utils.Tensor")  # what models put into the list of responses by mistake
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_TYPES: dict[type[ast.expr], str] = {
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.GeneratorExp: "generator",
    ast.JoinedStr: "str",
    ast.Lambda: "function",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Set: "set",
    ast.SetComp: "set",
    ast.Tuple: "tuple",
}


@dataclass(frozen=True)
class Method:
    """A function in a class.

    Attributes:
        name: its name.
        line: the line where it begins.
        least: the least number of arguments of a call, without `self`.
        most: the largest number; None if there is no limit.
        needs_keywords: whether some of its arguments can only be given by name.
        returns: the types that a call returns, `NoneType` or `dict`; empty where the source does not show all of them.
        is_abstract: whether a subclass has to define it.
        keeps_responses: whether it makes responses, but neither sends them nor passes a request to code that may do so.
    """

    name: str
    line: int
    least: int
    most: int | None
    needs_keywords: bool
    returns: tuple[str, ...] = ()
    is_abstract: bool = False
    keeps_responses: bool = False

    def takes(self, count: int) -> bool:
        """Whether it can be called with this number of arguments."""
        return not self.needs_keywords and self.least <= count and (self.most is None or count <= self.most)


def method_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str, own: int, *, is_abstract: bool = False
) -> Method:
    """How a function can be called.

    Args:
        function: the function.
        name: its name in the class.
        own: how many arguments Python itself passes first: 1 for `self`, 0 for a static method.
        is_abstract: whether it is marked as abstract.
    """
    arguments = function.args
    count = len(arguments.posonlyargs) + len(arguments.args)
    return Method(
        name,
        function.lineno,
        least=max(count - len(arguments.defaults) - own, 0),
        most=None if arguments.vararg else count - own,
        needs_keywords=any(default is None for default in arguments.kw_defaults),
        returns=tuple(dict.fromkeys(_returned(function, own))),
        is_abstract=is_abstract,
        keeps_responses=own < count and _keeps_responses(function, (arguments.posonlyargs + arguments.args)[own].arg),
    )


def _listed(value: ast.expr | None) -> str | None:
    """`list of dict` for a list whose elements are certainly not responses."""
    match value:
        case ast.ListComp(elt=element) | ast.List(elts=[element, *_]):
            kind = certain_type(element) or _called(element, None)
            return f"list of {kind}" if kind in _NO_RESPONSES else None
    return None


def _collected(value: ast.expr | None, nodes: list[ast.AST]) -> str | None:
    """The type of a variable that only gets lists; the type of its elements too if all are appended alike."""
    if not isinstance(value, ast.Name):
        return None
    given, appended, uses = [], [], 0
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=own) if name == value.id:
                given.append(own)
                uses += 1
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[element]):
                if name == value.id:
                    appended.append(certain_type(element) or _called(element, None))
                    uses += 1
            case ast.Return(value=ast.Name(id=name)) if name == value.id:
                uses += 1
    stores = [node for node in nodes if isinstance(node, ast.Name) and node.id == value.id and _is_stored(node)]
    if not given or len(stores) != len(given) or any(certain_type(own) != "list" for own in given):
        return None
    mentions = sum(isinstance(node, ast.Name) and node.id == value.id for node in nodes)
    is_empty_at_first = all(isinstance(own, ast.List) and not own.elts for own in given)
    if uses == mentions and is_empty_at_first and len(set(appended)) == 1 and appended[0] in _NO_RESPONSES:
        return f"list of {appended[0]}"
    return "list"


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def certain_type(value: ast.expr) -> str | None:
    """The type of an expression, if its syntax shows it."""
    if isinstance(value, ast.Constant):
        return type(value.value).__name__
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        return "bool"
    return _TYPES.get(type(value))


def own_nodes(*parts: ast.AST) -> Iterator[ast.AST]:
    """The nodes of parts of a function, without those that have a scope of their own."""
    pending = list(parts)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)


def _returned(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, own: int) -> list[str]:
    """The types that a call returns; empty if one of them is not known, or if the call may never return."""
    parameters = function.args.posonlyargs + function.args.args
    config = parameters[own].arg if own < len(parameters) else None
    if isinstance(function, ast.Lambda):
        kind = certain_type(function.body) or _called(function.body, config)
        return [] if kind is None else [kind]
    nodes = list(own_nodes(*function.body))
    yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)
    if isinstance(function, ast.AsyncFunctionDef):
        return ["async_generator" if yields else "coroutine"]
    if yields:
        return ["generator"]
    if any(isinstance(node, ast.Name) and node.id == config and not isinstance(node.ctx, ast.Load) for node in nodes):
        config = None
    found = [] if _never_completes(function.body) else ["NoneType"]
    for node in nodes:
        if isinstance(node, ast.Return):
            kind = "NoneType" if node.value is None else certain_type(node.value) or _called(node.value, config)
            kind = _listed(node.value) or kind or _collected(node.value, nodes)
            if kind is None:
                return []
            found.append(kind)
    return found


def _keeps_responses(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, requests: str) -> bool:
    """Whether a function makes responses, but neither sends them nor passes a request on to code that may send them."""
    nodes = list(ast.walk(function))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    if "InferenceResponse" not in attributes or attributes & {"get_response_sender", "set_release_flags"}:
        return False
    names = {requests}
    for node in nodes:
        if isinstance(node, ast.For | ast.comprehension) and names & {each.id for each in _iterated(node.iter)}:
            names |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    read = {name for node in nodes for name in _only_read(node)}
    return not any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names and node not in read
        for node in nodes
    )


def _only_read(node: ast.AST) -> Iterator[ast.Name]:
    """The names whose values a node reads and certainly does not pass on."""
    match node:
        case ast.For(iter=iterable) | ast.comprehension(iter=iterable):
            yield from _iterated(iterable)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in _OF_REQUEST:
            yield from _named(value)
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr="get_input_tensor_by_name" as name), args=values, keywords=named
        ) if name in _READING:
            yield from (each for value in (*values, *(one.value for one in named)) for each in _named(value))


def _iterated(iterable: ast.expr) -> Iterator[ast.Name]:
    """The names whose values a loop iterates over."""
    match iterable:
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed"), args=values):
            yield from (each for value in values for each in _named(value))
        case _:
            yield from _named(iterable)


def _named(value: ast.expr) -> Iterator[ast.Name]:
    """The name in an expression that is a name, or an item of it."""
    while isinstance(value, ast.Subscript | ast.Starred):
        value = value.value
    if isinstance(value, ast.Name):
        yield value


def _called(value: ast.expr, config: str | None) -> str | None:
    """The type that a call returns: of a method of the configuration, or of a class of the server or Python."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if name == config:
            return _OF_CONFIG.get(attribute)
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="InferenceResponse" | "Tensor" as attribute)):
            return f"c_python_backend_utils.{attribute}"
        case ast.Call(func=ast.Name(id="tuple" | "dict" | "set" as name)):
            return name
    return None


def _never_completes(body: list[ast.stmt]) -> bool:
    """Whether the end of a body may never be reached, because its last statement leaves it or may end the process."""
    match body[-1]:
        case (
            ast.Return()
            | ast.Raise()
            | ast.While(test=ast.Constant(value=True | 1))
            | ast.Assert(test=ast.Constant(value=False))
        ):
            return True
        case ast.If(body=first, orelse=[_, *_] as second):
            return _never_completes(first) and _never_completes(second)
        case ast.With(body=inner):
            return _never_completes(inner)
        case ast.Try(body=inner, handlers=handlers, orelse=orelse, finalbody=final):
            if final and _never_completes(final):
                return True
            return _never_completes(orelse or inner) and all(_never_completes(each.body) for each in handlers)
        case ast.Match(cases=cases):
            return all(_never_completes(case.body) for case in cases) and _is_any(cases[-1])
        case ast.Expr(
            value=ast.Call(func=ast.Name(id="exit" | "quit") | ast.Attribute(attr="exit" | "_exit" | "abort"))
        ):
            return True
    return False


def _is_any(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
