"""The object keys of a request to a publisher, and of what its state machine writes.

::

    staging/publish/<fleet>/<caller>/                        written by the caller
        archives/<artifact key>.tar.gz                       an archive, or the sources of one that is built
        archives/<SHA-256>.zip                               golden requests
        <id>/request.json                                    what is to be changed
        <id>/<artifact key>.json                             how an archive is built
        <id>/<rehearsal key>.rehearsal.json                  how an archive is rehearsed
    staging/publishing/<fleet>/<platform>/                   written by the machine
        executions/<machine>/<execution>/items.json          one item for each ensemble
        executions/<machine>/<execution>/builds.json         batches of what is to be built
        executions/<machine>/<execution>/builds/<artifact key>/<repository>.json
                                                             why an archive was not built
        executions/<machine>/<execution>/rehearsals/<rehearsal key>.json
                                                             why a rehearsal has not passed
        failures/<machine>/<execution>/<ensemble>.json       why an ensemble was not changed
        results/                                             written by Step Functions; nothing reads it

Verified sources are kept beside the archive that is built from them, and golden requests beside the archive that has
passed, because a change of the platform may need another build or rehearsal after `staging/` has expired.

`<caller>` is the `aws:userid` of the caller, such as `AROAEXAMPLE:alice`. `grant_publish` allows each caller to write
into the directory of its own userid alone. So IAM guarantees the author of a request, whom the catalogue records, and
no caller can overwrite the uploads of another one. A caller can start an execution for the request of another one. Step
Functions does not pass the caller to the execution, but CloudTrail records it.

Publishers of one store share no prefix: two machines may have executions of the same name, and a caller of one machine
may be forbidden to use the other. Two machines can publish for the same platform of a `TritonMultiModel`: before a
platform change the machine of the next platform, and after it the machine of the present platform. So the prefix names
the machine too, and CloudFormation gives each machine another name. An execution that is redriven keeps its ARN, so
it finds what it wrote. Failures have a prefix of their own, because callers can read nothing else. All of it expires
with `staging/`. Object keys are derived here, from names that are checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from protocol import layout, publication
from protocol.documents import DocumentError, OtherVersionError
from protocol.publication import Item

from .failure import ArtifactError

__all__ = ["Place", "caller_of", "parse_item", "parse_request"]

_PUBLICATION = re.compile(r"(?P<caller>[A-Za-z0-9][\w+=,.@:-]{0,127})/[A-Za-z0-9-]{1,80}", re.ASCII)
"""A caller and an id. A userid has the id of a role and the name of a session, up to 64 of these characters ("AWS
global condition context keys", and `RoleSessionName` of `AssumeRole`)."""


@dataclass(frozen=True)
class Place:
    """The object keys of an execution's documents, and of those of its `TritonMultiModel`.

    Attributes:
        multi_model: the name of the `TritonMultiModel` in the store.
        platform: its platform, as in `25.09-a10g`.
        execution: the ARN of the execution.
    """

    multi_model: str
    platform: str
    execution: str

    @property
    def served(self) -> str:
        """The prefix that the endpoint serves from."""
        return self.served_by(self.platform)

    def served_by(self, platform: str) -> str:
        """The prefix that an endpoint of a platform serves from."""
        return layout.fleet_prefix(self.multi_model, platform)

    @property
    def index(self) -> str:
        """The object key of the index."""
        return self.index_of(self.platform)

    def index_of(self, platform: str) -> str:
        """The object key of the index of a platform."""
        return layout.index_key(self.multi_model, platform)

    def request(self, publication: str) -> str:
        """The object key of a request.

        Raises:
            ArtifactError: the publication cannot be part of an object key.
        """
        caller_of(publication)
        return layout.request_key(self.multi_model, publication)

    def upload(self, publication: str, artifact_key: str) -> str:
        """The object key of an archive that the caller of a request has uploaded, for this request or an earlier one.

        Raises:
            ArtifactError: the publication cannot be part of an object key.
        """
        return layout.upload_key(self.multi_model, caller_of(publication), artifact_key)

    def build(self, publication: str, artifact_key: str) -> str:
        """The object key of a build that was uploaded for a request.

        Raises:
            ArtifactError: the publication cannot be part of an object key.
        """
        caller_of(publication)
        return layout.uploaded_build_key(self.multi_model, publication, artifact_key)

    def rehearsal(self, publication: str, key: str) -> str:
        """The object key of a rehearsal that was uploaded for a request.

        Raises:
            ArtifactError: the publication cannot be part of an object key.
        """
        caller_of(publication)
        return layout.uploaded_rehearsal_key(self.multi_model, publication, key)

    def golden(self, publication: str, golden: str) -> str:
        """The object key of the golden requests with this SHA-256 that the caller of a request has uploaded.

        Raises:
            ArtifactError: the publication cannot be part of an object key.
        """
        return layout.golden_upload_key(self.multi_model, caller_of(publication), golden)

    @property
    def items(self) -> str:
        """The object key of the items."""
        return f"{self._execution}items.json"

    @property
    def failures(self) -> str:
        """The prefix of the failures."""
        return layout.publishing_failures_prefix(self.multi_model, self.platform, self.execution)

    def failure(self, ensemble: str) -> str:
        """The object key of an ensemble's failure."""
        return f"{self.failures}{ensemble}.json"

    @property
    def builds(self) -> str:
        """The object key of the batches to build and to rehearse."""
        return f"{self._execution}builds.json"

    def build_failure(self, artifact_key: str, repository: str) -> str:
        """The object key of the reason why an archive was not built, one for each repository."""
        return f"{self._execution}builds/{artifact_key}/{repository}.json"

    def rehearsal_failure(self, key: str) -> str:
        """The object key of the reason why a rehearsal has not passed."""
        return f"{self._execution}rehearsals/{key}.json"

    @property
    def _execution(self) -> str:
        return layout.execution_prefix(self.multi_model, self.platform, self.execution)


def caller_of(publication: str) -> str:
    """The userid of the author of a request.

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
        ArtifactError: the request is not valid in this version of the library.
    """
    try:
        return publication.parse_request(text)
    except OtherVersionError as error:
        raise _malformed(f"it has {error} of this publisher") from error
    except DocumentError as error:
        raise _malformed(str(error)) from error


def parse_item(document: Mapping[str, Any]) -> Item:
    """Read an item from the input of a state.

    Raises:
        ArtifactError: a field is missing, unknown, or cannot be part of an object key.
    """
    try:
        return Item.parse(document)
    except DocumentError as error:
        raise _malformed(str(error)) from error


def _malformed(what: str) -> ArtifactError:
    return ArtifactError(
        f"the request cannot be read, because {what}; install the version of cdk-triton that deployed the "
        "publisher, and run the command again"
    )
