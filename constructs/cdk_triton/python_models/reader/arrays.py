"""The types and shapes of numpy's arrays, as far as literals show them. The source is parsed, never executed.

Without a `dtype`, numpy makes FP64 of numbers with a point, and of zeros and ones, and INT64 of whole numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final

__all__ = ["array_shape", "array_type", "numpy_type"]

_NUMPY: Final = ("np", "numpy")
_TYPES: Final = {
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"FP{bits}" for bits in (16, 32, 64)},
    "bool": "BOOL",
    "bool_": "BOOL",
    "int": "INT64",
    "float": "FP64",
    "half": "FP16",
    "single": "FP32",
    "double": "FP64",
}
_FILLED: Final = ("zeros", "ones", "empty")
_RESHAPED: Final = ("expand_dims", "reshape", "ascontiguousarray", "squeeze", "transpose", "ravel")


def numpy_type(kind: str) -> str | None:
    """The `dtype` of an array of one of Triton's types, such as `np.float32` for `FP32`; None if there is none."""
    if kind in ("BOOL", "STRING"):
        return "np.bool_" if kind == "BOOL" else "np.object_"
    return next((f"np.{name}" for name, type_of_triton in _TYPES.items() if type_of_triton == kind), None)


def array_type(value: ast.expr, resolved: Callable[[ast.expr], ast.expr]) -> str | None:
    """Triton's name of the type of an array, such as `FP64`; None if it is not known.

    Args:
        value: the expression that makes the array.
        resolved: gives what a variable certainly stands for, as `Variables.unchanged`.
    """
    match resolved(value):
        case (
            ast.Call(func=ast.Attribute(attr="astype"), args=[kind, *_])
            | ast.Call(func=ast.Attribute(attr="astype"), args=[], keywords=[ast.keyword(arg="dtype", value=kind), *_])
        ):
            return _named(kind)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) as call if module in _NUMPY:
            return _made(name, call, resolved)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _RESHAPED:
            return array_type(inner, resolved)
        case ast.Subscript(value=inner):
            return array_type(inner, resolved)
    return None


def array_shape(value: ast.expr, resolved: Callable[[ast.expr], ast.expr]) -> tuple[int, ...] | None:
    """The shape of an array, with -1 for a size that is not known; None if their number is not known.

    Args:
        value: the expression that makes the array.
        resolved: gives what a variable certainly stands for, as `Variables.unchanged`.
    """
    match resolved(value):
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), args=[first, *rest]) as call:
            keywords = {keyword.arg for keyword in call.keywords}
            if module in _NUMPY and name in (*_FILLED, "full") and not keywords - {"dtype"}:
                return _sizes([first], resolved)
            if module in _NUMPY and name in ("array", "asarray") and not keywords - {"dtype"}:
                return _nested(resolved(first))
            if module in _NUMPY and name == "expand_dims" and not keywords - {"axis"}:
                axis = rest or [keyword.value for keyword in call.keywords]
                return _expanded(array_shape(first, resolved), axis)
            if name == "reshape" and not keywords and (sizes := rest if module in _NUMPY else [first, *rest]):
                return _sizes(sizes, resolved)
        case ast.Call(func=ast.Attribute(attr="reshape"), args=[_, *_] as sizes, keywords=[]):
            return _sizes(sizes, resolved)
        case ast.Call(func=ast.Attribute(value=inner, attr="astype")):
            return array_shape(inner, resolved)
        case ast.Subscript(value=inner, slice=ast.Constant(value=None)):
            return _expanded(array_shape(inner, resolved), [ast.Constant(0)])
    return None


def _sizes(given: Sequence[ast.expr], resolved: Callable[[ast.expr], ast.expr]) -> tuple[int, ...] | None:
    """The sizes in the arguments that give a shape: one number, one tuple, or several numbers."""
    first = resolved(given[0])
    elements: Sequence[ast.expr] = first.elts if isinstance(first, ast.Tuple | ast.List) else given
    numbers = [resolved(each) for each in elements]
    if any(isinstance(each, ast.Starred) for each in numbers):
        return None
    sizes = tuple(
        each.value if isinstance(each, ast.Constant) and isinstance(each.value, int) else -1 for each in numbers
    )
    return None if elements is given and sizes == (-1,) and not isinstance(first, ast.UnaryOp) else sizes


def _nested(value: ast.expr) -> tuple[int, ...] | None:
    """The shape of lists of numbers or texts that are written out."""
    match value:
        case ast.Constant():
            return ()
        case ast.UnaryOp(operand=ast.Constant()):
            return ()
        case ast.List(elts=[_, *_] as elements) | ast.Tuple(elts=[_, *_] as elements):
            shapes = {_nested(each) for each in elements}
            inner = shapes.pop()
            return None if shapes or inner is None else (len(elements), *inner)
    return None


def _expanded(shape: tuple[int, ...] | None, axis: Sequence[ast.expr]) -> tuple[int, ...] | None:
    """A shape with one more size, of 1."""
    match axis:
        case [ast.Constant(value=int(place))] if shape is not None and 0 <= place <= len(shape):
            return (*shape[:place], 1, *shape[place:])
    return None


def _made(name: str, call: ast.Call, resolved: Callable[[ast.expr], ast.expr]) -> str | None:
    """The type that a function of numpy gives."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    arguments = call.args
    if not arguments or None in keywords or any(isinstance(each, ast.Starred) for each in arguments):
        return None
    place = 2 if name == "full" else 1  # of the type among the arguments
    kind = keywords.get("dtype", arguments[place] if len(arguments) > place else None)
    if name in _RESHAPED:
        return array_type(arguments[0], resolved)
    if name in (*_FILLED, "full", "array", "asarray") and kind is not None:
        return _named(kind)
    if name in _FILLED:
        return "FP64"
    if name == "full" and len(arguments) == 2:
        return _of_literals([arguments[1]])
    return _of_literals([resolved(arguments[0])]) if name in ("array", "asarray") else None


def _named(kind: ast.expr) -> str | None:
    match kind:
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _NUMPY:
            return _TYPES.get(name)
        case ast.Name(id="bool" | "int" | "float" as name) | ast.Constant(value=str(name)):
            return _TYPES.get(name)
    return None


def _of_literals(values: Sequence[ast.expr]) -> str | None:
    """The type of numbers that are written out, in lists of any depth."""
    kinds = {_kind(each) for each in values}
    if len(kinds) == 1:
        return kinds.pop()
    return "FP64" if kinds == {"INT64", "FP64"} else None


def _kind(value: ast.expr) -> str | None:
    match value:
        case ast.Constant(value=bool()):
            return "BOOL"
        case ast.Constant(value=int(number)):
            return "INT64" if number < 2**63 else None
        case ast.Constant(value=float()):
            return "FP64"
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as number):
            return _kind(number)
        case ast.List(elts=[_, *_] as elements) | ast.Tuple(elts=[_, *_] as elements):
            return _of_literals(elements)
        case ast.BinOp(left=ast.List() as repeated, op=ast.Mult()):
            return _kind(repeated)
    return None
