"""What `execute` of a Python model reads of its requests. It is parsed, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cdk_triton.python_models.reader.calls import own_nodes
from cdk_triton.python_models.reader.names import bound_names

__all__ = ["attributes_of_requests"]


def attributes_of_requests(execute: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Attribute]:
    """The attributes that the method certainly reads of a request.

    A request is what a loop over the second parameter gives, or an item of this parameter. What may not run, or may be
    meant to fail, is left out: the branches of a condition, what follows a condition that may return, the bodies of
    `try` and `with`, and an attribute whose name is also a text in the method, as in `hasattr(request, "trace")`.
    """
    parameters = execute.args.posonlyargs + execute.args.args
    if len(parameters) != 2 or any(parameters[1].arg in bound_names(each) for each in execute.body):
        return
    requests = parameters[1].arg
    nodes = list(own_nodes(*execute.body))
    given = [name for node in nodes for name in _given(node, requests)]
    stored = [node for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    names = {name.id for name in given} - {node.id for node in stored if node not in given}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    for node in _certain(execute.body):
        match node:
            case ast.Attribute(attr=attribute) if attribute in texts:
                pass
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Load()) if name in names:
                yield node
            case ast.Attribute(value=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int()))):
                if name == requests:
                    yield node


def _given(node: ast.AST, requests: str) -> Iterator[ast.Name]:
    """The variable that a loop over the requests sets."""
    match node:
        case (
            ast.For(target=ast.Name() as target, iter=ast.Name(id=name))
            | ast.comprehension(target=ast.Name() as target, iter=ast.Name(id=name))
        ) if name == requests:
            yield target
        case (
            ast.For(target=ast.Tuple(elts=[_, ast.Name() as target]), iter=call)
            | ast.comprehension(target=ast.Tuple(elts=[_, ast.Name() as target]), iter=call)
        ):
            match call:
                case ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=name), *_]) if name == requests:
                    yield target


def _certain(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes that run if the body runs, those of loops among them."""
    pending = _until_a_way_out(body)
    while pending:
        node = pending.pop()
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef() | ast.Try():
                pass
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                pending.append(test)
            case ast.BoolOp(values=[first, *_]):
                pending.append(first)
            case ast.Match(subject=subject):
                pending.append(subject)
            case ast.With(items=items) | ast.AsyncWith(items=items):  # which may suppress an error
                pending += items
            case ast.For(target=target, iter=iterated, body=inner):
                pending += [target, iterated, *_until_a_way_out(inner)]
            case _:
                pending += ast.iter_child_nodes(node)


def _until_a_way_out(body: list[ast.stmt]) -> list[ast.AST]:
    """The statements up to a condition that may leave the method or the loop."""
    found: list[ast.AST] = []
    for statement in body:
        found.append(statement)
        inner = own_nodes(statement) if isinstance(statement, ast.If | ast.Match | ast.Try) else ()
        if any(isinstance(node, ast.Return | ast.Continue | ast.Break) for node in inner):
            break
    return found
