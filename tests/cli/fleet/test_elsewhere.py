"""The ensembles that the endpoint does not have as they were published last, because the platform changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from cdk_triton import ServingPlatform
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.fleet.catalogue import read_catalogue
from cdk_triton.cli.fleet.elsewhere import Elsewhere, changed_elsewhere, warnings
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Change, Entry, Version
from cdk_triton.triton import ContainerEnvironment
from golden_messages import Messages

PLATFORM = ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")
DESCRIPTION = PublisherDescription("Fleet", "fleet", PLATFORM, ContainerEnvironment(), 8)
HERE, BEFORE, LONG_BEFORE, NEXT = PLATFORM.label, "25.09-a10g", "24.09-a10g", "26.09-a10g"
STORE = "the-store"

pytestmark = pytest.mark.slow


class Store:
    """A store whose endpoint serves one platform, and has a publisher for the next one."""

    def __init__(self) -> None:
        self._s3 = boto3.client("s3")
        self._s3.create_bucket(Bucket=STORE)
        self.fleet = Fleet(Aws(), "Serving/Fleet", DESCRIPTION, "machine", STORE, frozenset({HERE, NEXT}))

    def published(self, platform: str, ensemble: str, version: int, hour: int, *, is_live: bool = True) -> None:
        """The document of an ensemble that was changed at this hour."""
        change = Change(f"2026-11-27T{hour:02}:00:00+00:00", "p", "e")
        source = str(version) * 64
        listed = Version(layout.target_model(ensemble, source), "0" * 64, source, ensemble, change)
        entry = Entry("fleet", ensemble, (listed,), None if is_live else change)
        self._s3.put_object(Bucket=STORE, Key=layout.catalogue_key("fleet", platform, ensemble), Body=entry.text())

    def serve(self, ensemble: str) -> None:
        """An archive of the platform that is served."""
        key = layout.fleet_prefix("fleet", HERE) + layout.target_model(ensemble, "1" * 64)
        self._s3.put_object(Bucket=STORE, Key=key, Body=b"archive")

    def damage(self, platform: str, ensemble: str, body: bytes) -> None:
        """Overwrite the document of an ensemble."""
        self._s3.put_object(Bucket=STORE, Key=layout.catalogue_key("fleet", platform, ensemble), Body=body)

    def compared(self) -> Elsewhere:
        return changed_elsewhere(self.fleet, read_catalogue(self.fleet))

    def found(self) -> dict[str, str]:
        return dict(self.compared().changed)


@pytest.fixture(name="store")
def _store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        store = Store()
        store.published(BEFORE, "same", 1, 1)
        store.published(HERE, "same", 1, 2)
        yield store


def test_what_was_copied_or_published_since_is_as_it_should_be(store: Store) -> None:
    store.published(BEFORE, "newer-here", 1, 1)
    store.published(HERE, "newer-here", 2, 3)
    store.published(NEXT, "for-the-next-platform", 1, 4)
    assert store.found() == {}
    assert list(warnings(store.fleet, store.compared())) == []


def test_what_was_published_for_the_old_platform_after_the_catalogues_were_compared_is_named(
    messages: Messages, store: Store
) -> None:
    store.published(BEFORE, "new", 1, 3)
    store.published(BEFORE, "another-version", 2, 3)
    store.published(HERE, "another-version", 1, 2)
    store.published(BEFORE, "unpublished", 1, 3, is_live=False)
    store.published(HERE, "unpublished", 1, 2)
    store.serve("another-version")
    found = store.compared()
    assert found.changed == dict.fromkeys(["another-version", "new", "unpublished"], BEFORE)
    (line,) = warnings(store.fleet, found)
    messages.record("cdk-triton fleet list", line)


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"schema": 7}'], ids=["cut off", "not text", "of another version"])
def test_a_document_that_cannot_be_read_is_named_and_the_others_are_compared(
    messages: Messages, store: Store, body: bytes
) -> None:
    store.published(BEFORE, "new", 1, 3)
    store.damage(BEFORE, "damaged", body)
    damaged, changed = warnings(store.fleet, store.compared())
    assert f"s3://{STORE}/catalogue/fleet/{BEFORE}/damaged.json" in damaged
    assert f"'new' ({BEFORE})" in changed
    messages.record("cdk-triton fleet list", damaged)


def test_a_document_of_the_platform_that_serves_is_not_compared_if_it_cannot_be_read(store: Store) -> None:
    store.published(BEFORE, "same", 2, 4)
    store.damage(HERE, "same", b"{")
    assert store.found() == {}


@pytest.mark.parametrize("name", ["a b", "ü", "a[b]*", "a\nb", "%41", "a+b", "a.json"])
@pytest.mark.parametrize("body", [b"", b"{", b"[]"], ids=["empty", "cut off", "of another kind"])
def test_an_entry_that_cannot_be_read_leaves_the_others_readable(store: Store, name: str, body: bytes) -> None:
    store.damage(HERE, name, body)
    for _ in range(2):  # the second time from the cache
        found = read_catalogue(store.fleet)
        assert list(found.entries) == ["same"]
        assert list(found.faults) == [name]
        assert "\n" not in str(found.faults[name])


def test_what_was_unpublished_later_for_a_platform_in_between_is_not_missed(store: Store) -> None:
    store.published(LONG_BEFORE, "gone", 1, 1)
    store.published(BEFORE, "gone", 1, 2, is_live=False)
    assert store.found() == {}


def test_an_ensemble_that_the_stack_has_now_is_not_missed(store: Store) -> None:
    store.published(BEFORE, "of-the-stack", 1, 3)
    assert store.found() == {"of-the-stack": BEFORE}
    store.serve("of-the-stack-too")
    assert store.found() == {"of-the-stack": BEFORE}
    store.serve("of-the-stack")
    assert store.found() == {}
