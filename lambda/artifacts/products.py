"""What jobs make, each product under a key that only one job at a time has: an archive, or the pass of a rehearsal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from protocol.plan import BuildInput, Commit

from .commits import commit_built
from .invocation import Invocation

__all__ = ["Archive", "BuiltArchive", "Product", "Wording", "archives_of", "display_name"]


class Archive(NamedTuple):
    """An archive: equal directories with different names have one artifact key, but two archives."""

    repository: str
    artifact_key: str


class Wording(NamedTuple):
    """The messages about a kind of product, with `{}` for a name, several names, or a number.

    Attributes:
        failed: one was not made.
        several_failed: several were not made.
        is_made: a job makes one or more now.
    """

    failed: str
    several_failed: str
    is_made: str


class Product(Protocol):
    """One thing that a job makes; the store keeps it once it is committed."""

    @property
    def key(self) -> str:
        """The key of its lock, which is also the name of its directory in the output of the job."""

    @property
    def archive(self) -> Archive:
        """The archive that it is, or that it is about."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def wording(self) -> Wording:
        """The words of messages."""

    @property
    def follows(self) -> Archive | None:
        """The archive that the same job has to make, unless it is committed; None for an archive."""

    @property
    def section(self) -> str:
        """The list of the build program's `plan.json` that has its entry."""

    def entry(self, together: Collection[Archive]) -> Mapping[str, Any]:
        """Its entry in `plan.json`; `together` has the archives that the same job makes."""

    def inputs(self, together: Collection[Archive]) -> tuple[BuildInput, ...]:
        """The files that the job reads for it."""

    def commit(self, build: str, invocation: Invocation) -> bool:
        """Verify and commit what an ended build has left; return whether the build has made it.

        Raises:
            NotYetError: the time is up.
            BrokenBuildError: another build is needed.
        """


@dataclass(frozen=True)
class BuiltArchive:
    """An archive as the product of a job.

    Attributes:
        planned: its commit in the build plan, which has a build.
    """

    planned: Commit
    section = "ensembles"
    follows = None
    wording = Wording("{} could not be built", "{} ensembles could not be built", "{} is being built")

    @property
    def key(self) -> str:
        """See `Product`."""
        return self.planned.artifact_key

    @property
    def archive(self) -> Archive:
        """See `Product`."""
        return Archive(self.planned.repository, self.planned.artifact_key)

    @property
    def name(self) -> str:
        """See `Product`."""
        return display_name(self.planned)

    def entry(self, _: Collection[Archive]) -> Mapping[str, Any]:
        """See `Product`."""
        return {} if self.planned.build is None else self.planned.build.ensemble

    def inputs(self, _: Collection[Archive]) -> tuple[BuildInput, ...]:
        """See `Product`."""
        return () if self.planned.build is None else self.planned.build.inputs

    def commit(self, build: str, invocation: Invocation) -> bool:
        """See `Product`."""
        return commit_built(self.planned, build, invocation) is not None


def archives_of(products: Iterable[Product]) -> set[Archive]:
    """The archives among products, without those that are only rehearsed."""
    return {product.archive for product in products if product.follows is None}


def display_name(commit: Commit) -> str:
    """A repository with its platform, because all instance pools of a variant have the same repository."""
    return f"{commit.repository!r} for {commit.platform}"
