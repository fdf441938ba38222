"""Replaces methods of moto's."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

from cdk_triton.errors import LocalError

__all__ = ["replace_method"]


def replace_method(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a method of a class of moto's; a second call changes nothing.

    Args:
        owner: the class.
        name: the method's name.
        make: gets the original method and returns the function that replaces it.

    Raises:
        LocalError: the class does not have the method.
    """
    original = getattr(owner, name, None)
    if original is None:
        raise LocalError(
            f"moto {metadata.version('moto')} does not have {owner.__module__}.{owner.__qualname__}.{name}, which the "
            "local AWS corrects; install the version of moto that the extra `local` pins"
        )
    if not original.__module__.startswith(f"{__package__}."):
        setattr(owner, name, make(original))
