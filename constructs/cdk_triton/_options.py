"""`takes`: the options of methods, written once as a TypedDict, are arguments by name of each method."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from cdk_triton._arguments import reject_unknown

__all__ = ["takes"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def takes(options: type) -> Callable[[_Method], _Method]:
    """Make a method with `**options` reject an unknown option, as Python rejects an unknown argument.

    The method gets the signature with each option as an argument by name, for `help`, notebooks and mocks.

    Args:
        options: the TypedDict of the method's `**options`.
    """

    def decorated(method: _Method) -> _Method:
        signature = _with_options(inspect.signature(method), options)

        @wraps(method)
        def call(*positional: object, **given: object) -> object:
            reject_unknown(method.__qualname__, given, signature)
            return method(*positional, **given)

        @wraps(method)
        async def call_and_wait(*positional: object, **given: object) -> object:
            reject_unknown(method.__qualname__, given, signature)
            return await method(*positional, **given)

        made: Any = call_and_wait if inspect.iscoroutinefunction(method) else call
        made.__signature__ = signature
        return cast("_Method", made)

    return decorated


class _Omitted:
    def __repr__(self) -> str:
        return "..."


def _with_options(signature: inspect.Signature, options: type) -> inspect.Signature:
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_Omitted(), annotation=kind.__forward_arg__)
        for name, kind in options.__annotations__.items()
    ]
    return signature.replace(parameters=[*own, *more])
