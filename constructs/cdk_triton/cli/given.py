"""Checks of the command line's options."""

from __future__ import annotations

import math

import typer

from cdk_triton._wording import listed

__all__ = ["finite", "given", "require_unused"]


def finite(value: float | None) -> float | None:
    """Reject `inf` and `nan`, which Python reads as numbers.

    Raises:
        typer.BadParameter: it is one of them.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


def given(context: typer.Context, *parameters: str) -> list[str]:
    """The options of these parameters that the command line has; a default does not count."""
    names = {str(each.name): max(each.opts, key=len) for each in context.command.params}
    sources = {each: context.get_parameter_source(each) for each in parameters}
    return [names[each] for each, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def require_unused(context: typer.Context, what: str, *parameters: str) -> None:
    """Reject options that have no effect in a combination, before any work.

    Raises:
        typer.BadParameter: the command line has one of them.
    """
    unused = given(context, *parameters)
    if unused:
        raise typer.BadParameter(
            f"{what} does not use {listed(unused)}: omit {'this option' if len(unused) == 1 else 'these options'}"
        )
