"""Which names a Python source uses: the expressions of a statement that are evaluated whenever the statement runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdk_triton.python_models.reader.backend_utils import MODULE, SET_LATER
from cdk_triton.python_models.reader.names import bound_names

__all__ = ["Used", "evaluated", "imported_modules", "mentioned", "missed_by_star", "without_annotations"]

# With a condition of their own, or run by others later on.
_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Their parts are statements.
_BLOCKS = (ast.Try, ast.TryStar, ast.AsyncFor, ast.AsyncWith)


@dataclass(frozen=True)
class Used:
    """A name that a source always uses.

    Attributes:
        line: where.
        module: the module of which it is an attribute, `concurrent.futures`; "" for a plain name.
        name: the name.
        is_import: whether `from module import name` takes it.
        is_loading: whether the source uses it during the import, not in a function.
        is_starred: whether the source uses it as a plain name, which `from module import *` does not bring.
    """

    line: int
    module: str
    name: str
    is_import: bool = False
    is_loading: bool = False
    is_starred: bool = False


def imported_modules(module: ast.Module) -> dict[str, str]:
    """Name → the module that it certainly is, because an import at the top binds it and nothing else does."""
    found: dict[str, set[str]] = {}
    for statement in module.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                top = alias.name.partition(".")[0]
                found.setdefault(alias.asname or top, set()).add(alias.name if alias.asname else top)
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            for alias in statement.names:
                found.setdefault(alias.asname or alias.name, set()).add(f"{statement.module}.{alias.name}")
        else:
            for name in bound_names(statement):
                found.setdefault(name, set()).add("")
    return {name: next(iter(modules)) for name, modules in found.items() if len(modules) == 1 and "" not in modules}


def without_annotations(module: ast.Module) -> Iterator[ast.AST]:
    """The nodes of a module as `ast.walk` yields them, except those of annotations."""
    pending: list[ast.AST] = [module]
    for node in pending:  # grows while we walk
        yield node
        match node:
            case ast.FunctionDef(returns=annotation) | ast.AsyncFunctionDef(returns=annotation):
                pass
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
                pass
            case _:
                annotation = None
        pending += (child for child in ast.iter_child_nodes(node) if child is not annotation)


def mentioned(nodes: Sequence[ast.AST], module: str) -> Iterator[Used]:
    """The attributes of a module that a source reads anywhere, also in code that may not run.

    Args:
        nodes: all nodes of the source that Python may evaluate.
        module: a top-level module.

    Returns:
        The attributes; none if the source may read others by a computed name, or binds the module's name in another
        way.
    """
    own: set[str] = set()
    others: set[str] = set()
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    (own if alias.name == module else others).add(alias.asname or alias.name.partition(".")[0])
            case ast.ImportFrom(names=aliases):
                others.update(alias.asname or alias.name for alias in aliases)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                others.add(name)
            case ast.Name(id="hasattr" | "getattr" | "dir" | "AttributeError") | ast.Attribute(attr="AttributeError"):
                return
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Load()) if owner in own - others:
                yield Used(node.lineno, module, name)


def missed_by_star(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names that `from triton_python_backend_utils import *` does not bring, and that a source binds nowhere.

    The server sets them later. Other modules that are imported with `*` may have them.

    Args:
        nodes: all nodes of the source.
    """
    bound: set[str] = set()
    stars: set[str | None] = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(names=[ast.alias(name="*")], module=module):
                stars.add(module)
            case ast.alias(name=name, asname=asname):
                bound.add(asname or name)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Name(id="NameError"):
                return frozenset()
    return SET_LATER - bound if stars == {MODULE} else frozenset()


def evaluated(statement: ast.stmt, *, lazy: bool, is_function: bool) -> Iterator[ast.AST]:
    """The nodes that a statement always evaluates when it runs, without those of the statements within it.

    Args:
        statement: the statement.
        lazy: whether Python does not evaluate annotations.
        is_function: whether it is in a function, where Python does not evaluate the annotations of names.
    """
    pending: list[ast.AST] = list(_own_expressions(statement, lazy=lazy, is_function=is_function))
    while pending:
        node = pending.pop()
        yield node
        match node:
            case ast.BoolOp(values=[first, *_]):
                pending.append(first)
            case ast.IfExp(test=test):
                pending.append(test)
            case ast.Compare(left=left, comparators=[first, *_]):  # the others only if the first comparison is true
                pending += (left, first)
            case _ if not isinstance(node, _LATER):
                pending += ast.iter_child_nodes(node)


def _own_expressions(statement: ast.stmt, *, lazy: bool, is_function: bool) -> Iterator[ast.AST]:
    """The expressions that a statement evaluates before its inner statements, never those in a function."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from statement.decorator_list
            yield from _signature(statement, lazy=lazy or bool(getattr(statement, "type_params", ())))
        case ast.ClassDef():
            yield from statement.decorator_list
            if not getattr(statement, "type_params", ()):
                yield from (*statement.bases, *statement.keywords)
        case (
            ast.For(iter=first)
            | ast.If(test=first)
            | ast.While(test=first)
            | ast.Assert(test=first)
            | ast.Match(subject=first)
        ):
            yield first
        case ast.With(items=items):
            yield from (item.context_expr for item in items[:1])  # the others may meet one that handles errors
        case ast.AnnAssign(target=target, annotation=annotation, value=value):
            yield from (each for each in (value, target) if each is not None)
            if not lazy and not is_function:
                yield annotation
        case _ if not isinstance(statement, _BLOCKS) and type(statement).__name__ != "TypeAlias":
            yield from ast.iter_child_nodes(statement)


def _signature(function: ast.FunctionDef | ast.AsyncFunctionDef, *, lazy: bool) -> Iterator[ast.AST]:
    """The defaults of a function's arguments, and the annotations unless they are lazy."""
    own = function.args
    yield from own.defaults
    yield from (each for each in own.kw_defaults if each is not None)
    if not lazy:
        arguments = (*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg)
        annotations = (each.annotation for each in arguments if each is not None)
        yield from (each for each in (*annotations, function.returns) if each is not None)
