"""The keys that name archives, and the JSON document of which each is the SHA-256.

A key depends on the path and content of every file of the archive, and an artifact key also on the target: the image,
as `repository:tag` or digest, and the GPU. For files that recipes add, a key contains the parameters of the recipes and
the version of the build program instead of the content, which is not known yet and follows from them.

A publisher's functions compute the keys of uploads again. The inputs other than the files come from the deployment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .canonical import canonical_json, sha256_of_json

__all__ = ["ArchiveKeys", "KeyInputs", "rehearsal_key"]


class ArchiveKeys(NamedTuple):
    """The keys of an archive."""

    source: str
    artifact: str


@dataclass(frozen=True)
class KeyInputs:
    """The inputs of keys other than the files of an archive; its fields are its JSON.

    Attributes:
        source: the inputs of both keys: the version of the keys, and the recipes if there are some.
        target: the inputs of the artifact key alone: the image and the GPU.
    """

    source: Mapping[str, Any]
    target: Mapping[str, Any]

    def with_recipes(self, parameters: Iterable[Mapping[str, Any]], program: int) -> KeyInputs:
        """The inputs of a repository with recipes.

        Args:
            parameters: the parameters of each recipe, in any order.
            program: the version of the build program.
        """
        recipes = sorted(parameters, key=canonical_json)
        return replace(self, source={**self.source, "recipes": recipes, "program": program}) if recipes else self

    def source_key(self, files: Mapping[str, str]) -> str:
        """The key of the files and recipes, without a platform.

        Args:
            files: the SHA-256 of each file, by path.
        """
        return sha256_of_json({**self.source, "files": files})

    def artifact_key(self, files: Mapping[str, str]) -> str:
        """The key of the archive; see `source_key`."""
        return sha256_of_json({**self.source, "files": files, **self.target})

    def keys(self, files: Mapping[str, str]) -> ArchiveKeys:
        """Both keys; see `source_key`."""
        return ArchiveKeys(self.source_key(files), self.artifact_key(files))


def rehearsal_key(
    *, artifact_key: str, image: str, instance_type: str, golden: str, document: Mapping[str, Any], program: int
) -> str:
    """The key of a rehearsal: the SHA-256 of everything that decides what is rehearsed and how.

    The bytes of the archive do not take part, because they are not known before a build. The pass of a rehearsal lies
    below its archive, and records the size and ETag of that archive. It does not count for another archive of the same
    artifact key, such as one that was built again after a deletion.

    Args:
        artifact_key: of the archive that is rehearsed.
        image: the identity of the image, as `repository:tag` or digest.
        instance_type: the instance type that serves the archive.
        golden: the SHA-256 of the ZIP file of golden requests.
        document: what the build program reads about the rehearsal: the mode, the variables of the container, the
            comparisons, the time limit and the budgets.
        program: the version of rehearsals in the build program.
    """
    return sha256_of_json(
        {
            "artifact_key": artifact_key,
            "image": image,
            "instance_type": instance_type,
            "golden": golden,
            "document": document,
            "program": program,
        }
    )
