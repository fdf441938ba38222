"""`cdk-triton validate`: what Triton and SageMaker would refuse in a model repository."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import Finding, ModelRepository

__all__ = ["validate"]


class Mode(StrEnum):
    """How many models the endpoint serves."""

    SINGLE = "single"
    MULTI = "multi"


class Format(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"


def validate(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The model repository.", show_default=False)],
    platform: Annotated[
        str | None,
        typer.Option(metavar="RELEASE/INSTANCE", help="Check also against this platform, e.g. 25.09/ml.g5.xlarge."),
    ] = None,
    mode: Annotated[Mode, typer.Option(help="The kind of endpoint that will serve it.")] = Mode.SINGLE,
    output: Annotated[Format, typer.Option("--format", help="How to print the findings.")] = Format.TEXT,
) -> None:
    """Check a model repository; exit 1 if Triton or SageMaker would refuse it."""
    from cdk_triton.triton import ModelRepository, Severity

    target = None if platform is None else _platform(platform)
    repository = ModelRepository.from_directory(directory)
    findings = repository.check(mode=mode.value, platform=target)
    if output is Format.JSON:
        typer.echo(_as_json(findings))
    else:
        _print_text(repository, findings)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(1)


def _platform(text: str) -> ServingPlatform:
    release, slash, instance_type = text.partition("/")
    if not (release and slash and instance_type):
        raise typer.BadParameter(f"'{text}' is not RELEASE/INSTANCE, e.g. 25.09/ml.g5.xlarge", param_hint="--platform")
    from cdk_triton.sagemaker import ServingPlatform

    return ServingPlatform(release=release, instance_type=instance_type)


def _as_json(findings: Sequence[Finding]) -> str:
    # Written out: these names are a contract with other programs, the dataclass is not.
    rows = [
        {
            "code": finding.code,
            "severity": finding.severity.value,
            "path": finding.path,
            "field": finding.field,
            "message": finding.message,
            "mend": finding.mend,
        }
        for finding in findings
    ]
    return json.dumps({"findings": rows}, indent=2, ensure_ascii=False)


def _print_text(repository: ModelRepository, findings: Sequence[Finding]) -> None:
    counts = {"error": 0, "warning": 0}
    for finding in findings:
        severity = finding.severity.value
        counts[severity] += 1
        where = " ".join(part for part in (str(repository.root / finding.path), finding.field) if part)
        colour = typer.colors.RED if severity == "error" else typer.colors.YELLOW
        typer.echo(f"{where}: {typer.style(severity, fg=colour, bold=True)} {finding.code}: {finding.message}")
        typer.echo(f"    {finding.mend}")
    summary = ", ".join(f"{n} {severity}{'s' * (n != 1)}" for severity, n in counts.items() if n)
    models = f"{len(repository.models)} model{'s' * (len(repository.models) != 1)}"
    typer.echo(f"{repository.root}: {models}, {summary or 'no findings'}")
