"""The part of CloudWatch's metric math that the constructs of this library write.

Source: "Using math expressions with CloudWatch metrics" in CloudWatch's user guide. A result has no value where an
operand has none.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from cdk_triton.errors import LocalError

__all__ = ["Series", "compute"]

Series: TypeAlias = list[float | None]
"""The values of consecutive periods, the oldest first; None where there is none."""

_OPERATORS: Final[dict[type, Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def compute(expression: str, metrics: Mapping[str, Series], periods: int) -> Series:
    """The values of an expression.

    Args:
        expression: the expression.
        metrics: the values of the metrics in it, by their ids.
        periods: the number of values.

    Raises:
        LocalError: the expression uses something else than `+ - * / < <= > >=`, FILL, IF, and MAX or MIN of a list.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError:
        raise LocalError(f"the local AWS cannot read the expression {expression!r}") from None
    return _Expression(expression, metrics, periods).of(tree.body)


@dataclass(frozen=True)
class _Expression:
    text: str
    metrics: Mapping[str, Series]
    periods: int

    def of(self, node: ast.expr) -> Series:
        match node:
            case ast.Constant(int() | float() as number):
                return [float(number)] * self.periods
            case ast.Name(name) if name in self.metrics:
                return self.metrics[name]
            case ast.UnaryOp(ast.USub(), operand):
                return _each(operator.neg, self.of(operand))
            case ast.BinOp(left, kind, right) | ast.Compare(left, [kind], [right]) if type(kind) in _OPERATORS:
                return _each(_divided_safely(_OPERATORS[type(kind)]), self.of(left), self.of(right))
            case ast.Call(ast.Name(name), arguments) if (result := self._call(name, arguments)) is not None:
                return result
        raise LocalError(
            f"the local AWS does not compute {ast.unparse(node)!r} in the expression {self.text!r}; it has the "
            "operators + - * / < <= > >= and the functions FILL, IF, MAX([…]) and MIN([…])"
        )

    def _call(self, name: str, arguments: list[ast.expr]) -> Series | None:
        match name, arguments:
            case "FILL", [filled, other]:
                pairs = zip(self.of(filled), self.of(other), strict=True)
                return [default if known is None else known for known, default in pairs]
            case "IF", [condition, then, otherwise]:
                chosen = zip(self.of(condition), self.of(then), self.of(otherwise), strict=True)
                return [None if test is None else yes if test else no for test, yes, no in chosen]
            case "MAX", [ast.List(items)]:
                return _each(max, *map(self.of, items))
            case "MIN", [ast.List(items)]:
                return _each(min, *map(self.of, items))
        return None


def _divided_safely(of_two: Callable[[float, float], float]) -> Callable[[float, float], float | None]:
    def result(left: float, right: float) -> float | None:
        try:
            return float(of_two(left, right))
        except ZeroDivisionError:
            return None  # "no data points" (the guide, "Metric math functions")

    return result


def _each(of: Callable[..., Any], *operands: Sequence[float | None]) -> Series:
    columns = zip(*operands, strict=True)
    return [None if any(each is None for each in column) else of(*column) for column in columns]
