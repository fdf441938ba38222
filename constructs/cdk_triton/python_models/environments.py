"""The packed environments of Python models: what the rules about them have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import Files, repository_files
from cdk_triton.checks.derived.configured import ConfiguredModel, configured
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem, rules_about, would_not_load
from cdk_triton.python_models.reader.execution_environment import VARIABLE, environment_text, written_environment
from cdk_triton.python_models.reader.unsafe_members import UnsafeMember, unsafe_member
from cdk_triton.triton.repository import RepositoryFile

__all__ = ["SAFE_SINCE", "ModelEnvironment", "environment_rule", "environments", "rejected_member"]

_ARCHIVES = (".tar.gz", ".tgz", ".tar")

SAFE_SINCE = "26.06"
"""The first release that rejects unsafe members: python_backend 3033a6b is on the branch r26.06, not on r26.05."""


@dataclass(frozen=True)
class ModelEnvironment:
    """The place of a Python model's environment.

    Attributes:
        owner: the model, with its configuration.
        written: the path as the configuration writes it.
        opened: the path that the server opens, relative to the repository; None if it is outside.
        files: all files of the repository.
    """

    owner: ConfiguredModel
    written: str
    opened: str | None
    files: Files

    def unloadable(self, found: str, words: str, fix: str) -> Problem:
        """A problem of the file for which the server does not load the model; `words` are the server's."""
        return Problem(self.path, would_not_load(self.owner.model, found, words), fix)

    @cached_property
    def path(self) -> PurePosixPath | None:
        """The path in the repository, or None where it is outside."""
        return None if self.opened is None else PurePosixPath(normpath(self.opened))

    @cached_property
    def is_there(self) -> bool:
        """Whether the path can be opened: every directory on the way exists, also one before `..`."""
        return self.opened is not None and self.files.finds(self.opened)

    @property
    def is_misspelt(self) -> bool:
        """Whether it is outside because the variable is misspelt, or not at the beginning."""
        return self.path is None and VARIABLE[2:] in self.written.upper() and not self.written.startswith(VARIABLE)

    @property
    def is_absolute(self) -> bool:
        """Whether the path is written from the root of the file system."""
        return self.written.startswith("/")

    @property
    def has_own_image(self) -> bool:
        """Whether an image of one's own serves, which may have any file."""
        platform = self.owner.context.platform
        return platform is not None and platform.image is not None

    @cached_property
    def meant(self) -> PurePosixPath | None:
        """What a path without the variable means: the file of the model or of the repository; None if not certain.

        An absolute path means the file in the repository of whose path it ends with two parts or more, such as
        `/models/text/env.tar.gz`. Neither is where the server looks, unless an image of one's own has the file there.
        """
        if self.path is not None or self.has_own_image:
            return None
        if self.is_absolute:
            parts = PurePosixPath(normpath(self.written)).parts[1:]
            places = ["/".join(parts[start:]) for start in range(1, len(parts) - 1)]
        else:
            places = [f"{self.owner.model.directory}/{self.written}", self.written]
        return next((PurePosixPath(normpath(place)) for place in places if self.files.finds(normpath(place))), None)

    @cached_property
    def other(self) -> PurePosixPath | None:
        """The archive that may be meant instead: the one of this name, or the only one beside the configuration."""
        here = PurePosixPath(str(self.owner.model.directory))
        archives = [path for path in self.files if here in path.parents and path.name.endswith(_ARCHIVES)]
        same = [path for path in archives if self.path is not None and path.name == self.path.name]
        beside = [path for path in archives if path.parent == here]
        return next((found[0] for found in (same, beside) if len(found) == 1), None)

    @property
    def is_misplaced(self) -> bool:
        """Whether no file is there for certain: the path means another place, or the directory where the server runs.

        The images of SageMaker have no environment in that directory; one's own may have.
        """
        return self.meant is not None or (self.path is None and not self.is_absolute and not self.has_own_image)

    @property
    def archive(self) -> RepositoryFile | None:
        """The archive, if the path is an archive that exists."""
        return None if self.path is None else self.files.file(self.path)

    @property
    def is_directory(self) -> bool:
        """Whether it is unpacked already."""
        return self.path is not None and self.files.has_directory(self.path)


@per_check
def environments(context: CheckContext) -> Iterator[ModelEnvironment]:
    """The environments of the models that the server would load."""
    for each in configured(context):
        if written := written_environment(each.model):
            opened = environment_text(each.model, "/opt/ml/model" if context.mode == "single" else None)
            yield ModelEnvironment(each, written, opened, repository_files(context))


environment_rule = rules_about(environments)
"""Register a rule about each of these environments; the parameters are those of `rule`."""


def rejected_member(environment: ModelEnvironment) -> UnsafeMember | None:
    """The member of an environment's archive that the server of this release refuses to unpack."""
    context, archive = environment.owner.context, environment.archive
    if archive is None or context.platform is None or not is_at_least(context.platform, SAFE_SINCE):
        return None
    return context.contents(unsafe_member, archive)
