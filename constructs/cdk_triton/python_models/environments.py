"""The packed environments of Python models: what the rules about them have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import Files, repository_files
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.python_models.reader.execution_environment import VARIABLE, environment_text, written_environment
from cdk_triton.python_models.reader.unsafe_members import UnsafeMember, unsafe_member
from cdk_triton.triton.model import Model
from cdk_triton.triton.repository import RepositoryFile

__all__ = ["SAFE_SINCE", "ModelEnvironment", "environments", "refused_member"]

SAFE_SINCE = "26.06"
"""The first release that rejects unsafe members: python_backend 3033a6b is on the branch r26.06, not on r26.05."""


@dataclass(frozen=True)
class ModelEnvironment:
    """The place of a Python model's environment.

    Attributes:
        model: the model.
        written: the path as the configuration writes it.
        opened: the path that the server opens, relative to the repository, or None where it is outside.
        files: all files of the repository.
    """

    model: Model
    written: str
    opened: str | None
    files: Files

    @cached_property
    def path(self) -> PurePosixPath | None:
        """The path in the repository, or None where it is outside."""
        return None if self.opened is None else PurePosixPath(normpath(self.opened))

    @cached_property
    def is_there(self) -> bool:
        """Whether the system finds it: every directory on the way is there, those before `..` too."""
        return self.opened is not None and self.files.finds(self.opened)

    @property
    def is_misspelt(self) -> bool:
        """Whether it is outside because the variable stands at another place, or is written in another way."""
        return self.path is None and VARIABLE[2:] in self.written.upper() and not self.written.startswith(VARIABLE)

    @property
    def archive(self) -> RepositoryFile | None:
        """The archive, if it is one that is there."""
        return None if self.path is None else self.files.file(self.path)

    @property
    def is_directory(self) -> bool:
        """Whether it is unpacked already."""
        return self.path is not None and self.files.has_directory(self.path)


@per_check
def environments(context: CheckContext) -> Iterator[ModelEnvironment]:
    """The environments that the models which the server would load name."""
    for model in context.loaded_models:
        written = written_environment(model)
        if written:
            opened = environment_text(model, "/opt/ml/model" if context.mode == "single" else None)
            yield ModelEnvironment(model, written, opened, repository_files(context))


def refused_member(context: CheckContext, environment: ModelEnvironment) -> UnsafeMember | None:
    """The member of an environment's archive that the server does not unpack, on releases that reject some."""
    if environment.archive is None or context.platform is None or not is_at_least(context.platform, SAFE_SINCE):
        return None
    return context.contents(unsafe_member, environment.archive)
