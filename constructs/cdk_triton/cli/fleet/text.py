"""The texts that `cdk-triton fleet` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cdk_triton._wording import listed
from cdk_triton.cli.artifacts.text import table, time_of
from cdk_triton.cli.fleet.execution import Outcome
from cdk_triton.cli.fleet.publishing import Report
from cdk_triton.cli.text import explanation
from cdk_triton.protocol.catalogue import Change, Entry
from cdk_triton.triton.findings import printable

__all__ = ["ended", "history", "overview", "report"]


def overview(entries: Iterable[Entry]) -> Iterator[str]:
    """A line for each ensemble."""
    rows = []
    for entry in sorted(entries, key=lambda each: each.ensemble):
        change = entry.changed
        target = entry.current or "(unpublished)"
        rows.append([entry.ensemble, target, time_of(change.time), str(len(entry.versions)), change.publisher])
    yield from table(["ENSEMBLE", "TARGET MODEL", "SINCE (UTC)", "VERSIONS", "PUBLISHER"], rows)


def history(entry: Entry) -> Iterator[str]:
    """A line for each version of an ensemble, the one that went live most recently first."""
    rows = []
    if entry.unpublished is not None:
        rows.append(["(unpublished)", *_of(entry.unpublished)])
    rows += [[each.target_model, *_of(each.live)] for each in entry.versions]
    yield from table(["TARGET MODEL", "WENT LIVE (UTC)", "EXECUTION", "PUBLISHER"], rows)


def report(found: Report) -> Iterator[str]:
    """The end of a publication."""
    yield from _findings(found)
    for ensemble, reason in sorted(found.failed.items()):
        yield printable(f"failed {ensemble}: {reason}")
    if found.packed:
        yield f"published, packed now: {listed(found.packed)}"
    if found.built:
        yield f"published, built in AWS now or before: {listed(found.built)}"
    if found.uploaded:
        yield f"published, uploaded by an earlier command: {listed(found.uploaded)}"
    if found.copied:
        yield f"published, copied from the present platform: {listed(found.copied)}"
    if found.reused:
        yield f"published, archives were there: {listed(found.reused)}"
    if found.unpublished:
        yield f"unpublished, as on the present platform: {listed(found.unpublished)}"
    counts = {
        "published": sum(map(len, (found.packed, found.built, found.uploaded, found.copied, found.reused))),
        "unpublished": len(found.unpublished),
        "unchanged": len(found.unchanged),
        "rejected by the checks": len(found.rejected),
        "failed": len(found.failed),
    }
    yield ", ".join(f"{count:,} {word}" for word, count in counts.items() if count or word == "published")


def ended(outcome: Outcome) -> Iterator[str]:
    """The end of an execution."""
    for ensemble, reason in sorted(outcome.failures.items()):
        yield printable(f"failed {ensemble}: {reason}")
    yield printable(f"the execution {outcome.name} has {_end(outcome)}")


def _findings(found: Report) -> Iterator[str]:
    for warning, ensembles in _by_text(found.warnings).items():
        yield printable(f"warning about {listed(ensembles)}: {warning}")
    for ensemble, errors in found.rejected.items():
        for error in errors:
            yield printable(f"rejected {ensemble}: {error}")
    if found.first_code is not None:
        yield explanation(found.first_code)


def _by_text(texts: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """The ensembles by text, because repositories that are copies of one another have the same findings."""
    ensembles: dict[str, list[str]] = {}
    for ensemble, found in texts.items():
        for text in found:
            ensembles.setdefault(text, []).append(ensemble)
    return ensembles


def _end(outcome: Outcome) -> str:
    return "succeeded" if outcome.succeeded else f"failed: {outcome.cause}"


def _of(change: Change) -> list[str]:
    execution = change.execution.rsplit(":", 1)[-1]
    return [time_of(change.time), execution, change.publisher]
