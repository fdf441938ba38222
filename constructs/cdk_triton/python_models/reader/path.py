"""The places where a Python source makes Python look for modules, as far as the source shows them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

__all__ = ["Search", "search_of"]

Search = Literal["usual", "repository", "anywhere"]
"""Python looks in the server's directories, also in others of the repository, or in any place."""

_PATHS = frozenset({"sys.path", "sys.meta_path", "sys.path_hooks"})
_ADD_SITE = "site.addsitedir"
_ADDING = frozenset({"insert", "append", "extend"})
_TAKING = frozenset({"remove", "pop", "index", "count", "copy", "clear"})
# Of the strings that arguments of the server have, those that are paths below the repository.
_OF_THE_MODEL = frozenset({"model_repository", "model_path"})
# How far up a model's file has its own repository above: its version, its model, the repository.
_DEPTH = 3
_PIP = re.compile(r"(^|[\s/])(pip3?|uv|conda|apt|apt-get)(\s+install\b|$)")


def search_of(nodes: Sequence[ast.AST]) -> Search:
    """The places where a source makes Python look for modules.

    Args:
        nodes: all nodes of the source.
    """
    return _Look(nodes).search()


class _Look:
    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._nodes = nodes
        self._names = dict(_imports(nodes))
        self._parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}

    def search(self) -> Search:
        result: Search = "usual"
        for node in self._nodes:
            found = self._of(node)
            if found == "anywhere":
                return "anywhere"
            result = found if found != "usual" else result
        return result

    def _of(self, node: ast.AST) -> Search:
        match node:
            case ast.Constant(value=str(text)) if _PIP.search(text):
                return "anywhere"  # it may install what it imports
            case ast.alias(name="pip" | "ensurepip" | "zipimport"):
                return "anywhere"
            case ast.Name(id="__path__"):
                return "anywhere"
            case ast.Name(id=name) if self._names.get(name, "") in _PATHS:
                return self._change(node)
            case ast.Attribute() if self._whole(node) in _PATHS:
                return self._change(node)
            case ast.Name() | ast.Attribute() if self._whole(node) == "sys.modules":
                return self._replaced(node)
            case ast.Call(func=function, args=arguments) if self._whole(function) == _ADD_SITE:
                return self._place(arguments)
        return "usual"

    def _whole(self, node: ast.AST) -> str:
        """The whole name in an expression, such as `sys.path`; "" for another expression."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, "")
        if isinstance(node, ast.Attribute):
            before = self._whole(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def _change(self, node: ast.AST) -> Search:
        """Where Python looks for modules after the code uses its path: anywhere, unless the source shows the places."""
        is_path = self._whole(node) == "sys.path"
        parent = self._parents.get(node)
        grandparent = self._parents.get(parent) if parent is not None else None
        match parent, grandparent:
            case ast.Compare(), _:
                return "usual"
            case ast.Attribute(attr=name), ast.Call(func=function, args=arguments) if is_path and function is parent:
                if name in _ADDING and arguments:
                    return self._place(arguments[-1:])
                return "usual" if name in _TAKING else "anywhere"
            case ast.AugAssign(value=value, target=target), _ if is_path and target is node:
                return self._place([value])
            case ast.For(iter=iterated), _ if iterated is node:
                return "usual"
        return "anywhere"

    def _replaced(self, node: ast.AST) -> Search:
        """Where Python looks after the code uses `sys.modules`: only a read of the table changes nothing."""
        match self._parents.get(node):
            case ast.Compare() | ast.Subscript(ctx=ast.Load()) | ast.Attribute(attr="get" | "keys"):
                return "usual"
        return "anywhere"

    def _place(self, expressions: Iterable[ast.expr]) -> Search:
        """Whether directories are in the repository: they derive from the file's own path, and go up only so far."""
        nodes = list(self._behind(expressions))
        climbs = sum(map(_climb, nodes))
        is_own = any(
            (isinstance(node, ast.Name) and node.id == "__file__")
            or (isinstance(node, ast.Constant) and node.value in _OF_THE_MODEL)
            for node in nodes
        )
        return "repository" if is_own and climbs <= _DEPTH and not any(map(_leads_out, nodes)) else "anywhere"

    def _behind(self, expressions: Iterable[ast.expr]) -> Iterator[ast.AST]:
        """The nodes of expressions, and of the values that are assigned to the names in them."""
        pending: list[ast.AST] = list(expressions)
        seen: set[str] = set()
        while pending:
            node = pending.pop()
            yield node
            pending += ast.iter_child_nodes(node)
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                pending += self._assigned(node.id)

    def _assigned(self, name: str) -> Iterator[ast.expr]:
        for node in self._nodes:
            match node:
                case ast.Assign(targets=targets, value=value) if any(
                    isinstance(target, ast.Name) and target.id == name for target in targets
                ):
                    yield value
                case ast.AnnAssign(target=ast.Name(id=id_), value=ast.expr() as value) if id_ == name:
                    yield value
                case ast.NamedExpr(target=ast.Name(id=id_), value=value) if id_ == name:
                    yield value


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Each name that an import binds, at any place, and the name that is imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _climb(node: ast.AST) -> int:
    """How many directories a node goes up."""
    match node:
        case ast.Attribute(attr="parent" | "dirname"):
            return 1
        case ast.Name(id="dirname"):
            return 1
        case ast.Subscript(value=ast.Attribute(attr="parents"), slice=ast.Constant(value=int(number))):
            return number + 1 if number >= 0 else _DEPTH + 1
        case ast.Subscript(value=ast.Attribute(attr="parents")):
            return _DEPTH + 1
        case ast.Constant(value=str(text)):
            return text.split("/").count("..")
    return 0


def _leads_out(node: ast.AST) -> bool:
    """Whether a node may name a place outside the repository."""
    match node:
        case ast.Constant(value=str(text)):
            return text.startswith(("/", "~"))
        case ast.Attribute(attr="environ" | "getenv" | "home" | "cwd" | "getcwd" | "expanduser"):
            return True
        case ast.Name(id="environ" | "getenv" | "getcwd"):
            return True
    return False
