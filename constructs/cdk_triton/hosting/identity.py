"""What tells constructs apart: their identities, and their paths."""

from __future__ import annotations

from constructs import IConstruct

__all__ = ["identity", "path_of"]


def identity(construct: IConstruct) -> str:
    """What jsii knows a construct by.

    Python has a new object each time for a construct that Node made, and a class of the user's may take two constructs
    for equal. jsii keeps constructs as long as the program runs, so what is kept by their identities may stay as well.
    """
    return str(construct.__jsii_ref__.ref)  # type: ignore[attr-defined]  # of every object of jsii, in no stub


_PATHS: dict[str, str] = {}
"""By identity."""


def path_of(construct: IConstruct) -> str:
    """`node.path`, which is two calls of jsii, made once for each construct: none ever moves."""
    known = identity(construct)
    if known not in _PATHS:
        _PATHS[known] = construct.node.path
    return _PATHS[known]
