"""The places where Python may find the modules of a Python model, beyond the directories that the server adds."""

from __future__ import annotations

from collections.abc import Iterable

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile, repository_files
from cdk_triton.python_models.modules import has_module
from cdk_triton.python_models.reader.path import Search

__all__ = ["is_in_repository", "widest"]

_MODULES = (".py", ".pyc", ".so")
_ARCHIVES = (".zip", ".whl", ".egg", ".pth")  # Python may find modules through them


def widest(searches: Iterable[Search]) -> Search:
    """The search that finds the most."""
    found = set(searches)
    return "anywhere" if "anywhere" in found else "repository" if "repository" in found else "usual"


def is_in_repository(context: CheckContext, each: BackendFile, name: str, search: Search) -> bool:
    """Whether Python may find a module in the repository."""
    if has_module(each, name):
        return True
    names = _names(context) if search == "repository" else frozenset()
    return names is None or name in names


@per_check
def _names(context: CheckContext) -> frozenset[str] | None:
    """The names of all modules and directories of the repository; None if files may lead to others."""
    files = repository_files(context)
    if any(path.suffix in _ARCHIVES for path in files):
        return None
    modules = {path.name.partition(".")[0] for path in files if path.suffix in _MODULES}
    return frozenset(modules | {part.name for path in files for part in path.parents})
