"""What tells constructs apart, and what is remembered by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from constructs import IConstruct

__all__ = ["cached_per_construct", "identity", "path_of"]

ConstructT = TypeVar("ConstructT", bound=IConstruct)
AnswerT = TypeVar("AnswerT")


def identity(construct: IConstruct) -> str:
    """What jsii knows a construct by.

    Python has a new object each time for a construct that Node made, and a class of the user's may take two constructs
    for equal. jsii keeps constructs as long as the program runs, so what is kept by their identities may stay as well.
    """
    return str(construct.__jsii_ref__.ref)  # type: ignore[attr-defined]  # of every object of jsii, in no stub


def cached_per_construct(ask: Callable[[ConstructT], AnswerT]) -> Callable[[ConstructT], AnswerT]:
    """Remember for each construct what a function asks of it, where that never changes: it takes calls of jsii."""
    answers: dict[str, AnswerT] = {}

    @wraps(ask)
    def remembered(construct: ConstructT) -> AnswerT:
        if not hasattr(construct, "__jsii_ref__"):
            return ask(construct)  # a user's class that implements an interface, unknown to jsii so far
        known = identity(construct)
        if known not in answers:
            answers[known] = ask(construct)
        return answers[known]

    return remembered


@cached_per_construct
def path_of(construct: IConstruct) -> str:
    """`node.path`."""
    return construct.node.path
