"""What `gc` may delete, whatever a store holds and whoever refers to it: nothing that is referred to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.cli.artifacts.contents import (
    Contents,
    MultiModelArchive,
    PublishedEnsemble,
    StoredArtifact,
    StoredFile,
    StoredLock,
)
from cdk_triton.cli.artifacts.garbage import DEFAULT_GRACE, Candidate, candidates, uses
from cdk_triton.cli.artifacts.users import ModelReference
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Change, Entry, Version
from cdk_triton.protocol.index import Index

NOW = datetime(2026, 11, 21, tzinfo=UTC)
BUCKET = "the-bucket"
KEYS = [f"{number:064x}" for number in range(4)]
REPOSITORIES = ["text", "text-large"]
TARGETS = [f"text-{number:010x}.tar.gz" for number in range(3)]
DIRECTORIES = [layout.fleet_prefix(fleet, "25.09-a10g") for fleet in ("fleet", "fleet-two")]

ages = st.integers(0, 60).map(lambda days: NOW - timedelta(days=days))
maybe = st.booleans()


@st.composite
def artifacts(draw: st.DrawFn) -> tuple[StoredArtifact, ...]:
    names = draw(st.lists(st.tuples(st.sampled_from(REPOSITORIES), st.sampled_from(KEYS)), unique=True))
    found = []
    for repository, key in names:
        archive = StoredFile(layout.archive_key(repository, key), 1, draw(ages), "etag") if draw(maybe) else None
        manifest = StoredFile(layout.manifest_key(repository, key), 1, draw(ages), "etag")
        prefix = layout.files_prefix(repository, key)
        uncompressed = tuple(
            StoredFile(f"{prefix}m/{n}", 1, draw(ages), "etag") for n in range(draw(st.integers(0, 2)))
        )
        sources = StoredFile(layout.kept_sources_key(repository, key), 1, draw(ages), "etag") if draw(maybe) else None
        is_committed = (archive is None and not uncompressed) or draw(maybe)
        found.append(
            StoredArtifact(repository, key, archive, manifest if is_committed else None, uncompressed, sources)
        )
    return tuple(found)


@st.composite
def stores(draw: st.DrawFn) -> Contents:
    places = draw(st.lists(st.tuples(st.sampled_from(DIRECTORIES), st.sampled_from(TARGETS)), unique=True))
    copies = tuple(
        MultiModelArchive(
            place, name, StoredFile(place + name, 1, draw(ages), "etag"), draw(st.sampled_from([None, *KEYS]))
        )
        for place, name in places
    )
    listed = st.frozensets(st.sampled_from(TARGETS))
    indexed = draw(st.lists(st.sampled_from(DIRECTORIES), unique=True))
    generations = listed.map(lambda names: {name.removesuffix(".tar.gz"): name for name in names})
    indexes = {place: Index("fleet", draw(generations), draw(generations)) for place in indexed}
    locks = tuple(StoredLock(key, {}, None) for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=1)))
    entries = draw(
        st.lists(
            st.builds(
                PublishedEnsemble,
                st.sampled_from(DIRECTORIES),
                st.builds(
                    Entry,
                    st.just("fleet"),
                    st.sampled_from(["tenant", "tenant-two"]),
                    listed.map(
                        lambda names: tuple(
                            Version(name, KEYS[0], KEYS[0], "text", _live(NOW)) for name in sorted(names)
                        )
                    ),
                    st.none() | ages.map(_live),
                ),
            ),
            max_size=2,
        )
    )
    return Contents(draw(artifacts()), copies, indexes, locks, tuple(entries))


def _live(at: datetime) -> Change:
    return Change(at.isoformat(), "publisher", "execution")


addresses = st.one_of(
    st.builds(layout.archive_key, st.sampled_from(REPOSITORIES), st.sampled_from(KEYS)),
    st.builds(layout.files_prefix, st.sampled_from(REPOSITORIES), st.sampled_from(KEYS)),
    st.builds(lambda place, name: place + name, st.sampled_from(DIRECTORIES), st.sampled_from(TARGETS)),
    st.sampled_from([*DIRECTORIES, *(each.rstrip("/") for each in DIRECTORIES), "artifacts/text/", "artifacts/", ""]),
)
references = st.lists(
    st.builds(ModelReference, st.just("model"), st.sampled_from([BUCKET, BUCKET, None, "another"]), addresses, maybe),
    max_size=3,
).map(tuple)


def collected(contents: Contents, who: tuple[ModelReference, ...], grace: timedelta) -> tuple[Candidate, ...]:
    return candidates(contents, uses(contents, who, BUCKET), now=NOW, grace=grace)


@given(stores(), references, st.integers(0, 40).map(lambda days: timedelta(days=days)))
def test_whatever_is_referred_to_is_never_deleted(
    contents: Contents, who: tuple[ModelReference, ...], grace: timedelta
) -> None:
    gone = collected(contents, who, grace)

    keys = {file.key for each in gone for file in each.files}
    listed = {
        directory + name
        for directory, index in contents.indexes.items()
        for name in (*index.current.values(), *index.previous.values())
    }
    listed |= {each.directory + version.target_model for each in contents.catalogue for version in each.entry.versions}
    assert not keys & listed
    indexed = set(contents.indexes)
    for reference in (each for each in who if each.bucket in (None, BUCKET)):
        by_index = reference.multi_model and f"{reference.path.rstrip('/')}/" in indexed
        if by_index:  # then the index says what of the prefix is used
            continue
        assert not [key for key in keys if key.startswith(reference.path)]
    for artifact in (each.item for each in gone if isinstance(each.item, StoredArtifact)):
        assert artifact.key not in {lock.key for lock in contents.locks}
        served = {copy.artifact_key for copy in contents.copies if copy.file.key in listed}
        assert artifact.key not in served
    assert all(NOW - file.modified > grace for each in gone for file in each.files)


@given(stores())
def test_what_nothing_refers_to_goes_when_it_is_old(contents: Contents) -> None:
    contents = replace(contents, artifacts=contents.artifacts[:1], copies=contents.copies[:1])  # without successors
    alone = Contents(contents.artifacts, contents.copies, {}, ())

    gone = {file.key for each in collected(alone, (), DEFAULT_GRACE) for file in each.files}

    young = [
        {file.key for file in files}
        for files in [*(each.files for each in alone.artifacts), *((each.file,) for each in alone.copies)]
        if any(NOW - file.modified <= DEFAULT_GRACE for file in files)
    ]
    assert gone == set(alone.keys) - set().union(*young)


def stored(days: int, number: int, repository: str = "text", *, committed: bool = True) -> StoredArtifact:
    key, then = f"{number:064x}", NOW - timedelta(days=days)
    archive = StoredFile(layout.archive_key(repository, key), 1, then, "etag")
    manifest = StoredFile(layout.manifest_key(repository, key), 1, then, "etag")
    return StoredArtifact(repository, key, archive, manifest if committed else None)


def numbers(*artifacts: StoredArtifact, keep_last: int = 0) -> list[int]:
    contents = Contents(artifacts, (), {}, ())
    gone = candidates(contents, {}, now=NOW, grace=DEFAULT_GRACE, keep_last=keep_last)
    return [int(each.item.key, 16) for each in gone if isinstance(each.item, StoredArtifact)]


def test_what_was_replaced_today_stays_however_long_it_served() -> None:
    assert numbers(stored(400, 1), stored(0, 2)) == []
    assert numbers(stored(400, 1), stored(31, 2), stored(0, 3)) == [1]
    assert numbers(stored(400, 1), stored(0, 2, "text-large")) == [1]


def test_what_a_crash_left_replaces_nothing() -> None:
    assert numbers(stored(400, 1), stored(0, 2, committed=False)) == [1]


def test_the_last_ones_of_each_repository_stay() -> None:
    old = [stored(400 - number, number) for number in range(4)]
    other = stored(500, 9, "text-large")

    assert numbers(*old, other, keep_last=0) == [0, 1, 2, 3, 9]
    assert numbers(*old, other, keep_last=2) == [0, 1]


def test_the_last_ones_of_each_ensemble_stay() -> None:
    copies = tuple(
        MultiModelArchive(place, name, StoredFile(place + name, 1, NOW - timedelta(days=400 - age), "etag"), None)
        for place in DIRECTORIES
        for age, name in enumerate([*TARGETS, "text-large-0000000000.tar.gz"])
    )
    gone = candidates(Contents((), copies, {}, ()), {}, now=NOW, grace=DEFAULT_GRACE, keep_last=1)
    assert [each.name for each in gone] == [place + name for place in DIRECTORIES for name in TARGETS[:2]]
