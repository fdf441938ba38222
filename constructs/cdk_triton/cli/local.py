"""`cdk-triton local`: an AWS on this machine.

The output for programs goes to stdout (variables, log lines), and the output for people to stderr. So
`eval "$(cdk-triton local up --detach)"` sets the variables and shows the rest. `unset` lines remove variables of the
shell that would lead elsewhere. Without variables to print, the commands print `false`, which makes the `eval` fail.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.cli.back_to_aws import unset_line
from cdk_triton.cli.extras import require_extra
from cdk_triton.cli.terminal import cropped, width
from cdk_triton.errors import LocalError

if TYPE_CHECKING:
    from cdk_triton.cli.endpoints.reading import ReadEndpoint
    from cdk_triton_local import Daemon, DaemonOptions, DaemonStatus, LogSelection

__all__ = ["app", "local_hint"]

_EXTRA = "local"
_DEFAULT_DIRECTORY = ".cdk-triton/local"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

app = typer.Typer(help="Run an AWS on this machine, to try deployments out.", no_args_is_help=True)

Directory = Annotated[
    Path | None,
    typer.Option(help="The directory of its state; each directory is a separate AWS.", show_default=_DEFAULT_DIRECTORY),
]


def _account(text: str) -> str:
    if not re.fullmatch(r"[0-9]{12}", text):
        raise typer.BadParameter(f"'{text}' is not an account id of 12 digits.")
    return text


_UNLIMITED = -1


def _instances(text: str) -> int:
    if text == "unlimited":
        return _UNLIMITED
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise typer.BadParameter(f"'{text}' is neither a number of instances nor 'unlimited'.")
    return int(text)


@app.command(epilog='Example: eval "$(cdk-triton local up --detach)"')
def up(
    directory: Directory = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start it in the background.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 takes a free one.")] = 0,
    region: Annotated[str, typer.Option(help="The region of the local AWS.")] = "us-east-1",
    account: Annotated[str, typer.Option(help="The account of the local AWS.", callback=_account)] = "123456789012",
    max_loaded_models: Annotated[
        int, typer.Option(min=1, help="Target models that a multi-model endpoint keeps loaded.")
    ] = 4,
    listen_on_all_interfaces: Annotated[
        bool, typer.Option("--listen-on-all-interfaces", help="Let tritonserver listen beyond loopback.")
    ] = False,
    faults: Annotated[
        str, typer.Option(metavar="NAME[,NAME]", help="Faults of AWS to inject, such as throttling or new-roles.")
    ] = "",
) -> None:
    """Start the local AWS, and print the variables for the AWS SDKs and the cdk CLI as lines for a shell."""
    with _false_on_failure() if detach else nullcontext():
        require_extra(_EXTRA, "`cdk-triton local`")
        from cdk_triton_local import DaemonOptions

        options = DaemonOptions(
            port,
            _checked_region(region),
            account,
            max_loaded_models,
            listen_on_all_interfaces,
            _checked_faults(faults),
        )
        daemon = _daemon(directory)
        typer.echo("starting the local AWS ...", err=True)
        if detach:
            _print_exports(daemon.start(options))
            typer.echo(f"it runs in the background; stop it with: {_command('down', directory)}", err=True)
        else:
            daemon.run(
                options,
                ready=lambda status: _tell_of_the_foreground(status, _background_command(directory, options)),
                log=lambda line: typer.echo(line, err=True),
            )


class StatusFormat(StrEnum):
    """How the status is printed."""

    TEXT = "text"
    JSON = "json"


@app.command()
def status(
    directory: Directory = None,
    output: Annotated[StatusFormat, typer.Option("--format", help="How to print the status.")] = StatusFormat.TEXT,
) -> None:
    """Report whether the local AWS runs, and print its variables as lines for a shell; exit 1 if it does not.

    The endpoints, and what they serve, are listed on stderr.

    Example: eval "$(cdk-triton local status)"
    """
    daemon = _daemon(directory)
    with _false_on_failure() if output is StatusFormat.TEXT else nullcontext():
        found = daemon.status()
        if found is None:
            _list_others(daemon)
            start = _command("up --detach", directory)
            raise LocalError(f"no local AWS runs in {daemon.directory}; start one with: {start}")
    if output is StatusFormat.JSON:
        from cdk_triton.cli.endpoints.text import as_json

        members = {"url": found.url, "pid": found.pid, "environment": found.environment}
        document = {**members, "endpoints": as_json(_endpoints(found))}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    _print_exports(found.environment)
    typer.echo(f"the local AWS answers at {found.url} (process {found.pid})", err=True)
    _print_endpoints(found)


def _endpoints(status: DaemonStatus) -> list[ReadEndpoint]:
    from cdk_triton.cli.artifacts.aws import Aws, sentences
    from cdk_triton.cli.endpoints.reading import read_endpoints

    with sentences(LocalError):
        return read_endpoints(Aws(status.environment))


def _print_endpoints(status: DaemonStatus) -> None:
    from cdk_triton.cli.endpoints.text import as_text

    try:
        endpoints = _endpoints(status)
    except LocalError as error:  # the variables are good all the same
        typer.echo(f"its endpoints cannot be listed: {error}", err=True)
        return
    if not endpoints:
        typer.echo("it has no endpoint yet", err=True)
        return
    for line in as_text(endpoints):
        typer.echo(line, err=True)


@app.command()
def logs(
    directory: Directory = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new lines until it ends.")] = False,
    endpoint: Annotated[str | None, typer.Option(help="Only the servers of this endpoint.")] = None,
    source: Annotated[str, typer.Option(help="Only sources with this beginning, such as local or lambda-.")] = "",
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Only from this time on: 90s, 10m, 2h, 1d ago, or a date and time."),
    ] = None,
    earlier_runs: Annotated[bool, typer.Option("--earlier-runs", help="Also the lines of earlier runs.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="On a terminal: whole lines, tables and expected errors, too.")
    ] = False,
) -> None:
    """Print the logs of the local AWS, its functions, builds and servers, each line after the name of its source.

    On a terminal, it cuts long lines and skips the servers' tables, and their errors that are expected without a GPU.
    A file or a pipe gets everything.

    Example: cdk-triton local logs --endpoint my-endpoint --since 10m
    """
    from cdk_triton_local import LogSelection

    columns = None if verbose else width()
    selection = LogSelection(endpoint, source, _seconds_since_1970(since), earlier_runs, brief=columns is not None)
    _print_logs(_of_this_shell(directory), selection, columns, follow=follow)
    if columns is not None:
        typer.echo("--verbose prints whole lines, and all of them", err=True)


def _print_logs(daemon: Daemon, selection: LogSelection, columns: int | None, *, follow: bool) -> None:
    try:
        for line in daemon.logs(selection, follow=follow):
            typer.echo(line if columns is None else cropped(line, columns))
    except LocalError:
        if daemon.status() is None:
            _list_others(daemon)
        raise


@app.command()
def capacity(
    instance_type: Annotated[str | None, typer.Argument(help="Such as ml.g5.2xlarge.")] = None,
    instances: Annotated[
        int | None,
        typer.Argument(parser=_instances, metavar="[NUMBER|unlimited]", help="How many instances of it are free."),
    ] = None,
    directory: Directory = None,
) -> None:
    """Limit the instances of a type that each deployment of an endpoint gets, or list the limits.

    SageMaker often has no instance of a GPU free. 0 shows what a deployment then does, and which instance pool serves.
    The limit applies from the next deployment on, until the local AWS ends; running endpoints keep running.

    Example: cdk-triton local capacity ml.g5.2xlarge 0
    """
    from cdk_triton.sagemaker import gpu_instance

    daemon = _of_this_shell(directory)
    of_directory = daemon.capacity
    if instance_type is not None:
        if instances is None:
            fix = f"give the number of free instances of {instance_type}, or 'unlimited'."
            raise typer.BadParameter(fix, param_hint="'[NUMBER|unlimited]'")
        of_directory.set(gpu_instance(instance_type).name, None if instances == _UNLIMITED else instances)
        _tell_if_none_runs(daemon)
    limits = of_directory.limits()
    for name, count in sorted(limits.items()):
        typer.echo(f"{name} {count}")
    if not limits:
        typer.echo("no instance type is limited", err=True)


def _tell_if_none_runs(daemon: Daemon) -> None:
    if daemon.status() is None:
        typer.echo(f"no local AWS runs in {daemon.directory}: the number holds for the next one there", err=True)


@app.command()
def down(directory: Directory = None) -> None:
    """Stop the local AWS, with every server that it started; only its logs are kept.

    Example: cdk-triton local down
    """
    daemon = _daemon(directory)
    found = daemon.status()
    if found is None or not daemon.stop():
        typer.echo(f"no local AWS runs in {daemon.directory}", err=True)
        _list_others(daemon)
        return
    typer.echo(
        "stopped. Shells that have its variables still call it. To call AWS from such a shell again, run:", err=True
    )
    typer.echo(f"    {unset_line(found.environment)}", err=True)


def _command(words: str, directory: Path | None) -> str:
    """With the option for the directory, if the user named one."""
    from cdk_triton_local import directory_option

    return f"cdk-triton local {words}{'' if directory is None else directory_option(directory)}"


def _background_command(directory: Path | None, options: DaemonOptions) -> str:
    words = _command("up --detach", directory)
    for each in fields(options):
        value = getattr(options, each.name)
        if value != each.default:
            words += f" --{each.name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(str(value))}")
    return words


def _checked_region(region: str) -> str:
    """Regions that are newer than this botocore match a partition of AWS, too."""
    from botocore.exceptions import UnknownRegionError
    from botocore.loaders import Loader
    from botocore.regions import EndpointResolver

    try:
        EndpointResolver(Loader().load_data("endpoints")).get_partition_for_region(region)
    except UnknownRegionError:
        raise typer.BadParameter(
            f"'{region}' is not a region, because no partition of AWS has it; use one such as us-east-1.",
            param_hint="'--region'",
        ) from None
    return region


def _checked_faults(names: str) -> str:
    from cdk_triton_local import fault_names

    for name in filter(None, names.split(",")):
        if name not in fault_names():
            raise typer.BadParameter(
                f"'{name}' is not a fault; use one of {', '.join(fault_names())}.", param_hint="'--faults'"
            )
    return names


def _tell_of_the_foreground(status: DaemonStatus, in_background: str) -> None:
    _print_exports(status.environment)
    typer.echo("the local AWS runs in the foreground; press Ctrl-C to stop it", err=True)
    if not sys.stdout.isatty():
        # A shell that evaluates what we print waits for our end, and sees nothing but what is on stderr.
        typer.echo(
            "if your shell runs this command inside eval, it waits until the local AWS stops; to set the shell's "
            f'variables, press Ctrl-C and run: eval "$({in_background})"',
            err=True,
        )


def local_hint(dead_url: str = "") -> str:
    """The end of an error message for a shell without the variables of this directory's local AWS; "" without one.

    Args:
        dead_url: the address of a local AWS that did not answer.
    """
    from cdk_triton_local import Daemon

    try:
        status = Daemon().status()
    except LocalError:
        return ""
    if status is None or status.url in (dead_url, os.environ.get("AWS_ENDPOINT_URL")):
        return ""
    return f'; a local AWS runs in ./{_DEFAULT_DIRECTORY}: eval "$(cdk-triton local status)"'


def _list_others(daemon: Daemon) -> None:
    """The local AWS of a directory outside this project may belong to another task."""
    for directory, status in daemon.others(daemon.directory):
        option = f"add --directory {shlex.quote(str(directory))}"
        if not _is_of_this_project(directory):
            option = f"if it is yours, {option}"
        typer.echo(f"a local AWS runs in {directory}, at {status.url}: {option}", err=True)


def _is_of_this_project(directory: Path) -> bool:
    """Below the working directory, or at the usual place in one of its parents."""
    here = Path.cwd()
    return directory.is_relative_to(here) or directory in (each / _DEFAULT_DIRECTORY for each in here.parents)


def _seconds_since_1970(text: str | None) -> float | None:
    """`--since` is a duration up to now, or a date with a time of this machine's zone."""
    if text is None:
        return None
    if found := re.fullmatch(r"(\d+)([smhd])", text):
        return time.time() - int(found[1]) * _SECONDS[found[2]]
    try:
        return datetime.datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is neither a duration, such as 90s, 10m, 2h or 1d, nor a time, such as 2026-11-23T12:00.",
            param_hint="'--since'",
        ) from None


def _daemon(directory: Path | None) -> Daemon:
    from cdk_triton_local import Daemon

    return Daemon() if directory is None else Daemon(directory)


def _of_this_shell(directory: Path | None) -> Daemon:
    """The running local AWS that the shell's variables lead to, if no directory is given."""
    daemon = _daemon(directory)
    url = os.environ.get("AWS_ENDPOINT_URL")
    if directory is None and url is not None:
        for other, status in daemon.others(daemon.directory):
            if status.url == url:
                return _daemon(other)
    return daemon


@contextmanager
def _false_on_failure() -> Iterator[None]:
    """A shell that evaluates an empty output would succeed, and go on to a real account."""
    try:
        yield
    except BaseException:
        typer.echo("false")
        raise


def _print_exports(environment: Mapping[str, str]) -> None:
    from cdk_triton_local import conflicting_variables, no_proxy

    for name in conflicting_variables(os.environ):
        typer.echo(f"unset {name}")
    # NO_PROXY is the business of the shell that asks; it need not be the one that started it.
    for name, value in {**environment, **no_proxy(os.environ)}.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
