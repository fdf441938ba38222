"""What tells constructs apart."""

from __future__ import annotations

from constructs import IConstruct

__all__ = ["identity"]


def identity(construct: IConstruct) -> str:
    """What jsii knows a construct by.

    Python has a new object each time for a construct that Node made, and a class of the user's may take two constructs
    for equal. jsii keeps constructs as long as the program runs, so what is kept by their identities may stay as well.
    """
    return str(construct.__jsii_ref__.ref)  # type: ignore[attr-defined]  # of every object of jsii, in no stub
