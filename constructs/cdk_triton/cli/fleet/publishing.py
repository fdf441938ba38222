"""The steps of a publication: check, compare with the catalogue, pack, upload, start, follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from cdk_triton.cli.artifacts.aws import in_parallel
from cdk_triton.cli.fleet.catalogue import Catalogue, read_catalogue
from cdk_triton.cli.fleet.execution import Outcome, follow, start
from cdk_triton.cli.fleet.golden import upload_golden
from cdk_triton.cli.fleet.manifest import Listed
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.cli.fleet.publication import (
    Publication,
    copy_item,
    is_live,
    publish_item,
    write_builds,
    write_request,
)
from cdk_triton.cli.fleet.republishing import has_passed_there, judge_published
from cdk_triton.cli.fleet.uploads import upload
from cdk_triton.cli.fleet.verdicts import Verdict, is_current, judge
from cdk_triton.cli.progress import Countdown, working
from cdk_triton.errors import StoreError
from cdk_triton.protocol.catalogue import Entry
from cdk_triton.protocol.publication import Item

__all__ = ["Report", "attach", "change", "publish", "publish_all"]

Say = Callable[[str], object]

_NOT_STARTED: Final = "this command has not started an execution; to continue, run it again"
_MAYBE_STARTED: Final = "an execution may have started; to follow it, run the same command again"


@dataclass(frozen=True)
class Report:
    """The end of a publication.

    Attributes:
        packed: the ensembles that are live now, and whose archives this command has uploaded.
        built: the ensembles that are live now, and whose archives are built. It is not known whether the state machine
            has built an archive now, or a deployment or another publisher has built it before.
        reused: the ensembles that are live now, and whose archives the endpoint served before.
        unchanged: the ensembles that were live already.
        rejected: the errors of the checks, by ensemble.
        failed: the reasons of failures, by ensemble.
        copied: the ensembles that are live now, and whose archives another platform serves.
        unpublished: the ensembles that are not live any more.
        warnings: the warnings of the checks, by ensemble.
        first_code: the code of the first finding, errors first; None if the checks found nothing.
        uploaded: the ensembles that are live now, and whose archives an earlier command has uploaded.
    """

    packed: Sequence[str]
    built: Sequence[str]
    reused: Sequence[str]
    unchanged: Sequence[str]
    rejected: Mapping[str, Sequence[str]]
    failed: Mapping[str, str]
    copied: Sequence[str] = ()
    unpublished: Sequence[str] = ()
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    first_code: str | None = None
    uploaded: Sequence[str] = ()


def publish(fleet: Fleet, ensembles: Sequence[Listed], *, recheck: bool, say: Say) -> Report:
    """Make repositories live; those with errors are rejected, and the others go on.

    Args:
        fleet: the publisher.
        ensembles: the repositories.
        recheck: whether to check unchanged repositories, too, and to upload again what earlier commands have uploaded.
        say: is called with what a person has to know meanwhile.

    Raises:
        ConfigurationError: more ensembles would change than one execution changes.
        StoreError: an upload failed.
        ClientError, BotoCoreError: AWS rejected a call.
        SystemExit: the process got SIGTERM during the uploads.
    """
    with _explained(_NOT_STARTED, say, KeyboardInterrupt, SystemExit):
        verdicts = _judged(fleet, ensembles, recheck=recheck)
        rejected = {each.listed.ensemble: each.errors for each in verdicts if each.errors}
        warnings = {each.listed.ensemble: each.warnings for each in verdicts if each.warnings}
        catalogue = _catalogue(fleet)
        unreadable = _unreadable(catalogue, {each.listed.ensemble for each in verdicts} - rejected.keys(), say)
        sound = [each for each in verdicts if not each.errors and each.listed.ensemble not in unreadable]
        served = set(fleet.keys(fleet.served))
        kept = {
            each.listed.ensemble
            for each in sound
            if is_live(each, catalogue.entries.get(each.listed.ensemble)) and _is_served(each, fleet, served)
        }
        new = [each for each in sound if each.listed.ensemble not in kept]
        unchanged = [each.listed.ensemble for each in sound if each.listed.ensemble in kept]
        if not new:
            code = _first_code(verdicts)
            return Report([], [], [], unchanged, rejected, unreadable, warnings=warnings, first_code=code)
        uploaded, failed = _upload(fleet, _publication(fleet, new), new, served, again=recheck)
        failed |= upload_golden(fleet, [each for each in new if each.listed.ensemble not in failed])
        going = [each for each in new if each.listed.ensemble not in failed]
        publication = _publication(fleet, going)
        if going:  # an execution that fails sets off the alarm
            write_builds(fleet, publication, going)
            write_request(fleet, publication)
    if going:
        failed |= _failures(fleet, publication, going, say)
    kinds: dict[str, list[str]] = {"packed": [], "built": [], "reused": [], "uploaded": []}
    for each in going:
        if each.listed.ensemble not in failed:
            kinds[_kind(each, fleet, served, uploaded)].append(each.listed.ensemble)
    return Report(
        kinds["packed"],
        kinds["built"],
        kinds["reused"],
        unchanged,
        rejected,
        unreadable | failed,
        warnings=warnings,
        first_code=_first_code(verdicts),
        uploaded=kinds["uploaded"],
    )


def publish_all(present: Fleet, following: Fleet, *, say: Say) -> Report:
    """Publish for another platform all that is live for the present one, and unpublish there what is unpublished here.

    No archive is uploaded, and what was rehearsed is rehearsed with the same golden requests.

    Args:
        present: the publisher of the present platform.
        following: the publisher of the other platform.
        say: is called with what a person has to know meanwhile.

    Raises:
        ConfigurationError: more ensembles would change than one execution changes.
        ClientError, BotoCoreError: AWS rejected a call.
    """
    with _explained(_NOT_STARTED, say, KeyboardInterrupt):
        catalogue, following_catalogue = _catalogue(present), _catalogue(following)
        known = catalogue.entries.keys() | catalogue.faults.keys()
        unreadable = _unreadable(catalogue, known, say) | _unreadable(following_catalogue, known, say)
        here, following_entries = (
            {name: entry for name, entry in each.entries.items() if name not in unreadable}
            for each in (catalogue, following_catalogue)
        )
        live = {name: entry for name, entry in here.items() if entry.current is not None}
        served = set(following.keys(following.served))
        there = {
            name: entry.current
            for name, entry in following_entries.items()
            if f"{following.served}{entry.current}" in served
        }
        surplus = {name: entry for name, entry in here.items() if _is_surplus(entry, following_entries.get(name))}

        def is_there(name: str) -> bool:
            if there.get(name) != live[name].current:
                return False
            return has_passed_there(present, following, live[name].versions[0], following_entries[name].versions[0])

        with working(f"comparing {len(live):,} ensembles"):
            are_there = dict(zip(live, in_parallel(is_there, live), strict=True))
        unchanged = [name for name in live if are_there[name]]
        versions = {name: entry.versions[0] for name, entry in live.items() if not are_there[name]}
        with working(f"checking {len(versions):,} ensembles") as shown:
            verdicts, failed = judge_published(
                present,
                following,
                versions,
                progress=Countdown(shown, "checked {} ensembles", len(versions)),
            )
        failed |= unreadable
        sound = [each for each in verdicts if not each.errors]
        rejected = {each.listed.ensemble: each.errors for each in verdicts if each.errors}
        warnings = {each.listed.ensemble: each.warnings for each in verdicts if each.warnings}
        if not sound and not surplus:
            return Report([], [], [], unchanged, rejected, failed, warnings=warnings, first_code=_first_code(verdicts))
        label = present.description.platform.label
        gone = [Item(name, "unpublish" if entry.versions else "forget") for name, entry in surplus.items()]
        items = [*(copy_item(each, label) for each in sound), *gone]
        publication = Publication.of(following, items)
        write_builds(following, publication, sound)
        write_request(following, publication)
    failed |= _failures(following, publication, sound, say, surplus)
    done = [each for each in sound if each.listed.ensemble not in failed]
    built = [each.listed.ensemble for each in done if each.build is not None]
    copied = [each.listed.ensemble for each in done if each.build is None]
    unpublished = [name for name in surplus if name not in failed]
    return Report([], built, [], unchanged, rejected, failed, copied, unpublished, warnings, _first_code(verdicts))


def change(fleet: Fleet, item: Item, *, say: Say) -> None:
    """Roll an ensemble back, unpublish it or forget it.

    Raises:
        StoreError: the state machine could not make the change.
        ClientError, BotoCoreError: AWS rejected a call.
    """
    publication = Publication.of(fleet, [item])
    with _explained(_NOT_STARTED, say, KeyboardInterrupt):
        write_request(fleet, publication)
    outcome = _execute(fleet, publication, say)
    if not outcome.succeeded:
        raise StoreError(outcome.failures.get(item.ensemble, outcome.cause))


def attach(fleet: Fleet, arn: str, *, ensembles: int | None = None, say: Say) -> Outcome:
    """Follow an execution to its end.

    Args:
        fleet: the publisher.
        arn: the execution.
        ensembles: how many it changes; None if that is not known.
        say: is called with what a person has to know meanwhile.

    Raises:
        ClientError, BotoCoreError: AWS rejected a call.
    """
    name = arn.rsplit(":", 1)[-1]
    again = f"cdk-triton fleet publish --fleet {fleet.name}{fleet.platform_option} --attach {name}"
    hint = f"the execution {name} goes on; to follow it again, run: {again}"
    with _explained(hint, say, KeyboardInterrupt, ClientError, BotoCoreError), working("the execution starts") as shown:
        return follow(fleet, arn, ensembles=ensembles, say=shown.say)


def _judged(fleet: Fleet, ensembles: Sequence[Listed], *, recheck: bool) -> list[Verdict]:
    with working(f"checking {len(ensembles):,} repositories") as shown:
        return judge(
            ensembles,
            fleet.description,
            recheck=recheck,
            progress=Countdown(shown, "checked {} repositories", len(ensembles)),
        )


def _catalogue(fleet: Fleet) -> Catalogue:
    with working("reading the catalogue"):
        return read_catalogue(fleet)


def _unreadable(catalogue: Catalogue, changing: Set[str], say: Say) -> dict[str, str]:
    """Why some ensembles of a publication cannot change; the faults of other ensembles are only warnings."""
    for ensemble, fault in catalogue.faults.items():
        if ensemble not in changing:
            say(f"warning: {fault}")
    return {ensemble: str(fault) for ensemble, fault in catalogue.faults.items() if ensemble in changing}


def _publication(fleet: Fleet, verdicts: Iterable[Verdict]) -> Publication:
    return Publication.of(fleet, map(publish_item, verdicts))


def _is_served(verdict: Verdict, fleet: Fleet, served: Set[str]) -> bool:
    """Whether the endpoint can load the target model.

    Args:
        verdict: the repository.
        fleet: the publisher.
        served: the object keys of the archives that are served.
    """
    return fleet.served + verdict.target_model in served


def _kind(verdict: Verdict, fleet: Fleet, served: Set[str], uploaded: Set[str]) -> str:
    """The member of the report that has an ensemble that is live now.

    Args:
        verdict: the ensemble.
        fleet: the publisher.
        served: the object keys of the archives that were served before.
        uploaded: the ensembles whose archives this command has uploaded.
    """
    if _is_served(verdict, fleet, served):
        return "reused"
    if verdict.build is not None:
        return "built"
    return "packed" if verdict.listed.ensemble in uploaded else "uploaded"


def _upload(
    fleet: Fleet, publication: Publication, new: Sequence[Verdict], served: Set[str], *, again: bool
) -> tuple[set[str], dict[str, str]]:
    """Upload what the store does not have.

    Args:
        fleet: the publisher.
        publication: the ensembles that change.
        new: the ensembles of the publication.
        served: the object keys of the archives that are served.
        again: whether to repeat uploads of earlier commands, which may be damaged.

    Returns:
        The ensembles whose archives are uploaded, and why some cannot be packed.
    """
    absent = [each for each in new if not _is_served(each, fleet, served)]
    keys = {each.listed.ensemble: publication.upload_key(each.artifact_key) for each in absent}
    there = set() if again else set(fleet.keys(publication.uploads))
    missing = {keys[each.listed.ensemble]: each for each in absent if keys[each.listed.ensemble] not in there}
    with working(f"packing {len(missing):,} archives") as shown:
        faults = upload(
            fleet,
            {key: each.listed.directory for key, each in missing.items()},
            is_as_checked=lambda key: is_current(missing[key], fleet.description),
            progress=Countdown(shown, "uploaded {} archives", len(missing)),
        )
    uploaded = {ensemble for ensemble, key in keys.items() if key in missing}
    return uploaded, {ensemble: faults[key] for ensemble, key in keys.items() if key in faults}


def _first_code(verdicts: Iterable[Verdict]) -> str | None:
    found = [each for verdict in verdicts for each in verdict.findings]
    return min(found, key=lambda each: each.severity).code if found else None


def _is_surplus(entry: Entry, elsewhere: Entry | None) -> bool:
    """Whether another platform still has an ensemble that was unpublished or forgotten here."""
    if entry.current is not None or elsewhere is None:
        return False
    is_forgotten_here_only = not entry.versions and bool(elsewhere.versions)
    return elsewhere.current is not None or is_forgotten_here_only


def _failures(
    fleet: Fleet,
    publication: Publication,
    new: Sequence[Verdict],
    say: Say,
    surplus: Mapping[str, Entry] = MappingProxyType({}),
) -> dict[str, str]:
    """Execute a publication; the answer is the reason of each ensemble that did not become what it should.

    Args:
        fleet: the publisher.
        publication: the work.
        new: the ensembles that it makes live.
        say: is called with what a person has to know meanwhile.
        surplus: the ensembles that it unpublishes or forgets, as the present platform has them.
    """
    outcome = _execute(fleet, publication, say)
    if outcome.succeeded:
        with suppress(StoreError, ClientError, BotoCoreError):  # what is live is live, whether or not this succeeds
            _catalogue(fleet)  # so that the next run finds the new documents in the cache
        return {}
    catalogue, served = _catalogue(fleet).entries, set(fleet.keys(fleet.served))
    reasons = {name: outcome.reason(name) for name, entry in surplus.items() if _is_surplus(entry, catalogue.get(name))}
    for each in new:
        name = each.listed.ensemble
        if not is_live(each, catalogue.get(name)):
            reasons[name] = outcome.reason(name)
        elif not _is_served(each, fleet, served):
            gone = f"{each.target_model!r} was deleted meanwhile; publish the ensemble again"
            reasons[name] = outcome.failures.get(name, gone)
    return reasons


def _execute(fleet: Fleet, publication: Publication, say: Say) -> Outcome:
    with _explained(_MAYBE_STARTED, say, KeyboardInterrupt, BotoCoreError):
        arn = start(fleet, publication)
    return attach(fleet, arn, ensembles=len(publication.items), say=say)


@contextmanager
def _explained(hint: str, say: Say, *errors: type[BaseException]) -> Iterator[None]:
    """Say how to go on after an interruption or an error of these types."""
    try:
        yield
    except errors:
        say(hint)
        raise
