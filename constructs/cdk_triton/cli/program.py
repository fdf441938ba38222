"""The program: its commands, and the one place where an exception becomes a sentence and an exit status."""

from __future__ import annotations

import sys
import traceback
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cdk_triton.cli import artifacts, doctor, explain, fleet, local, validate
from cdk_triton.cli.bench import bench
from cdk_triton.cli.config import config
from cdk_triton.cli.estimate import estimate
from cdk_triton.cli.graph import graph
from cdk_triton.cli.init import InitCommand, init
from cdk_triton.cli.invoke import invoke
from cdk_triton.cli.rehearsal import golden
from cdk_triton.cli.vendor import vendor
from cdk_triton.errors import CdkTritonError, RepositoryError, RuleError

__all__ = ["app", "main"]

_FAILED = 1
_UNUSABLE = 2  # click's status for a usage error
_FAULT_OF_OURS = 70  # EX_SOFTWARE of sysexits.h
_INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
_FRAMES_SHOWN = 3
_NOWHERE = ("EndpointConnectionError", "NoCredentialsError", "NoRegionError", "PartialCredentialsError")

_OF_CDK = ("bootstrap", "deploy", "destroy", "diff", "synth", "watch")


class _Program(TyperGroup):
    """Leads from a command of the CDK to the program that has it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first argument names."""
        if args and args[0] in _OF_CDK:
            raise typer.BadParameter(f"'{args[0]}' is a command of the CDK: run `cdk {args[0]}`")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="cdk-triton",
    cls=_Program,
    help="NVIDIA Triton model ensembles on Amazon SageMaker: check a repository, find the faults of a deployment, "
    "manage an artifact store, publish ensembles, run an AWS on this machine.",
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("init", cls=InitCommand)(init)
app.command("validate", epilog="Example: cdk-triton validate models --platform 26.05/ml.g5.xlarge")(validate.validate)
app.command("config")(config)
app.command("graph")(graph)
app.command("vendor")(vendor)
app.command("explain")(explain.explain)
app.command("doctor")(doctor.doctor)
app.command("invoke")(invoke)
app.command("bench")(bench)
app.command("estimate")(estimate)
app.add_typer(artifacts.app, name="artifacts")
app.add_typer(fleet.app, name="fleet")
app.add_typer(local.app, name="local")
app.add_typer(golden.app, name="golden")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("cdk-triton"))
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line and exit; `cdk_triton.cli` lists the statuses."""
    try:
        app()
    except (RepositoryError, RuleError) as error:
        from cdk_triton.triton.findings import printable

        # There is no report, and 1 stands for a report with errors.
        _exit(_UNUSABLE, printable(str(error)))
    except CdkTritonError as error:
        _exit(_FAILED, f"{error}{_hint(error)}")
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except OSError as error:
        # The machine's faults (no space, no permission, no such address) come with their own words and file name.
        _exit(_FAILED, str(error))
    except Exception as error:
        typer.echo("".join(traceback.format_exception(error, limit=-_FRAMES_SHOWN, chain=False)), err=True, nl=False)
        _exit(_FAULT_OF_OURS, "this is a fault of cdk-triton: please report it together with the lines above")


def _hint(error: CdkTritonError) -> str:
    """The local AWS of this directory, if AWS could not be called because the shell has no region or credentials."""
    cause = error.__cause__
    if type(cause).__module__ != "botocore.exceptions" or type(cause).__name__ not in _NOWHERE:
        return ""
    return local.local_hint(str(getattr(cause, "kwargs", {}).get("endpoint_url", "")).rstrip("/"))


def _exit(status: int, sentence: str) -> None:
    typer.secho("error: ", fg=typer.colors.RED, bold=True, err=True, nl=False)
    typer.echo(sentence, err=True)
    sys.exit(status)
