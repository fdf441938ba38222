"""The commands `publish`, `list`, `rollback` and `unpublish`; boto3 is imported when one of them runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.cli.fleet.place import Fleet
    from cdk_triton.protocol.catalogue import Entry

__all__ = ["app"]

app = typer.Typer(
    help="Publish ensembles of a multi-model endpoint without a deployment, and list them.", no_args_is_help=True
)

FleetOption = Annotated[
    str,
    typer.Option(
        "--fleet",
        metavar="STACK/FLEET",
        help="The CloudFormation stack, and the path of the TritonMultiModel in it.",
        show_default=False,
    ),
]
Ensemble = Annotated[str, typer.Argument(metavar="ENSEMBLE", help="The name of the ensemble.", show_default=False)]
Manifest = Annotated[
    Path | None,
    typer.Argument(metavar="MANIFEST", help="A CSV or JSON file, or a directory of repositories.", show_default=False),
]
Attach = Annotated[
    str | None, typer.Option(metavar="EXECUTION", help="Only follow an execution that was started before.")
]
Platform = Annotated[
    str | None,
    typer.Option(
        metavar="RELEASE/INSTANCE",
        help="The platform whose ensembles are meant; by default the one that the endpoint serves.",
    ),
]
All = Annotated[
    bool, typer.Option("--all", help="Publish everything that is live now, for the platform of --platform.")
]
Recheck = Annotated[
    bool,
    typer.Option(
        "--recheck",
        help="Hash and check unchanged repositories, too, and upload again what an earlier command has uploaded.",
    ),
]
Version = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="A target model of `fleet list`; by default the one that was live before."),
]


Forget = Annotated[
    bool,
    typer.Option(
        "--forget",
        help="Remove its versions from the catalogue, too: `cdk-triton artifacts gc` may delete them.",
    ),
]


@app.command()
def publish(
    fleet: FleetOption,
    manifest: Manifest = None,
    all_: All = False,
    platform: Platform = None,
    attach: Attach = None,
    recheck: Recheck = False,
) -> None:
    """Check, pack and upload repositories, and make them live; exit 1 if one of them is not live in the end.

    Example: cdk-triton fleet publish tenants --fleet Serving/Fleet
    """
    if sum([manifest is not None, attach is not None, all_]) != 1:
        raise typer.BadParameter("give either a manifest, --all or --attach", param_hint="MANIFEST")
    if all_ and platform is None:
        raise typer.BadParameter("--all needs the platform that you are going to change to", param_hint="--platform")
    if recheck and all_:
        raise typer.BadParameter("--all checks every ensemble anyway: omit --recheck", param_hint="--recheck")
    if recheck and attach is not None:
        raise typer.BadParameter("--attach checks nothing: omit --recheck", param_hint="--recheck")
    with _opened(fleet, platform) as found:
        from cdk_triton.cli.fleet import execution, publishing, text

        if attach is not None:
            outcome = publishing.attach(found, execution.find(found, attach), say=_say)
            lines, failed = text.ended(outcome), not outcome.succeeded
        else:
            if manifest is None:
                from cdk_triton.cli.fleet.place import open_fleet

                report = publishing.publish_all(open_fleet(fleet), found, say=_say)
            else:
                from cdk_triton.cli.fleet.manifest import read_manifest

                report = publishing.publish(found, read_manifest(manifest), recheck=recheck, say=_say)
            lines, failed = text.report(report), bool(report.failed or report.rejected)
        _print(lines)
    if failed:
        raise typer.Exit(1)


@app.command("list")
def list_(
    fleet: FleetOption,
    ensemble: Annotated[
        str | None, typer.Argument(metavar="ENSEMBLE", help="Show the history of this one.", show_default=False)
    ] = None,
    platform: Platform = None,
) -> None:
    """List the published ensembles, or the versions of one.

    Example: cdk-triton fleet list --fleet Serving/Fleet
    """
    with _opened(fleet, platform) as found:
        from cdk_triton.cli.fleet import text
        from cdk_triton.cli.fleet.catalogue import read_catalogue
        from cdk_triton.cli.fleet.elsewhere import changed_elsewhere, warnings

        if ensemble is None:
            here = read_catalogue(found)
            _print(text.overview(here.entries.values()))
            for fault in here.faults.values():
                _say(f"warning: {fault}")
            if not found.description.is_next:
                for line in warnings(found, changed_elsewhere(found, here)):
                    _say(line)
        else:
            _print(text.history(_published(found, ensemble)))


@app.command()
def rollback(ensemble: Ensemble, fleet: FleetOption, to: Version = None, platform: Platform = None) -> None:
    """Make an earlier version of an ensemble live.

    Example: cdk-triton fleet rollback tenant-7 --fleet Serving/Fleet
    """
    with _opened(fleet, platform) as found:
        from cdk_triton.cli.fleet import publishing
        from cdk_triton.protocol.publication import Item

        entry = _published(found, ensemble)
        _require_version(found, entry, to)
        publishing.change(found, Item(ensemble, "roll_back", to=to), say=_say)
        _print([f"callers of {ensemble} get {_published(found, ensemble).current}"])


@app.command()
def unpublish(ensemble: Ensemble, fleet: FleetOption, forget: Forget = False, platform: Platform = None) -> None:
    """Take an ensemble out of the catalogue; `rollback` brings it back unless its versions are forgotten.

    Example: cdk-triton fleet unpublish tenant-7 --fleet Serving/Fleet
    """
    with _opened(fleet, platform) as found:
        from cdk_triton.cli.fleet import publishing
        from cdk_triton.protocol.publication import Item

        entry = _published(found, ensemble)
        if not entry.versions or (entry.current is None and not forget):
            _print([f"{ensemble} was unpublished already"])
        elif forget:
            publishing.change(found, Item(ensemble, "forget"), say=_say)
            _print([f"{ensemble} is unpublished, and the catalogue does not list its versions any more"])
        else:
            publishing.change(found, Item(ensemble, "unpublish"), say=_say)
            _print([f"{ensemble} is unpublished"])


@contextmanager
def _opened(name: str, platform: str | None) -> Iterator[Fleet]:
    """The publisher for a platform; an error of AWS within becomes a sentence, and a wrong argument a usage error."""
    from cdk_triton.cli.artifacts.aws import sentences
    from cdk_triton.cli.fleet.place import open_fleet

    try:
        with sentences():
            yield open_fleet(name, platform)
    except ConfigurationError as error:
        raise typer.BadParameter(str(error)) from error


def _published(fleet: Fleet, ensemble: str) -> Entry:
    """The catalogue's entry of an ensemble.

    Raises:
        ConfigurationError: the ensemble was never published.
    """
    from cdk_triton._wording import did_you_mean, listed
    from cdk_triton.cli.fleet.catalogue import elsewhere, names, read_entry

    entry = read_entry(fleet, ensemble)
    if entry is None and (keys := elsewhere(fleet, ensemble)):
        raise ConfigurationError(
            f"{ensemble!r} is not published for {fleet.description.platform.label}, but for another platform, whose "
            f"publisher is gone: publish it again, or delete {listed(keys)} from the bucket {fleet.bucket} to forget it"
        )
    if entry is None:
        near = did_you_mean(ensemble, names(fleet))
        raise ConfigurationError(f"{ensemble!r} was never published{near}: `cdk-triton fleet list` shows the names")
    return entry


def _require_version(fleet: Fleet, entry: Entry, version: str | None) -> None:
    """Reject a rollback that the state machine would fail, because an execution that fails sets off the alarm.

    Args:
        fleet: the publisher.
        entry: the ensemble.
        version: the target model; None for the one that was live before.

    Raises:
        ConfigurationError: the catalogue does not list the version, or the store does not have it; the message names
            the versions that are there.
    """
    if not entry.versions:
        raise ConfigurationError(
            f"the catalogue does not list a version of the ensemble {entry.ensemble!r}: publish the ensemble"
        )
    if version is None:
        earlier = [each.target_model for each in entry.versions if each.target_model != entry.current]
        if not earlier:
            raise ConfigurationError(
                f"the ensemble {entry.ensemble!r} has only the version {entry.current!r}, which is live: publish "
                "another version first"
            )
        version = earlier[0]
    there = set(fleet.keys(f"{fleet.served}{entry.ensemble}-"))
    versions = [each.target_model for each in entry.versions if fleet.served + each.target_model in there]
    if version not in versions:
        is_listed = version in [each.target_model for each in entry.versions]
        lacks = "store does not have" if is_listed else "catalogue does not list"
        gone = f"the {lacks} the version {version!r} of the ensemble {entry.ensemble!r}"
        if not versions:
            no_other = "has no other version" if is_listed else "the store has no version"
            raise ConfigurationError(f"{gone}, and {no_other} of it: publish the ensemble")
        raise ConfigurationError(
            f"{gone}, but has {', '.join(map(repr, versions))}: name one of these, or publish the ensemble"
        )


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)
