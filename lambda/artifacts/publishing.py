"""The functions of a publisher's state machine, each safe to repeat: `prepare`, `change`, `record` and `count`.

`prepare` runs once, then the store's handler builds and rehearses (`published_builds`). `change` runs for each
ensemble, `record` for each that could not be built or changed, and `count` at the end. `change` first copies the
archive, which no caller knows yet, and then writes the catalogue, by which callers find it. So an ensemble is in its
old or in its new state, and never in between.

An ensemble that is done already costs one call of S3. So an execution that failed or was stopped can be started again
with the same request.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from protocol.catalogue import Change, Entry, Version
from protocol.keys import ArchiveKeys, KeyInputs
from protocol.layout import ARTIFACT_KEY_METADATA, pass_key
from protocol.outcome import Failure, failure_of_execution
from protocol.publication import MAX_REQUEST_BYTES, Item

from . import catalogue
from .clients import CONNECTIONS
from .commits import check_owner, stored
from .copying import copy_if_absent
from .failure import ArtifactError, NotYetError, for_publisher, is_transient, reason_of
from .invocation import Each
from .multi_model_index import open_catalogue, read_index
from .publication import Place, caller_of, parse_item, parse_request
from .published_builds import built_commit
from .rehearsals import has_passed
from .storage import LostRaceError, Storage, StoredObject, TooLargeError
from .turn import Turn
from .verified_copy import copy_verified, verified

__all__ = ["Publisher", "batches", "change", "count", "prepare", "record"]

MAX_BATCH = 10
"""Archives of one build. A builder ends a job after two hours by default, and a TensorRT plan takes some minutes."""

MAX_NAMES = 20
"""Repositories of one batch with the same key, whose archive is built once. A batch is the input of a state, which has
256 KiB at most ("Quotas related to state machine executions"); another batch finds the archive."""

log = logging.getLogger(__name__)

Event = Mapping[str, Any]


def prepare(event: Event, context: Any) -> dict[str, Any]:
    """Read the request, and write an item for each ensemble; the answer names the place."""
    return _run(
        event, context, lambda publisher: publisher.prepare(str(event["publish"]), int(event.get("max_builds", 0)))
    )


def change(event: Event, context: Any) -> dict[str, Any]:
    """Change one ensemble."""
    return _run(
        event,
        context,
        lambda publisher: publisher.change(str(event["publish"]), parse_item(event["item"])),
    )


def record(event: Event, context: Any) -> dict[str, Any]:
    """Record why an ensemble was not changed, or why a batch was not built."""
    if "batch" in event:
        batch = [parse_item(each) for each in event["batch"]]
        return _run(event, context, lambda publisher: publisher.record_builds(batch, event["failure"]))
    return _run(event, context, lambda publisher: publisher.record(parse_item(event["item"]), event["failure"]))


def count(event: Event, context: Any) -> dict[str, Any]:
    """Count the changed ensembles, and fail if one was not changed."""
    return _run(event, context, lambda publisher: publisher.count())


@dataclass(frozen=True)
class Publisher:
    """The functions of the state machine, with the dependencies of one invocation.

    Attributes:
        storage: the store's bucket.
        place: the `TritonMultiModel` and the execution.
        keys: the inputs of keys other than the files of an archive.
        turn: the time in which parts of a copy are begun.
        now: returns the time.
        each: applies a function to items, some of them concurrently.
        present: the platform that the endpoint serves, if this publisher is for the next one.
        is_repeated: whether an earlier attempt of this function has failed.
    """

    storage: Storage
    place: Place
    keys: KeyInputs
    turn: Turn
    now: Callable[[], datetime]
    each: Each = map
    present: str | None = None
    is_repeated: bool = False

    def prepare(self, publication: str, max_builds: int = 0) -> dict[str, Any]:
        """See the function of this name.

        Args:
            publication: the caller and the id of the request.
            max_builds: how many builds run at once; 0 for a publisher without recipes that does not rehearse.

        Raises:
            ArtifactError: the request is missing, or not valid in this version of the library.
        """
        request = self.place.request(publication)
        try:
            found = self.storage.read(request, most=MAX_REQUEST_BYTES)
        except TooLargeError as error:
            raise ArtifactError(f"{error.full}; publish fewer ensembles at once") from error
        if found is None:
            raise ArtifactError(f"the request {request} is missing; publish again to upload it")
        items = parse_request(found[0])
        of_stack = self._of_stack()
        there = set(self.storage.keys(self.place.served))
        prepared = [self._prepared(item, of_stack, there, max_builds) for item in items]
        self._write(self.place.items, json.dumps([item.document() for item in prepared]).encode())
        answer = {"publish": publication, "execution": self.place.execution, "items": self.place.items}
        if not max_builds:
            return answer
        waiting = [item for item in prepared if item.waits_for_job and item.rejected is None]
        work = batches(waiting, max_builds)
        self._write(self.place.builds, json.dumps([[item.document() for item in batch] for batch in work]).encode())
        times = {"started_at": self.now().timestamp()}
        return answer | times | {"builds": self.place.builds, "has_builds": bool(work)}

    def _of_stack(self) -> set[str]:
        """The ensembles that the stack declares."""
        names = set(open_catalogue(self.place.multi_model, self.place.index, self.storage).current)
        if self.present is not None:  # no deployment has written an index of the next platform yet
            found = read_index(self.place.index_of(self.present), self.storage)
            names |= set() if found is None else set(found.current)
        return names

    def _prepared(self, item: Item, of_stack: set[str], there: set[str], max_builds: int) -> Item:
        if item.built and not max_builds:
            reason = (
                "the ensemble needs a build, but the publisher has no recipes; install the version of "
                "cdk-triton that deployed the publisher, and publish again"
            )
            return dataclasses.replace(item, rejected=reason)
        if item.is_rehearsed and not max_builds:
            reason = (
                "the ensemble has golden requests, but the publisher does not rehearse; install the version of "
                "cdk-triton that deployed the publisher, and publish again"
            )
            return dataclasses.replace(item, rejected=reason)
        if item.action in ("publish", "roll_back") and item.ensemble in of_stack:
            reason = "the stack has an ensemble of the same name; publish this ensemble under another name"
            return dataclasses.replace(item, rejected=reason)
        return dataclasses.replace(item, is_there=self.place.served + item.target_model in there)

    def change(self, publication: str, item: Item) -> dict[str, Any]:
        """See the function of this name.

        Raises:
            NotYetError: the fault may pass, so another attempt is worth it.
            ArtifactError: another attempt fails too.
        """
        if item.rejected is not None:
            raise ArtifactError(item.rejected)
        by = Change(self.now().isoformat(timespec="seconds"), caller_of(publication), self.place.execution)
        actions = {
            "publish": self._publish,
            "roll_back": self._roll_back,
            "unpublish": self._unpublish,
            "forget": self._forget,
        }
        modify = actions[item.action]
        multi_model, platform = self.place.multi_model, self.place.platform
        # If another execution writes the catalogue first, the archive is in its place at the next attempt.
        first, later = iter([item]), dataclasses.replace(item, is_there=True)
        entry = catalogue.update(
            multi_model,
            platform,
            item.ensemble,
            lambda entry: modify(entry, next(first, later), by, publication),
            self.storage,
        )
        log.info("%s of %s: callers get %s", item.action, item.ensemble, entry.current)
        return {}

    def record(self, item: Item, failure: Mapping[str, Any]) -> dict[str, Any]:
        """See the function of this name."""
        self._write(self.place.failure(item.ensemble), Failure(item.ensemble, item.action, reason_of(failure)).text())
        return {}

    def record_builds(self, batch: Sequence[Item], failure: Mapping[str, Any]) -> dict[str, Any]:
        """Record why a batch was not built; `change` reads the reason for each archive that is not committed."""
        for item in batch:
            document = {"repository": item.repository, "reason": reason_of(failure)}
            self._write(self.place.build_failure(item.artifact_key, item.repository), json.dumps(document).encode())
        return {}

    def _write(self, key: str, text: bytes) -> None:
        """Write a document, unless an earlier run of this function has written it."""
        try:
            self.storage.write(key, text)
        except LostRaceError:
            log.info("this function has written %s before", key)

    def count(self) -> dict[str, Any]:
        """See the function of this name.

        Raises:
            ArtifactError: an ensemble was not changed.
        """
        found = self.storage.read(self.place.items)
        if found is None:
            raise ArtifactError(f"{self.place.items} is missing: it has expired or was deleted; run the command again")
        items = [parse_item(each) for each in json.loads(found[0])]
        failed = self._failures()
        there = set(self.storage.keys(self.place.served))
        rest = [item for item in items if item.ensemble not in failed]
        checked = zip(rest, self.each(lambda item: self._missing(item, there), rest), strict=True)
        failed |= {item.ensemble: reason for item, reason in checked if reason is not None}
        if failed:
            where = f"s3://{self.storage.bucket}/{self.place.failures}"
            raise ArtifactError(failure_of_execution(failed, len(items), where))
        return {"changed": len(items)}

    def _failures(self) -> dict[str, str]:
        read = self.each(self.storage.read, list(self.storage.keys(self.place.failures)))
        failures = [Failure.parse(found[0]) for found in read if found is not None]
        return {failure.ensemble: failure.reason for failure in failures}

    def _missing(self, item: Item, there: set[str]) -> str | None:
        """Why an ensemble without a recorded failure is not in the requested state; None if it is."""
        try:
            entry = catalogue.read_entry(self.place.multi_model, self.place.platform, item.ensemble, self.storage)
        except ArtifactError as error:
            return error.full
        wanted = {"publish": item.target_model, "roll_back": item.to, "unpublish": None, "forget": None}[item.action]
        is_as_requested = entry.current == wanted and (item.action, item.to) != ("roll_back", None)
        is_as_requested &= item.action != "forget" or not entry.versions
        # A later execution may have changed the ensemble since: then the entry still lists this one.
        if not (is_as_requested or entry.has(self.place.execution)):
            return "the execution ended before it changed this ensemble; run the command again"
        if entry.current is not None and self.place.served + entry.current not in there:
            return f"{entry.current!r} was deleted meanwhile; publish the ensemble again"
        return None

    def _publish(self, entry: Entry, item: Item, by: Change, publication: str) -> Entry:
        version = Version(
            item.target_model,
            item.artifact_key,
            item.source_key,
            item.repository,
            by,
            item.built,
            item.rehearsal or None,
        )
        changed = catalogue.publish(entry, version)
        if item.is_rehearsed:
            self._made(item)  # other golden requests may be for an archive that is served already
        if changed != entry or not item.is_there:  # the archive of a live ensemble may have been deleted
            # An earlier run of this function may have copied it.
            is_there = item.is_there or changed == entry or self.is_repeated
            known = dataclasses.replace(item, is_there=is_there)
            check_owner(self._served(known, publication), item.artifact_key)
        return changed

    def _roll_back(self, entry: Entry, item: Item, by: Change, _: str) -> Entry:
        changed = catalogue.roll_back(entry, by, item.to)
        if changed != entry and self._head(str(changed.current)) is None:
            others = [
                version.target_model for version in entry.versions if self._head(version.target_model) is not None
            ]
            gone = f"the store does not have the version {changed.current!r} of the ensemble {item.ensemble!r} any more"
            if not others:
                raise ArtifactError(f"{gone}, and has no other version of it: publish the ensemble")
            raise ArtifactError(
                f"{gone}, but has {', '.join(map(repr, others))}: name one of these, or publish the ensemble"
            )
        return changed

    def _unpublish(self, entry: Entry, _: Item, by: Change, __: str) -> Entry:
        return catalogue.unpublish(entry, by)

    def _forget(self, entry: Entry, _: Item, by: Change, __: str) -> Entry:
        return catalogue.forget(entry, by)

    def _head(self, target_model: str) -> StoredObject | None:
        return self.storage.head(self.place.served + target_model)

    def _served(self, item: Item, publication: str) -> StoredObject:
        """The archive below the prefix of the endpoint, which is copied there if it is absent."""
        found = self._head(item.target_model) if item.is_there else None
        if found is not None:
            return found
        if item.needs_job:
            source, target = self._made(item), self.place.served + item.target_model
            return copy_if_absent(source, target, {ARTIFACT_KEY_METADATA: item.artifact_key}, self.storage, self.turn)
        if item.from_platform:
            origin = self.place.served_by(item.from_platform) + item.target_model
        else:
            origin = self.place.upload(publication, item.artifact_key)
        wanted = ArchiveKeys(item.source_key, item.artifact_key)
        source = verified(origin, wanted, self.keys, self.storage, self.turn)
        return copy_verified(source, self.place.served + item.target_model, wanted, self.storage, self.turn)

    def _made(self, item: Item) -> StoredObject:
        """The archive that was built, or rehearsed.

        Raises:
            ArtifactError: the archive was not built, or has not passed its rehearsal.
        """
        found = stored(built_commit(item, self.place.platform), self.storage)
        if found is not None and self._has_passed(item, found):
            return found
        failures = [self.place.build_failure(item.artifact_key, item.repository)]
        failures += [self.place.rehearsal_failure(item.rehearsal)] if item.is_rehearsed else []
        for failure in filter(None, map(self.storage.read, failures)):
            raise ArtifactError(json.loads(failure[0])["reason"])
        raise ArtifactError(f"the ensemble was not {'built' if found is None else 'rehearsed'}; publish again")

    def _has_passed(self, item: Item, archive: StoredObject) -> bool:
        if not item.is_rehearsed:
            return True
        return has_passed(pass_key(item.repository, item.artifact_key, item.rehearsal), archive, self.storage)


def batches(items: Iterable[Item], max_builds: int) -> list[list[Item]]:
    """The archives to build and to rehearse, each once, in batches of which each is one build.

    A build starts a machine and pulls an image before it does anything. So a batch has several archives, if there are
    more of them than builds that run at once.
    """
    distinct: dict[tuple[str, str, str], Item] = {}
    for item in items:
        distinct.setdefault((item.artifact_key, item.repository, item.rehearsal), item)
    by_key: dict[str, list[Item]] = {}
    for item in distinct.values():
        by_key.setdefault(item.artifact_key, []).append(item)
    groups = [
        group[first : first + MAX_NAMES] for group in by_key.values() for first in range(0, len(group), MAX_NAMES)
    ]
    size = min(MAX_BATCH, -(-len(groups) // max(1, max_builds)))
    parts = (groups[first : first + size] for first in range(0, len(groups), size or 1))
    return [[item for group in part for item in group] for part in parts]


def _run(event: Event, context: Any, work: Callable[[Publisher], dict[str, Any]]) -> dict[str, Any]:
    """Call a publisher. A fault that may pass becomes a NotYetError, after which the state machine tries again."""
    keys, platform = json.loads(os.environ["KEYS"]), os.environ["PLATFORM"]
    if event["platform"] != platform:
        # Otherwise a rollback or a built archive of one platform would change the other's prefix.
        raise ArtifactError(
            f"the execution began for the platform {event['platform']}, but a deployment has changed the publisher's "
            f"platform to {platform}; run the command again"
        )
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        publisher = Publisher(
            Storage.of_environment(),
            Place(os.environ["FLEET"], platform, str(event["execution"])),
            KeyInputs(**keys),
            Turn(context.get_remaining_time_in_millis, is_last=True),
            lambda: datetime.fromtimestamp(time.time(), UTC),  # the local AWS moves `time.time`, not `datetime.now`
            pool.map,
            os.environ.get("PRESENT_PLATFORM"),
            is_repeated=bool(event.get("state", {}).get("RetryCount")),
        )
        return attempted(publisher, work)


def attempted(publisher: Publisher, work: Callable[[Publisher], dict[str, Any]]) -> dict[str, Any]:
    """The result of `work`. A fault that may pass becomes a NotYetError.

    Raises:
        NotYetError: the fault may pass, so another attempt is worth it.
        ArtifactError: another attempt fails too.
    """
    try:
        return work(publisher)
    except ArtifactError as error:
        raise ArtifactError(for_publisher(error.full)) from error
    except Exception as error:
        if isinstance(error, NotYetError) or not is_transient(error, 0):
            raise
        raise NotYetError(f"{type(error).__name__}: {error}") from error
