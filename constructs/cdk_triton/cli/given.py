"""The options that the command line has, and a sentence for those that the command would not use."""

from __future__ import annotations

import typer

from cdk_triton._wording import listed

__all__ = ["given", "require_unused"]


def given(context: typer.Context, *parameters: str) -> list[str]:
    """The options, of these parameters of the command, that somebody wrote; a default does not count."""
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
