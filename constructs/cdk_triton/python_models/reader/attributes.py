"""The attributes of its own object that a class reads and never sets: `self.anwser`. The source is never executed."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from cdk_triton.python_models.reader.names import Reference

__all__ = ["hands_itself_over", "unset_attributes"]

_ASKING = frozenset({"hasattr", "getattr", "setattr", "delattr"})
_CALLED = ("__init__", "initialize", "execute", "finalize", "is_ready")
_OTHER_WAYS = frozenset({"__getattr__", "__getattribute__", "__setstate__", "__slots__"})


def unset_attributes(
    lineage: Sequence[ast.ClassDef], members: Container[str], nodes: Sequence[ast.AST]
) -> tuple[Reference, ...]:
    """The attributes that methods read of their object, and that nothing in the module sets.

    It applies only to classes that do not pass their object to other code (`hands_itself_over`).

    Args:
        lineage: the class and its bases; they are all in the module.
        members: the names that the bodies of the classes set, and the attributes that the module sets on any object.
        nodes: the nodes of the module.
    """
    if any(each.decorator_list for each in lineage) or any(name in members for name in _OTHER_WAYS):
        return ()
    asked = set(_asked(nodes)) | {name for each in lineage for name in _declared(each)}
    found: set[Reference] = set()
    for method, own in _methods(lineage, nodes):
        for node in _nodes_of(method.body, own):
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Load()) if owner == own:
                    is_private = name.startswith("_") and "__" in name[1:]  # `self._Model__size` is `self.__size`
                    if not (name in members or name in asked or hasattr(object, name) or is_private):
                        found.add(Reference(node.lineno, name))
    return tuple(sorted(found))


def hands_itself_over(lineage: Sequence[ast.ClassDef], nodes: Sequence[ast.AST]) -> bool:
    """Whether a method passes its object to other code, which may call its methods and set its attributes."""
    for method, own in _methods(lineage, nodes):
        everywhere = [node for statement in method.body for node in ast.walk(statement)]
        entered = [node.value for node in everywhere if isinstance(node, ast.Attribute)]
        if any(isinstance(node, ast.Name) and node.id == own and node not in entered for node in everywhere):
            return True
    return False


def _methods(
    lineage: Sequence[ast.ClassDef], nodes: Sequence[ast.AST]
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """The methods of the classes that get an object, each with the name that it gives the object."""
    for method in (each for given in lineage for each in given.body):
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and not method.decorator_list:
            own = next((each.arg for each in (*method.args.posonlyargs, *method.args.args)), None)
            if own is not None and _is_method(method.name, own, nodes):
                yield method, own


def _is_method(name: str, own: str, nodes: Sequence[ast.AST]) -> bool:
    """Whether a function of a class gets an object of the class: its name, its first parameter or a call shows it."""
    if name in _CALLED or own == "self":
        return True
    read = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr == name)
    return any(isinstance(node.value, ast.Name) and node.value.id == own for node in read)


def _nodes_of(body: Sequence[ast.AST], own: str) -> Iterator[ast.AST]:
    """The nodes that run with the object, without those whose errors are caught."""
    for node in body:
        match node:
            case ast.FunctionDef(args=given) | ast.AsyncFunctionDef(args=given) | ast.Lambda(args=given):
                if own in {each.arg for each in ast.walk(given) if isinstance(each, ast.arg)}:
                    continue
            case ast.Try(body=guarded, handlers=[_, *_]):
                yield from _nodes_of([each for each in ast.iter_child_nodes(node) if each not in guarded], own)
                continue
            case ast.With(items=items) if any("suppress" in ast.unparse(item.context_expr) for item in items):
                continue
        yield node
        yield from _nodes_of(list(ast.iter_child_nodes(node)), own)


def _asked(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The attributes that the module checks for existence."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[_, ast.Constant(value=str(attribute)), *_]) if name in _ASKING:
                yield attribute


def _declared(given: ast.ClassDef) -> Iterator[str]:
    for statement in given.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
