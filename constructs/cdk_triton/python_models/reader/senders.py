"""The responses that a Python model sends itself, with `request.get_response_sender()`. The source is never executed.

A response counts if it is certainly sent. What is below a condition does not count, and neither does what follows a
condition that may return: the model may send one response there, and several only to callers that ask for them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cdk_triton.python_models.reader.calls import own_nodes
from cdk_triton.python_models.reader.names import bound_by

__all__ = ["second_response"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_GET = "get_response_sender"
_POLICY = ("decoupled", "transaction_policy")


def second_response(nodes: Sequence[ast.AST]) -> int:
    """The first line that certainly sends a second response to a request; 0 if there is none.

    Args:
        nodes: the nodes of the module.
    """
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    if _GET not in attributes or any(_names_policy(node) for node in nodes):
        return 0
    called = {"execute", *attributes, *(node.id for node in nodes if isinstance(node, ast.Name))}
    functions = [node for node in nodes if isinstance(node, _Function) and node.name in called]
    helpers = {
        function.name: index
        for function in functions
        for index, name in enumerate(_parameters(function))
        if _Sender(name).lines(function.body)
    }
    found = [
        line
        for function in functions
        for name, statements in _senders(function)
        for line in _Sender(name, helpers).lines(statements)[1:2]
    ]
    return min(found, default=0)


def _names_policy(node: ast.AST) -> bool:
    """Whether the source names the transaction policy, so that it may send several responses only where it can."""
    match node:
        case ast.Name(id=text) | ast.Attribute(attr=text) | ast.arg(arg=text) | ast.alias(name=text):
            return any(word in text for word in _POLICY)
        case ast.Subscript(slice=ast.Constant(value=str(text))) | ast.Call(args=[ast.Constant(value=str(text)), *_]):
            return any(word in text for word in _POLICY)
    return False


def _parameters(function: _Function) -> list[str]:
    """The arguments of a call, without the object itself."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] == ["self"] else names


def _senders(function: _Function) -> Iterator[tuple[str, Sequence[ast.stmt]]]:
    """The expressions that may be a sender, with the statements in which they are the same one."""
    nodes = list(own_nodes(*function.body))
    bound = [name for node in (*nodes, *ast.walk(function.args)) for name in bound_by(node)]
    bound += _parameters(function)
    own = [node for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"]
    stored = {node.attr for node in own if not isinstance(node.ctx, ast.Load)}
    for attribute in sorted({node.attr for node in own} - stored):
        yield f"self.{attribute}", function.body
    for name in _parameters(function):
        if bound.count(name) == 1:
            yield name, function.body
            yield f"{name}.{_GET}()", function.body
    for node in (function, *nodes):
        match node:
            case ast.For(target=ast.Name(id=name), body=body) if bound.count(name) == 1:
                yield f"{name}.{_GET}()", body
        blocks: list[object] = [getattr(node, part, None) for part in ("body", "orelse", "finalbody")]
        for block in (each for each in blocks if isinstance(each, list)):
            for index, statement in enumerate(block):
                match statement:
                    case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=attribute))):
                        if attribute == _GET and bound.count(name) == 1:
                            yield name, block[index + 1 :]


@dataclass(frozen=True)
class _Sender:
    """An expression that may be the sender of one request.

    Attributes:
        name: the expression.
        helpers: the functions that send a response with one of their arguments, with its position.
    """

    name: str
    helpers: Mapping[str, int] = field(default_factory=dict)

    def lines(self, statements: Sequence[ast.stmt], *, in_loop: bool = False) -> list[int]:
        """The lines of the responses that these statements certainly send; that of a loop is there twice."""
        found: list[int] = []
        for statement in statements:
            match statement:
                case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                    break
                case ast.For(body=body) | ast.AsyncFor(body=body) | ast.While(body=body):
                    found += [] if _leaves(body) else self.lines(body, in_loop=True) * 2
                case ast.If(body=body, orelse=orelse):
                    first, second = (self.lines(part, in_loop=in_loop) for part in (body, orelse))
                    found += first if len(first) < len(second) else second
                case ast.With(body=body) | ast.AsyncWith(body=body):
                    found += self.lines(body, in_loop=in_loop)
                case ast.Try(body=body, orelse=orelse, finalbody=final):
                    found += self.lines([*body, *orelse, *final], in_loop=in_loop)
                case ast.Expr(value=ast.Await(value=value)) | ast.Expr(value=value):
                    found += self._of(value)
            if _leaves([statement]) or self._may_end(statement, in_loop=in_loop):
                break
        return found

    def _of(self, value: ast.expr) -> list[int]:
        match value:
            case ast.Call() if self._is_sent_by(value):
                return [value.lineno]
            case ast.ListComp(elt=element, generators=loops) if not any(loop.ifs for loop in loops):
                return self._of(element) * 2
        return []

    def _is_sent_by(self, call: ast.Call) -> bool:
        """Whether a call sends a response, and not only the flag that it was the last one."""
        match call.func:
            case ast.Attribute(value=owner, attr="send") if ast.unparse(owner) == self.name:
                given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "response")]
                is_sender = "sender" in self.name or "Response" in ast.unparse(call)  # and no socket, for example
                return is_sender and any(not isinstance(each, ast.Constant) for each in given)
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self.helpers:
                return [ast.unparse(each) for each in call.args[self.helpers[name] :][:1]] == [self.name]
        return False

    def _may_end(self, statement: ast.stmt, *, in_loop: bool) -> bool:
        """Whether what follows a statement may be meant for other requests than those that end there.

        In a loop, it may also end with the last of several responses.
        """
        handled = statement.handlers if isinstance(statement, ast.Try) else []
        nodes = set(own_nodes(statement)) - set(own_nodes(*handled))
        sends = any(isinstance(node, ast.Call) and self._is_sent_by(node) for node in nodes)
        ends = (ast.Continue,) if in_loop and not sends else (ast.Return, ast.Break, ast.Continue)
        return any(isinstance(node, ends) for node in nodes)


def _leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements certainly end the loop or the function in which they are, if nothing raises an exception."""
    for statement in statements:
        match statement:
            case ast.Return() | ast.Raise() | ast.Break():
                return True
            case ast.With(body=body) | ast.AsyncWith(body=body) if _leaves(body):
                return True
            case ast.Try(body=body, orelse=orelse, finalbody=final) if _leaves([*body, *orelse, *final]):
                return True
            case ast.If(body=body, orelse=orelse) if _leaves(body) and _leaves(orelse):
                return True
    return False
