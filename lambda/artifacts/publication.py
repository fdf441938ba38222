"""The request of a publisher, below `staging/publish/<fleet>/<caller>/`, and what the machine makes of it.

::

    staging/publish/<fleet>/<caller>/                        written by the caller
        archives/<artifact key>.tar.gz                       an archive, or the sources of one that is built
        <id>/request.json                                    what is to be changed
        <id>/<artifact key>.json                             how an archive is built
    staging/publishing/<fleet>/<platform>/                   written by the machine
        executions/<machine>/<execution>/items.json          one item for each ensemble
        executions/<machine>/<execution>/builds.json         batches of what is to be built
        executions/<machine>/<execution>/builds/<artifact key>/<repository>.json
                                                             why an archive was not built
        failures/<machine>/<execution>/<ensemble>.json       why an ensemble was not changed
        results/                                             written by Step Functions; nothing reads it

Sources that have been compared with their keys are kept beside the archive that is built from them. So they outlive
`staging/`, because another platform may need another build.

`<caller>` is the `aws:userid` of the caller, such as `AROAEXAMPLE:alice`. `grant_publish` allows each caller to write
into the directory of its own userid alone. So IAM vouches for the writer of a request, whom the catalogue names, and no
caller can overwrite what another one uploads. Any of them may start an execution for the request of another one. Step
Functions does not give an execution the caller that has started it. CloudTrail has the caller.

Publishers of one store share no prefix: two machines may have executions of the same name, and a caller of one machine
may be forbidden to use the other. Two machines publish even for one platform of a `TritonMultiModel`: that of the next
platform, and after the change that of the present one. So the prefix names the machine too, and CloudFormation gives
each machine another name. An execution that is redriven keeps its ARN, so it finds what it wrote. Failures have a
prefix of their own, because callers read nothing else.
All of it expires with `staging/`. Neither is taken on trust: object keys are derived here, from names that are checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .documents import parse_json
from .failure import ArtifactError

__all__ = ["ACTIONS", "MAX_REQUEST_BYTES", "PUBLISH_PREFIX", "Item", "Place", "caller_of", "parse_request"]

PUBLISH_PREFIX = "staging/publish/"
"""Below it lies what callers upload."""

SCHEMA = 1
ACTIONS = ("publish", "roll_back", "unpublish", "forget")

MAX_ITEMS = 100_000
"""More of them do not fit into the time of `count`, and into the memory of the functions (docs/many_ensembles.md)."""

MAX_REQUEST_BYTES = 32 * 1024**2
"""As many items with names of 40 characters."""

MAX_VALUES = 1_000_000
"""Objects, lists and commas of as many items. Small values take 20 times their text in memory."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""As `cdk_triton.artifacts.layout.check_name` has it."""

_KEY = re.compile(r"[0-9a-f]{64}")
_EMPTY = re.compile("")
_PLATFORM = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]{0,199})?")
_PUBLICATION = re.compile(r"(?P<caller>[A-Za-z0-9][\w+=,.@:-]{0,127})/[A-Za-z0-9-]{1,80}", re.ASCII)
"""A caller and an id. A userid has the id of a role and the name of a session, up to 64 of these characters ("AWS
global condition context keys", and `RoleSessionName` of `AssumeRole`)."""

_TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")
_PUBLISHED = {"repository": _NAME, "source_key": _KEY, "artifact_key": _KEY, "from_platform": _PLATFORM}
"""The fields of an item that is published; they are empty in others."""

_SOURCE_DIGITS = 10


@dataclass(frozen=True)
class Item:
    """One ensemble to change.

    Attributes:
        ensemble: its name.
        action: `publish`, `roll_back`, `unpublish` or `forget`.
        repository: the name of the repository's directory; empty unless it is published.
        source_key: of the repository; empty unless it is published.
        artifact_key: of the archive; empty unless it is published.
        to: the target model to roll back to; None for the one that was live before.
        built: whether the archive is built from the sources that were uploaded.
        from_platform: the platform, as in `25.09-a10g`, for which the same target model is published already. Its
            archive or sources are read instead of an upload; empty where there is one.
        is_there: whether the target model was served already when the machine started.
        rejected: why it cannot be changed; None if it can.
    """

    ensemble: str
    action: str
    repository: str = ""
    source_key: str = ""
    artifact_key: str = ""
    to: str | None = None
    built: bool = False
    from_platform: str = ""
    is_there: bool = False
    rejected: str | None = None

    @property
    def target_model(self) -> str:
        """The name that callers of the published version send."""
        return f"{self.ensemble}-{self.source_key[:_SOURCE_DIGITS]}.tar.gz"

    def document(self) -> dict[str, Any]:
        """It as JSON."""
        return asdict(self)

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Item:
        """Read an item of a request, or one that `document` wrote.

        Raises:
            ArtifactError: a field is missing, unknown, or cannot be part of an object key.
        """
        try:
            item = cls(**document)
        except TypeError as error:
            raise _malformed(f"the item {document!r} is invalid ({error})") from error
        if item.action not in ACTIONS:
            raise _malformed(f"the action of {item.ensemble!r} is {item.action!r}, not one of {', '.join(ACTIONS)}")
        fields = {"ensemble": _NAME} | (_PUBLISHED if item.action == "publish" else dict.fromkeys(_PUBLISHED, _EMPTY))
        if item.to is not None:  # an item is the input of a state, so nothing in it is of any size
            fields["to"] = _TARGET if item.action == "roll_back" else _EMPTY
        for name, form in fields.items():
            value = getattr(item, name)
            if not isinstance(value, str) or not form.fullmatch(value):
                raise _malformed(f"the field {name!r} of the ensemble {item.ensemble!r} is invalid: {value!r:.300}")
        if not isinstance(item.built, bool) or (item.built and item.action != "publish"):
            raise _malformed(
                f"the field 'built' of the ensemble {item.ensemble!r} is invalid for the action {item.action!r}: "
                f"{item.built!r}"
            )
        return item


