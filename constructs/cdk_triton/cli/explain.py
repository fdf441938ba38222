"""`cdk-triton explain`: what a rule looks for, and why."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.cli.terminal import bold, coloured, fold, page_width
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.checks import Rule
    from cdk_triton.checks.documentation import ConstructCode

__all__ = ["explain"]

_OF_CDK = "^Annotation::"  # before each code in the CDK's report of validations


def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="A printed code, e.g. CT301 or cdk-triton:NoWayOut.", show_default=False),
    ] = None,
) -> None:
    """Explain a rule of `validate` or a code of the constructs; without a code, list all of them.

    Example: cdk-triton explain CT101
    """
    from cdk_triton.checks import documented_rules, rule_of
    from cdk_triton.hosting.naming.construct_codes import CONSTRUCT_CODES

    if code is None:
        for each in documented_rules():
            typer.echo(f"{each.code}  {coloured(f'{each.severity:<7}', each.severity)}  {each.title}")
        for listed in CONSTRUCT_CODES:
            typer.echo(f"{listed.code}  {coloured(f'{listed.severity:<7}', listed.severity)}  {listed.title}")
        return
    code = re.sub(_OF_CDK, "", code, flags=re.IGNORECASE)
    for of_constructs in CONSTRUCT_CODES:
        if code.lower() in (of_constructs.code.lower(), of_constructs.code.lower().partition(":")[2]):
            typer.echo(_page_of_constructs(of_constructs))
            return
    try:
        rule = rule_of(code if ":" in code else code.upper())
    except ConfigurationError as error:
        raise typer.BadParameter(str(error), param_hint="CODE") from error
    typer.echo(_page(rule))


def _page_of_constructs(found: ConstructCode) -> str:
    from cdk_triton.triton.findings import Severity

    parts = [
        f"{bold(found.code)}  {coloured(found.severity, found.severity)}  {bold(found.title)}",
        _paragraphs(found.reason),
        "The constructs report this at `cdk synth`.",
    ]
    if found.severity is not Severity.ERROR:
        kind = "warning" if found.severity is Severity.WARNING else "info"
        parts.append(
            "If the app is right as it is, acknowledge the finding on the construct that the finding names:\n\n"
            f'    Annotations.of(construct).acknowledge_{kind}("{found.code}", "the reason")'
        )
    return "\n\n".join(parts)


def _page(rule: Rule) -> str:
    documentation = rule.documentation
    parts = [
        f"{bold(rule.code)}  {coloured(rule.severity, rule.severity)}  {bold(rule.title)}",
        _paragraphs(f"{documentation.summary}\n\n{documentation.explanation}"),
    ]
    for heading, text in (("Example", documentation.example), ("Instead", documentation.instead)):
        if text:
            parts.append(f"{bold(heading)}\n{textwrap.indent(text, '    ')}")
    if documentation.limits:
        parts.append(f"{bold('Limits')}\n{textwrap.indent(_paragraphs(documentation.limits, 4), '    ')}")
    parts.append(_paragraphs(rule.condition))
    parts.append(f"Defined in: {rule.defined_in}")
    if rule.source:
        parts.append(f"Source: {rule.source}")
    return "\n\n".join(parts)


def _paragraphs(text: str, indent: int = 0) -> str:
    """Markdown, folded to the width of the page, except for lists and tables."""
    return "\n\n".join(
        paragraph
        if paragraph.startswith(("* ", "- ", "|", "1. ", "    "))
        else fold(_one_line(paragraph), page_width() - indent)
        for paragraph in text.strip().split("\n\n")
    )


def _one_line(paragraph: str) -> str:
    return " ".join(paragraph.split())
