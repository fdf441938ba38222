"""The locks and the builds, and the rules that allow one live build per key of a product (`products`).

Both are documents in the store's bucket. Each write has a condition. The documents expire with `staging/` after 7 days,
which is longer than any job. There are two kinds:

* `staging/locks/<key>.json` is the lock of a key. It points to a build. An invocation writes it if it is
  absent. It replaces exactly the lock that it has read (If-Match), and only if that lock is *spent*.
* `staging/<build id>/state.json` is a build: its holder, its state, its end. Each change replaces exactly the document
  that was read. The state goes `preparing` → `starting` → `running` → `ended`. It may skip states, and goes back only
  if the service rejected the job that was about to start.

The rules:

1. A build never has more than one job, and the job's name is the build's id. To build again, an invocation makes a new
   build with a new id.
2. A lock is spent when its build has ended without the key's product, has expired, or has fixed its members without the
   key. None of these can become false again, so every invocation that finds one of them can replace the lock.
3. Until its job runs, one invocation at a time works on a build. It holds the lease: a random token and a time, written
   into the build. A lease is longer than an invocation can live (`LEASE_SECONDS`). So an invocation that was killed is
   certainly gone when its lease has passed. An invocation that ends in another way gives its lease back.
4. The holder of a build is the build plan that made it, by its hash. Every request for that build plan continues from
   the point that the last one reached. So a deployment that timed out, was rolled back and is repeated finds its build
   again. Requests for other build plans wait. If nobody has worked on a build for `ABANDONED_SECONDS`, the next request
   that reads it looks for its job. It ends the build if the job does not exist.
5. The holder locks its free keys in sorted order, copies the inputs and writes the build program's `plan.json`. A
   publisher omits the keys whose inputs are missing. Then the holder fixes the members and records that it is about to
   start the job (`sent_at`). Only then it starts the job. An invocation that finds `sent_at` looks for the job before
   it starts one, because an answer may have been lost. A second start within minutes does no harm, because both
   services take the build's id as the name of the request.
6. A build is recorded as "could not be started" only if the service rejected the job, and if no earlier attempt is
   young enough (`UNSURE_SECONDS`) to be still on its way.
7. A build ends when the service reports that the job has ended, with any status. It also ends when the service does not
   list the job any more, or when the job is past every time limit. Then the complete products of its output are
   committed. The locks of all other keys are spent.
8. If a key's build fails during a request, the request fails with the reason. If it failed before the request began,
   the key is built again. If its job was lost, failed through the service's own fault, or ended before it began with
   the key, the key is built again once.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from protocol.documents import OtherVersionError, require_schema
from protocol.layout import build_state_key, lock_key

from .failure import ArtifactError, of_other_version
from .storage import LostRaceError, Storage

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "ABANDONED_SECONDS",
    "LEASE_SECONDS",
    "UNSURE_SECONDS",
    "BuildState",
    "Ended",
    "KeyLock",
    "Lease",
    "Ledger",
]

SCHEMA = 1

T = TypeVar("T", bound="DataclassInstance")

LEASE_SECONDS = 6 * 60
"""An invocation lives 5 minutes (the store's stack sets it), and its last call some seconds more."""

UNSURE_SECONDS = 6 * 60
"""After this time, the service lists a requested job or has not made it. CodeBuild takes a repeated StartBuild for the
same one during 5 minutes (API reference, `idempotencyToken`)."""

ABANDONED_SECONDS = 10 * 60
"""After this time without a poll, a build's request has ended, because its polls come every 30 seconds or sooner."""


@dataclass(frozen=True)
class KeyLock:
    """A key's lock.

    Attributes:
        key: the key of a product.
        repository: the name of its repository.
        artifact_key: of the archive that it is, or that it is about, which `gc` must not delete meanwhile.
        build: the build that it points to.
        attempt: 1, or 2 if the build before was lost through the service's own fault.
        previous: why the build before failed; None if there was none.
        etag: of the document that this was read from.
    """

    key: str
    repository: str
    artifact_key: str
    build: str
    attempt: int
    previous: str | None
    etag: str


@dataclass(frozen=True)
class Lease:
    """The right of one invocation to work on a build, until a time in seconds since 1970."""

    token: str
    until: float


@dataclass(frozen=True)
class Ended:
    """How a build ended.

    Attributes:
        status: the service's word, or NOT_STARTED, ABANDONED, VANISHED, EXPIRED.
        at: when, in seconds since 1970.
        reason: why its products are incomplete, if they are.
        link: the log's address; empty if there was no job.
        again: whether one more attempt is made automatically.
    """

    status: str
    at: float
    reason: str
    link: str
    again: bool


@dataclass(frozen=True)
class BuildState:
    """A build.

    Attributes:
        build: its id.
        holder: the SHA-256 of the build plan that made it.
        kind: the kind of its builder.
        image: the URI of the image that it runs in.
        timeout_minutes: the time after which the service ends the job.
        instance_type: the instance type of a Processing job; None for CodeBuild.
        volume_gb: the volume size of a Processing job; None for CodeBuild.
        created_at: seconds since 1970, as all times here.
        worked_at: the time when an invocation last worked on it, before its job ran.
        lease: the lease of the invocation that works on it.
        members: the keys that it builds, once they are fixed.
        sent_at: when the service was last asked to start the job.
        job: the service's id of the job.
        started_at: when the job was known to exist.
        link: the job's log.
        ended: how it ended.
        etag: of the document that this was read from.
    """

    build: str
    holder: str
    kind: str
    image: str
    timeout_minutes: int
    instance_type: str | None
    volume_gb: int | None
    created_at: float
    worked_at: float
    lease: Lease | None = None
    members: tuple[str, ...] | None = None
    sent_at: float | None = None
    job: str | None = None
    started_at: float | None = None
    link: str = ""
    ended: Ended | None = None
    etag: str = ""

    @property
    def state(self) -> str:
        """The state for a reader of the document."""
        if self.ended is not None:
            return "ended"
        if self.job is not None:
            return "running"
        return "preparing" if self.sent_at is None else "starting"

    def excludes(self, key: str) -> bool:
        """Whether the members are fixed without this key."""
        return self.members is not None and key not in self.members


@dataclass(frozen=True)
class Ledger:
    """Locks and builds in the store's bucket."""

    storage: Storage

    def lock(self, key: str) -> KeyLock | None:
        """The lock of a key."""
        found = self._read(lock_key(key))
        return None if found is None else _made(KeyLock, lock_key(key), found)

    def build(self, build: str) -> BuildState | None:
        """A build."""
        name = build_state_key(build)
        found = self._read(name)
        if found is None:
            return None
        lease, members, ended = found.get("lease"), found.get("members"), found.get("ended")
        found["lease"] = lease and _made(Lease, name, lease)
        found["members"] = members if members is None else tuple(members)
        found["ended"] = ended and _made(Ended, name, ended)
        return _made(BuildState, name, found)

    def take(self, lock: KeyLock) -> bool:
        """Write a lock if there was none, or in place of the one with `lock.etag`; return whether that succeeded."""
        try:
            self._write(lock_key(lock.key), lock)
        except LostRaceError:
            return False
        return True

    def write(self, state: BuildState, **changes: Any) -> BuildState:
        """Write a changed build if there was none, or in place of the one with `state.etag`.

        Raises:
            LostRaceError: somebody else has changed it.
        """
        changed = dataclasses.replace(state, **changes)
        etag = self._write(build_state_key(state.build), changed, state=changed.state)
        return dataclasses.replace(changed, etag=etag)

    def _read(self, key: str) -> dict[str, Any] | None:
        found = self.storage.read(key)
        if found is None:
            return None
        where = f"s3://{self.storage.bucket}/{key}"
        try:
            document = json.loads(found[0])
            require_schema(document, SCHEMA)
        except OtherVersionError as error:
            raise of_other_version(where, error, "artifact store", "delete the object, and deploy again") from error
        except (ValueError, LookupError, TypeError) as error:
            raise ArtifactError(
                f"cdk-triton did not write {where} ({error!r}); delete the object, and deploy again"
            ) from error
        return {**document, "etag": found[1]}

    def _write(self, key: str, document: KeyLock | BuildState, **more: str) -> str:
        fields = {"schema": SCHEMA, **more, **dataclasses.asdict(document)}
        del fields["etag"]
        body = json.dumps(fields, indent=2).encode()
        try:
            return self.storage.write(key, body, replacing=document.etag or None)
        except LostRaceError:
            # boto3 repeats a write whose answer was lost, and then finds this invocation's own document.
            found = self.storage.read(key)
            if found is None or found[0] != body:
                raise
            return found[1]


def _made(kind: type[T], name: str, document: dict[str, Any]) -> T:
    names = [field.name for field in dataclasses.fields(kind)]
    try:
        return kind(**{name: document[name] for name in names})
    except (LookupError, TypeError) as error:
        raise ArtifactError(
            f"cdk-triton did not write {name} ({error!r}); delete the object, and deploy again"
        ) from error
