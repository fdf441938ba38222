"""The signature of a TorchScript model's `forward`, from the code that its archive contains."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

__all__ = ["Argument", "Forward", "Type", "forward_in"]

_LONGEST = 500  # of a type or a name, which messages quote
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'")


@dataclass(frozen=True)
class Type:
    """A type of TorchScript.

    Attributes:
        name: `Tensor`, `List`, `Dict`, `Tuple`, `Optional`, `int`, `__torch__.Class`, ….
        of: the types in brackets.
    """

    name: str
    of: tuple[Type, ...] = ()

    @property
    def annotation(self) -> str:
        """The type as Python code writes it: `Optional[Tensor]`, `Dict[str, Tensor]`, `List[int]`."""
        inside = ", ".join(each.annotation for each in self.of)
        return f"{self.name}[{inside}]" if inside else self.name

    def __str__(self) -> str:
        """The type as the server's messages write it: `Tensor?`, `Dict(str, Tensor)`, `int[]`."""
        inside = [str(each) for each in self.of]
        if self.name == "List" and len(inside) == 1:
            return f"{inside[0]}[]"
        if self.name == "Optional" and len(inside) == 1:
            return f"{inside[0]}?"
        if self.name == "Tuple":
            return f"({', '.join(inside)})"
        if self.name == "number":
            return "Scalar"
        return f"{self.name}({', '.join(inside)})" if inside else self.name


@dataclass(frozen=True)
class Argument:
    """An argument of `forward`.

    Attributes:
        name: its name.
        type: its type.
    """

    name: str
    type: Type


@dataclass(frozen=True)
class Forward:
    """The method that the backend calls.

    Attributes:
        arguments: its arguments, without `self`.
        result: the type of its result.
    """

    arguments: tuple[Argument, ...]
    result: Type


def forward_in(code: str, class_name: str) -> tuple[Forward | None, bool]:
    """`forward` of a class in TorchScript's code, and whether the class has this method.

    The first is None if the code is not understood. The second is True then, because nothing is known.
    """
    body = _body(code, class_name)
    if body is None:
        return None, True
    match = re.search(r"^  def forward\(", body, re.MULTILINE)
    if match is None:
        return None, False
    return _parsed(body[match.start() :].lstrip()), True


def _body(code: str, class_name: str) -> str | None:
    """The lines of a class, which are indented."""
    match = re.search(rf"^class {re.escape(class_name)}\(Module\):\n((?:[ \t].*\n|\n)*)", code, re.MULTILINE)
    return match[1] if match else None


def _parsed(text: str) -> Forward | None:
    """The signature at the beginning of a text. The code below it is TorchScript, which is not Python everywhere."""
    head = _head(text)
    try:
        return _signature(ast.parse(f"{head} pass").body[0])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _signature(function: ast.stmt) -> Forward | None:
    if not isinstance(function, ast.FunctionDef) or function.returns is None:
        return None
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if function.args.vararg or function.args.kwarg or any(each.annotation is None for each in given):
        return None
    arguments = tuple(Argument(each.arg, _type(each.annotation)) for each in given if each.annotation is not None)
    if not arguments or not arguments[0].type.name.startswith("__torch__"):
        return None  # the backend looks for a first argument of a class
    forward = Forward(arguments[1:], _type(function.returns))
    types = [forward.result, *(each.type for each in forward.arguments)]
    is_long = any(len(each.annotation) > _LONGEST for each in types) or any(len(each.arg) > _LONGEST for each in given)
    return None if is_long else forward


def _head(text: str) -> str:
    """The text up to the colon behind the signature."""
    hidden = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    depth = 0
    for index, character in enumerate(hidden):
        depth += (character in "([{") - (character in ")]}")
        if character == ":" and depth == 0:
            return text[: index + 1]
    return text


def _type(node: ast.expr) -> Type:
    if isinstance(node, ast.Subscript):
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return Type(ast.unparse(node.value), tuple(map(_type, inside)))
    return Type(ast.unparse(node))
