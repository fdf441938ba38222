"""How the PyTorch backend finds the argument of `forward` for an input, and the result for an output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

__all__ = ["Naming", "index_in", "naming_of"]

_INDEX = re.compile(r"[0-9]*", re.ASCII)


class Naming(Enum):
    """How the backend finds the argument of an input: `GetNamingConvention` of `src/pt/model_instance_state.cc`."""

    ARGUMENT = "the names of the arguments of forward"
    INDEX = "<name>__<index>"
    ORDER = "the order in the configuration"


def naming_of(names: Sequence[str], arguments: Sequence[str]) -> Naming:
    """How the backend finds the arguments of inputs, or with no arguments the places of outputs."""
    if arguments and all(name in arguments for name in names):
        return Naming.ARGUMENT
    return Naming.INDEX if all(index_in(name) is not None for name in names) else Naming.ORDER


def index_in(name: str) -> int | None:
    """The index in a name of the form `<name>__<index>`; None for another name. The first `__` counts."""
    _, delimiter, index = name.partition("__")
    if not delimiter or not _INDEX.fullmatch(index):
        return None
    return int(index[:9] or 0)