@dataclass(frozen=True)
class Place:
    """The places of an execution's documents, and of those of its `TritonMultiModel`.

    Attributes:
        fleet: the name of the `TritonMultiModel` in the store.
        platform: its platform, as in `25.09-a10g`.
        execution: the ARN of the execution.
    """

    fleet: str
    platform: str
    execution: str

    @property
    def served(self) -> str:
        """The prefix that the endpoint serves from."""
        return self.served_by(self.platform)

    def served_by(self, platform: str) -> str:
        """The prefix that an endpoint of a platform serves from."""
        return f"fleets/{self.fleet}/{platform}/"

    @property
    def index(self) -> str:
        """The object key of the index."""
        return self.index_of(self.platform)

    def index_of(self, platform: str) -> str:
        """The object key of the index of a platform."""
        return f"{self.served_by(platform)}index.json"

    def request(self, publication: str) -> str:
        """The object key of a request.

        Raises:
            ArtifactError: the publication cannot be part of an object key.
        """
        return f"{self._publication(publication)}request.json"

    def upload(self, publication: str, artifact_key: str) -> str:
        """The object key of an archive that the caller of a request has uploaded, for this request or an earlier one.

        Raises:
            ArtifactError: the publication cannot be part of an object key.
        """
        return f"{PUBLISH_PREFIX}{self.fleet}/{caller_of(publication)}/archives/{artifact_key}.tar.gz"

    def build(self, publication: str, artifact_key: str) -> str:
        """The object key of a build that was uploaded for a request.

        Raises:
            ArtifactError: the publication cannot be part of an object key.
        """
        return f"{self._publication(publication)}{artifact_key}.json"

    @property
    def items(self) -> str:
        """The object key of the items."""
        return f"{self._execution}items.json"

    @property
    def failures(self) -> str:
        """The prefix of the failures."""
        return f"{self._own}failures/{self._name}/"

    def failure(self, ensemble: str) -> str:
        """The object key of an ensemble's failure."""
        return f"{self.failures}{ensemble}.json"

    @property
    def builds(self) -> str:
        """The object key of the batches to build."""
        return f"{self._execution}builds.json"

    def build_failure(self, artifact_key: str, repository: str) -> str:
        """The object key of the reason why an archive was not built; repositories with one key have one each."""
        return f"{self._execution}builds/{artifact_key}/{repository}.json"

    def _publication(self, publication: str) -> str:
        caller_of(publication)
        return f"{PUBLISH_PREFIX}{self.fleet}/{publication}/"

    @property
    def _own(self) -> str:
        return f"staging/publishing/{self.fleet}/{self.platform}/"

    @property
    def _execution(self) -> str:
        return f"{self._own}executions/{self._name}/"

    @property
    def _name(self) -> str:
        """The names of the machine and of the execution, which end the ARN."""
        return "/".join(self.execution.split(":")[-2:])


def caller_of(publication: str) -> str:
    """The userid of who has written a request.

    Args:
        publication: a userid, a slash, and an id.

    Raises:
        ArtifactError: the userid cannot be part of an object key.
    """
    found = _PUBLICATION.fullmatch(publication)
    if found is None:
        raise ArtifactError(
            f"the publication is {publication!r:.300}, which does not have the form USERID/ID; run `cdk-triton fleet`, "
            "which starts the execution itself"
        )
    return found["caller"]


def parse_request(text: bytes) -> list[Item]:
    """Read a request: an item for each ensemble.

    Raises:
        ArtifactError: the request is not one that this version of the library takes.
    """
    values = sum(text.count(sign) for sign in (b"{", b"[", b","))
    if values > MAX_VALUES:
        raise _malformed(f"it has {values:,} values, but at most {MAX_VALUES:,} are allowed")
    try:
        document = parse_json(text)
        schema, items = document["schema"], document["items"]
    except (ValueError, LookupError, TypeError) as error:
        raise _malformed(f"it is not a JSON object with schema and items ({error!r})") from error
    if schema != SCHEMA:
        raise _malformed(f"it has schema {schema!r:.300}, but this publisher reads schema {SCHEMA}")
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_ITEMS:
        found = f"{len(items)} items" if isinstance(items, list) else f"{items!r:.300} as its field 'items'"
        raise _malformed(f"it has {found}, but a request needs a list of 1 to {MAX_ITEMS:,} items")
    allowed = {"ensemble", "action", "repository", "source_key", "artifact_key", "to", "built", "from_platform"}
    if any(not isinstance(each, dict) or each.keys() - allowed for each in items):
        raise _malformed(f"an item has a field that is not one of {', '.join(sorted(allowed))}")
    parsed = [Item.parse(each) for each in items]
    names = {item.ensemble for item in parsed}
    if len(names) < len(parsed):
        raise _malformed("it names an ensemble twice")
    return parsed


def _malformed(what: str) -> ArtifactError:
    return ArtifactError(
        f"the request cannot be read, because {what}; install the version of cdk-triton that deployed the "
        "publisher, and run the command again"
    )
