"""What `publish --all` does about entries of the catalogues that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from cdk_triton import ServingPlatform
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.cli.artifacts.aws import Aws
from cdk_triton.cli.fleet.place import Fleet
from cdk_triton.cli.fleet.publishing import Report, publish_all
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Change, Entry, Version
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from pathlib import Path

PRESENT = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
NEXT = ServingPlatform(release="26.05", instance_type="ml.g5.2xlarge")
STORE = "the-store"

pytestmark = pytest.mark.slow


class Platforms:
    """A publisher for the present platform, and one for the next."""

    def __init__(self) -> None:
        self._s3 = boto3.client("s3")
        self._s3.create_bucket(Bucket=STORE)
        described = PublisherDescription("Fleet", "fleet", PRESENT, ContainerEnvironment(), 8)
        labels = frozenset({PRESENT.label, NEXT.label})
        self._present = Fleet(Aws(), "Serving/Fleet", described, "machine", STORE, labels)
        next_described = replace(described, platform=NEXT, is_next=True)
        self._next = replace(self._present, description=next_described, machine="next")

    def publish(self, ensemble: str, *platforms: ServingPlatform, is_live: bool = True) -> None:
        for platform in platforms:
            change = Change("2026-11-27T12:00:00+00:00", "p", "e")
            version = Version(layout.target_model(ensemble, "1" * 64), "0" * 64, "1" * 64, ensemble, change)
            entry = Entry("fleet", ensemble, (version,), None if is_live else change)
            self._put(layout.catalogue_key("fleet", platform.label, ensemble), entry.text())
            self._put(layout.fleet_prefix("fleet", platform.label) + version.target_model, b"archive")

    def damage(self, ensemble: str, platform: ServingPlatform) -> None:
        self._put(layout.catalogue_key("fleet", platform.label, ensemble), b'{"schema": 1}')

    def _put(self, key: str, body: bytes) -> None:
        self._s3.put_object(Bucket=STORE, Key=key, Body=body)

    def publish_all(self) -> tuple[Report, list[str]]:
        said: list[str] = []
        return publish_all(self._present, self._next, say=said.append), said


@pytest.fixture(name="platforms")
def _platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Platforms]:
    """The ensemble `live` is live for both platforms."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with mock_aws():
        platforms = Platforms()
        platforms.publish("live", PRESENT, NEXT)
        yield platforms


def test_an_entry_of_the_next_platform_alone_is_a_warning(platforms: Platforms) -> None:
    platforms.damage("other", NEXT)
    report, said = platforms.publish_all()
    assert (dict(report.failed), list(report.unchanged)) == ({}, ["live"])
    (warning,) = said
    assert warning.startswith(f"warning: the entry s3://{STORE}/")


@pytest.mark.parametrize("damaged", [PRESENT, NEXT], ids=["present", "next"])
@pytest.mark.parametrize("is_live", [True, False], ids=["live", "unpublished"])
def test_an_entry_that_decides_about_the_next_platform_fails(
    platforms: Platforms, damaged: ServingPlatform, is_live: bool
) -> None:
    platforms.publish("known", PRESENT, NEXT, is_live=is_live)
    platforms.damage("known", damaged)
    report, said = platforms.publish_all()
    assert (list(report.failed), list(report.unchanged), said) == (["known"], ["live"], [])
