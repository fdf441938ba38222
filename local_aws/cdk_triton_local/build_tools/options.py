"""The options of the stand-in for `trtexec`, and its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Shapes", "TrtexecError", "TrtexecOptions", "pairs", "parsed", "profiles", "shapes"]

TrtexecOptions = dict[str, str]


class TrtexecError(Exception):
    """The lines that trtexec would print on its error stream."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True)
class Shapes:
    """The shapes of one input in a profile."""

    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]


def parsed(arguments: Sequence[str], version: tuple[int, ...]) -> TrtexecOptions:
    """The options by name; of a repeated option the last (profiles are read from the list itself).

    Raises:
        TrtexecError: this version has no such option.
    """
    from cdk_triton.artifacts import trtexec_has_option, trtexec_versions  # half of the library comes with it

    nearest = max((each for each in trtexec_versions() if each <= version), default=trtexec_versions()[0])
    options = {name: value for name, _, value in (argument.partition("=") for argument in arguments)}
    unknown = [name for name in options if not trtexec_has_option(name, nearest)]
    if unknown:
        raise TrtexecError(*(f"Unknown option: {name} {options[name]}" for name in unknown))
    return options


def profiles(arguments: Sequence[str]) -> list[Mapping[str, Shapes]]:
    """The profiles of `--profile=N --minShapes=… --optShapes=… --maxShapes=…`, or of one without a number."""
    bounds: dict[int, dict[str, dict[str, tuple[int, ...]]]] = {}
    index = 0
    for name, _, value in (argument.partition("=") for argument in arguments):
        if name == "--profile":
            index = int(value)
        elif name in ("--minShapes", "--optShapes", "--maxShapes"):
            bounds.setdefault(index, {})[name] = shapes(value)
    found: list[Mapping[str, Shapes]] = []
    for _, each in sorted(bounds.items()):
        if len(each) != 3 or len({frozenset(named) for named in each.values()}) != 1:
            raise TrtexecError("a profile without all of --minShapes, --optShapes and --maxShapes is not modelled")
        low, best, high = each["--minShapes"], each["--optShapes"], each["--maxShapes"]
        found.append({name: Shapes(low[name], best[name], high[name]) for name in low})
    return found


def shapes(text: str) -> dict[str, tuple[int, ...]]:
    """The shapes of `name:1x2,…`."""
    return {name: tuple(map(int, shape.split("x"))) for name, shape in pairs(text)}


def pairs(text: str) -> list[tuple[str, str]]:
    """`name:value,…`; a name ends at the last colon (sampleOptions.cpp, splitNameAndValue)."""
    return [(name, value) for name, _, value in (entry.rpartition(":") for entry in text.split(",") if entry)]
