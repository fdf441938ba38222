"""A publisher's state machine in memory: the real functions, called as the definition calls them."""

from __future__ import annotations

import functools
import gzip
import io
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from artifacts.archive_keys import archive_keys
from artifacts.failure import ArtifactError
from artifacts.publication import Place
from artifacts.publishing import Publisher, attempted
from artifacts.storage import Storage
from artifacts.turn import Turn
from build_model.faults import Fault, Killed
from memory_aws import S3, Call, Client, Clock, Wire
from protocol.keys import ArchiveKeys, KeyInputs
from protocol.publication import Item

__all__ = [
    "ATTEMPTS",
    "CALLER",
    "EXECUTION",
    "FLEET",
    "KEYS",
    "PLATFORM",
    "REQUESTS",
    "STORE",
    "Machine",
    "Work",
    "packed",
    "packed_keys",
    "storage_on",
]

STORE, FLEET, PLATFORM = "the-store", "fleet", "25.09-a10g"
KEYS = KeyInputs({"schema": 1, "builder": 1}, {"image": "image:25.09", "gpu": {"name": "A10G"}})
ATTEMPTS = 5
CALLER = "AROAEXAMPLE:alice"
REQUESTS = f"staging/publish/{FLEET}/{CALLER}/"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:machine:"

Answer = dict[str, Any]
Work = Callable[[Publisher], Answer]


def packed(files: Mapping[str, bytes]) -> bytes:
    """An archive, as this library packs it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def packed_keys(archive: bytes, keys: KeyInputs = KEYS) -> ArchiveKeys:
    """Its keys; generated sequences use few archives many times, so each is read once."""
    return _packed_keys(archive, json.dumps(asdict(keys)))


@functools.cache
def _packed_keys(archive: bytes, keys: str) -> ArchiveKeys:
    return archive_keys(iter([archive]), KeyInputs(**json.loads(keys)), "it")


def storage_on(s3: S3, wire: Wire | None = None) -> Storage:
    """The store's bucket, as the handlers see it."""
    return Storage(Client("s3", s3, wire or Wire()), STORE)  # type: ignore[arg-type]  # a double


@dataclass
class Machine:
    """A store and the functions; `fault` happens at one call of what runs next, `meanwhile` runs before each item.

    The machines of two platforms share a store. `executions` begins the ARNs of its executions.
    """

    s3: S3 = field(default_factory=lambda: S3(Clock()))
    fault: Fault | None = None
    meanwhile: Iterator[Callable[[], None]] = field(default_factory=lambda: iter(()))
    calls: Counter[str] = field(default_factory=Counter)
    watch: Callable[[], None] = lambda: None
    platform: str = PLATFORM
    keys: KeyInputs = KEYS
    present: str | None = None
    executions: str = EXECUTION

    def __post_init__(self) -> None:
        self._later: list[Call] = []

    # -- what a publisher does

    def upload(self, publication: str, items: Iterable[Mapping[str, Any]], archives: Iterable[bytes] = ()) -> None:
        """Write a request and its archives."""
        for archive in archives:
            key = packed_keys(archive, self.keys).artifact
            self.s3.put(STORE, f"{REQUESTS}archives/{key}.tar.gz", archive)
        document = {"schema": 1, "items": list(items)}
        self.s3.put(STORE, f"{REQUESTS}{publication}/request.json", json.dumps(document).encode())

    def publish(self, publication: str, **archives: bytes) -> None:
        """Write a request that publishes each archive as the ensemble of its name."""
        items = []
        for name, archive in archives.items():
            keys = packed_keys(archive, self.keys)
            keyed = {"source_key": keys.source, "artifact_key": keys.artifact}
            items.append({"ensemble": name, "action": "publish", "repository": name, **keyed})
        self.upload(publication, items, archives.values())

    # -- what Step Functions does

    def run(self, publication: str, execution: str = "") -> str | None:
        """Run an execution to its end: None, or why it failed."""
        place = Place(FLEET, self.platform, self.executions + (execution or publication))
        try:
            prepared = self._attempts(place, lambda publisher: publisher.prepare(f"{CALLER}/{publication}"))
            for document in json.loads(self.s3.get(STORE, prepared["items"]) or b"[]"):
                next(self.meanwhile, lambda: None)()
                self._change(place, prepared["publish"], Item.parse(document))
            self._attempts(place, lambda publisher: publisher.count())
        except (ArtifactError, RuntimeError) as error:
            return str(error)
        return None

    def _change(self, place: Place, publication: str, item: Item) -> None:
        try:
            self._attempts(place, lambda each: each.change(publication, item))
        except (ArtifactError, RuntimeError) as error:
            failure = {"Error": type(error).__name__, "Cause": json.dumps({"errorMessage": str(error)})}
            with suppress(ArtifactError, RuntimeError):  # then `count` finds that the ensemble was not reached
                self._attempts(place, lambda each: each.record(item, failure))

    def _attempts(self, place: Place, work: Work) -> Answer:
        """Repeat a function, as the retriers of the definition do; its process may die."""
        last: BaseException | None = None
        for _ in range(ATTEMPTS):
            try:
                return self.attempt(place, work)
            except ArtifactError:
                raise
            except (Exception, Killed) as error:
                last = error
        raise RuntimeError(f"it failed {ATTEMPTS} times") from last

    def attempt(self, place: Place, work: Work) -> Answer:
        """Call a function once; what is still on its way to S3 arrives afterwards."""
        try:
            return attempted(self._publisher(place), work)
        finally:
            for call in self._later:
                with suppress(Exception):
                    call()
            self._later.clear()
            self.watch()

    def _publisher(self, place: Place) -> Publisher:
        storage = storage_on(self.s3, Wire(around=self._around))
        turn = Turn(lambda: 300_000, is_last=True)
        return Publisher(
            storage, place, self.keys, turn, lambda: datetime.fromtimestamp(self.now(), UTC), present=self.present
        )

    def now(self) -> float:
        """The time, in seconds since 1970."""
        return 1_800_000_000

    def _around(self, service: str, operation: str, call: Call) -> Answer:
        self.calls[operation] += 1
        return call() if self.fault is None else self.fault.around(service, call, self._later.append)

    # -- what is found afterwards

    def entry(self, ensemble: str) -> Answer | None:
        """An ensemble's document."""
        found = self.s3.get(STORE, f"catalogue/{FLEET}/{self.platform}/{ensemble}.json")
        return None if found is None else dict(json.loads(found))

    def changes(self, ensemble: str) -> list[str]:
        """The executions that changed an ensemble's document, one for each time that it was written."""
        return [(each["unpublished"] or each["versions"][0]["live"])["execution"] for each in self.documents(ensemble)]

    def documents(self, ensemble: str) -> list[Answer]:
        """An ensemble's documents, one for each time that it was written."""
        key = f"catalogue/{FLEET}/{self.platform}/{ensemble}.json"
        return [json.loads(body) for body in self.s3.history[STORE, key]]

    def live(self, ensemble: str) -> bytes | None:
        """The archive that callers of an ensemble get; an error if the catalogue names one that is not there."""
        entry = self.entry(ensemble)
        if entry is None or entry["current"] is None:
            return None
        archive = self.s3.get(STORE, f"fleets/{FLEET}/{self.platform}/{entry['current']}")
        assert archive is not None, f"{entry['current']} is not there"
        return archive
