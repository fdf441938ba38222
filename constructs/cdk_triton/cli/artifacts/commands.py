"""The commands `list`, `show`, `build` and `gc`.

The output for programs goes to stdout, and the progress for people to stderr. boto3 is imported when a command runs,
because `--help` does not need it.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton._wording import in_words
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.cli.artifacts.assembly import StackAssembly
    from cdk_triton.cli.artifacts.store import Store

__all__ = ["app"]

_LOCAL_POLL_SECONDS = 1.0
_MOST_DAYS = 36_500

app = typer.Typer(help="List, build and delete the artifacts of a deployed store.", no_args_is_help=True)


class AnswerFormat(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


StoreOption = Annotated[
    str,
    typer.Option("--store", metavar="STACK", help="The CloudFormation stack that holds the store.", show_default=False),
]
AnyStoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STACK",
        help="The CloudFormation stack that holds the store; without it, the only store of the region.",
        show_default=False,
    ),
]
FormatOption = Annotated[AnswerFormat, typer.Option("--format", help="How to print the answer.")]


@app.command("list")
def list_(store: AnyStoreOption = None, output: FormatOption = AnswerFormat.TEXT) -> None:
    """List the committed artifacts, who uses them, and the builds that run.

    A target model is current, previous (an update replaced it) or dropped (older, or removed). Callers can send all
    three. An artifact in use by nobody is one that `artifacts gc` may delete later.

    Example: cdk-triton artifacts list --store TritonArtifacts
    """
    with _opened(store) as found:
        from cdk_triton.cli.artifacts import listing

        answer = listing.read(found)
    _print(output, listing.as_json(answer), listing.as_text(answer))


@app.command()
def show(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="The artifact key, a unique beginning of it, REPOSITORY/KEY, or a target model."
        ),
    ],
    store: AnyStoreOption = None,
    output: FormatOption = AnswerFormat.TEXT,
) -> None:
    """Show the manifest of one artifact: sources, tools and times of its build, and how its outputs compared.

    Rehearsals that it passed are shown with their figures, beside those of the version before.

    An archive that was published without a build has no manifest. It is shown as the store's catalogue lists it.

    Example: cdk-triton artifacts show --store TritonArtifacts text-0123456789.tar.gz
    """
    with _opened(store) as found:
        from cdk_triton.cli.artifacts import shown, text

        document = shown.document_of(found, key)
    _print(output, document, text.tree(document))


@app.command()
def build(
    stack: Annotated[
        str, typer.Argument(metavar="STACK", help="The stack that is going to be deployed.", show_default=False)
    ],
    store: StoreOption,
    application: Annotated[
        Path, typer.Option("--app", "-a", metavar="DIR", help="The cloud assembly that `cdk synth` wrote.")
    ] = Path("cdk.out"),
) -> None:
    """Build the archives of a stack before its deployment, however long that takes.

    Example: cdk-triton artifacts build --store TritonArtifacts MyStack
    """
    with _opened(store) as found:
        from cdk_triton.cli.artifacts import running
        from cdk_triton.cli.artifacts.assembly import read_stack

        pseudo = found.aws.pseudo_parameters()
        assembly = read_stack(application, stack, pseudo)
        _check_store(assembly, store)
        longest = _LOCAL_POLL_SECONDS if found.aws.is_local else math.inf
        with _explained_interruption(stack):
            count = running.run(
                found, assembly, pseudo["AWS::AccountId"], wait=lambda pause: time.sleep(min(pause, longest)), say=_say
            )
    typer.echo(f"{assembly.name}: all artifacts are in the store ({count})")


def _check_store(assembly: StackAssembly, store: str) -> None:
    given = store.split("/")[1] if store.startswith("arn:") else store
    if assembly.stores and given not in assembly.stores:
        raise ConfigurationError(
            f"the stack {assembly.name} does not use the store of {given}: use "
            f"{in_words(f'--store {name}' for name in sorted(assembly.stores))}"
        )


def _days(text: int | str) -> int:
    """Read days, as `30d` or `30`."""
    found = re.fullmatch(r"([0-9]{1,6})d?", str(text))
    if found is None or not 1 <= int(found[1]) <= _MOST_DAYS:
        raise typer.BadParameter(
            f"{text} must be a number of days from 1 to {_MOST_DAYS:,}, such as 30d, because an archive that was "
            "stored for a later deployment is not used yet."
        )
    return int(found[1])


@app.command()
def gc(
    store: StoreOption,
    older_than: Annotated[
        int,
        typer.Option(
            metavar="DAYS", parser=_days, help="Keep objects stored or replaced within that time, such as 30d."
        ),
    ] = 30,
    keep_last: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Keep the last N of each repository and ensemble, whatever their age."),
    ] = 0,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; otherwise only list the garbage.")] = False,
    output: FormatOption = AnswerFormat.TEXT,
) -> None:
    """Find the archives that nothing uses any more, and delete them with --yes.

    Example: cdk-triton artifacts gc --store TritonArtifacts --older-than 60
    """
    with _opened(store) as found:
        from cdk_triton.cli.artifacts import listing, sweep

        grace = timedelta(days=older_than)
        look = partial(sweep.survey, found, grace, keep_last=keep_last)
        seen = look()
        swept = None
        if yes:
            reason = {"older_than_days": older_than, "keep_last": keep_last}
            swept = sweep.delete(found, seen.free, look, reason)
        answer = listing.Collection(found.bucket, seen, older_than, swept)
    _print(output, listing.collection_as_json(answer), listing.collection_as_text(answer))


@contextmanager
def _opened(stack: str | None) -> Iterator[Store]:
    """The store of a stack, or the only one.

    A call that AWS rejects within is a sentence, and a wrong argument is a usage error.
    """
    from cdk_triton.cli.artifacts.aws import sentences
    from cdk_triton.cli.artifacts.store import only_store, open_store

    try:
        with sentences():
            yield only_store() if stack is None else open_store(stack)
    except ConfigurationError as error:
        raise typer.BadParameter(str(error)) from error


@contextmanager
def _explained_interruption(stack: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        _say(
            "interrupted; a build that was started continues. To wait for the build again, run this command again or "
            f"deploy {stack}: neither starts a second build"
        )
        raise


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print(output: AnswerFormat, document: object, lines: Iterator[str]) -> None:
    if output is AnswerFormat.JSON:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for line in lines:
            typer.echo(line)
