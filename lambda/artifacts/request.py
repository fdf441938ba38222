"""A request of CloudFormation, read once and typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .failure import ArtifactError

__all__ = ["PublishedFor", "Request"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_FIX = "deploy with the version of cdk-triton that made this store"


@dataclass(frozen=True)
class PublishedFor:
    """The platform of a `TritonMultiModel` with a publisher.

    Attributes:
        platform: the platform, as in `25.09-a10g`.
        command: the command that publishes the ensembles of another platform for it.
    """

    platform: str
    command: str

    @classmethod
    def parse(cls, properties: Mapping[str, Any]) -> PublishedFor | None:
        """Read it from the properties of the resource; None without a publisher."""
        platform, command = (properties.get(name) for name in ("PublishedPlatform", "PublishCommand"))
        return cls(platform, command) if isinstance(platform, str) and isinstance(command, str) else None


@dataclass(frozen=True)
class Request:
    """One request of CloudFormation for a `Custom::TritonArtifacts` resource.

    Attributes:
        is_delete: whether it is a Delete. A Delete deletes nothing, because a rollback needs the old objects and other
            stacks share them.
        physical_id: the build plan's SHA-256; for a Delete the id that CloudFormation sent, which it may have invented.
        plan_bucket: the bucket of the build plan and of the archives that it names.
        plan_key: the build plan's object key.
        build_image: the image that builds of this build plan run in; None if the stack builds nothing.
        started_at: when `on_event` accepted the request, in seconds since 1970.
        stack_id: the ARN of the stack.
        published: the platform of the publisher; None without one.
        published_before: the same in the properties that an Update replaces.
    """

    is_delete: bool
    physical_id: str
    plan_bucket: str = ""
    plan_key: str = ""
    started_at: float = 0.0
    build_image: str | None = None
    stack_id: str = ""
    published: PublishedFor | None = None
    published_before: PublishedFor | None = None

    @classmethod
    def parse(cls, event: Mapping[str, Any], *, now: float) -> Request:
        """Read a request of CloudFormation, or one that `provide` has accepted and the waiter carries.

        Args:
            event: the request.
            now: the start of a request that does not carry one.

        Raises:
            ArtifactError: a property is missing or has the wrong form. Never for a Delete, which may carry the
                properties of any earlier version of this library, or none.
        """
        if event.get("RequestType") == "Delete":
            return cls(is_delete=True, physical_id=str(event.get("PhysicalResourceId", "")))
        properties = event.get("ResourceProperties") or {}
        sha256 = _text(properties, "PlanSha256")
        if not _SHA256.fullmatch(sha256):
            raise ArtifactError(f"the property PlanSha256 is {sha256!r}, not 64 hexadecimal digits; {_FIX}")
        return cls(
            is_delete=False,
            physical_id=sha256,
            plan_bucket=_text(properties, "PlanBucket"),
            plan_key=_text(properties, "PlanKey"),
            started_at=float(event.get("StartedAt", now)),
            build_image=_text(properties, "BuildImage") if "BuildImage" in properties else None,
            stack_id=str(event.get("StackId", "")),
            published=PublishedFor.parse(properties),
            published_before=PublishedFor.parse(event.get("OldResourceProperties") or {}),
        )

    def accepted(self) -> dict[str, Any]:
        """The fields that `provide` adds to a request; the waiter passes `StartedAt` to every `is_complete`."""
        answer: dict[str, Any] = {"PhysicalResourceId": self.physical_id}
        return answer if self.is_delete else answer | {"StartedAt": self.started_at}


def _text(properties: Mapping[str, Any], name: str) -> str:
    value = properties.get(name)
    if not isinstance(value, str) or not value:
        raise ArtifactError(f"the property {name} is {value!r}, but must be a non-empty string; {_FIX}")
    return value
