"""The Python modules that the server imports for a model: the model's file, and what it imports from the repository.

The process of a model appends two directories to Python's path, that of the file and the one above, and imports the
file as `1.model` (python_backend: src/pb_stub.cc, ModelContext::StubSetup).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile, Files, backend_files, below
from cdk_triton.checks.derived.releases import known_release
from cdk_triton.triton.contents import Unreadable
from cdk_triton.triton.contents.python_source import Imported, PythonSource, SyntaxFault, python_source
from cdk_triton.triton.releases import releases

__all__ = ["PROVIDED", "Module", "imported_modules", "model_module", "python_models", "python_version"]

PROVIDED = frozenset({"numpy", "triton_python_backend_utils", "c_python_backend_utils"})
"""What every image brings besides Python's standard library."""

Read = PythonSource | SyntaxFault | Unreadable

# In the order in which Python looks for them.
_SUFFIXES = (".abi3.so", ".so", ".py", ".pyc")


@dataclass(frozen=True)
class Module:
    """A module that Python finds in the repository.

    Attributes:
        name: its name, `1.model`.
        kind: a file, a package with `__init__.py`, or a directory without.
        path: its file; None where it is a directory without `__init__.py`.
        directories: where its modules are looked for, if it is a package.
    """

    name: str
    kind: Literal["file", "package", "directory"]
    path: PurePosixPath | None
    directories: tuple[PurePosixPath, ...] = ()


@dataclass(frozen=True)
class ImportedModule:
    """What became of an import.

    Attributes:
        owner: the model's file.
        importer: the file that imports.
        line: where it imports.
        path: the file that is imported; None where there is none.
        source: what that file is; None where it is missing or no source.
        said: what Python says of a missing one.
    """

    owner: BackendFile
    importer: PurePosixPath
    line: int
    path: PurePosixPath | None = None
    source: Read | None = None
    said: str = ""


def python_version(context: CheckContext) -> tuple[int, int]:
    """The Python of the release that serves; the newest one where no release is given."""
    release = known_release(context.platform) or releases()[-1]
    major, _, minor = release.python.partition(".")
    return int(major), int(minor)


@per_check
def python_models(context: CheckContext) -> Iterator[tuple[BackendFile, Read]]:
    """The source of every Python model that the server would load, read for the Python of the release."""
    read = python_source(python_version(context))
    for each in backend_files(context):
        if each.backend == "python" and each.file is not None:
            module = model_module(each)
            if isinstance(module, Module) and module.path == each.path and each.path.suffix != ".so":
                yield each, context.contents(read, each.file)


def model_module(each: BackendFile) -> Module | str:
    """The module that the server imports for a Python model, or what it says instead."""
    directory, _, name = f"{each.version}/{each.name}".rpartition("/")
    package = next((part for part in reversed(directory.split("/")) if part), "")
    if not name:
        return f"Python model file not found in '{directory}/'"
    if name[-1] not in ".py":  # it looks for the last of these characters, and takes it for the end of `.py`
        return f"Model name must end with '.py'. Model name is \"{name}\"."
    if package in (".", ".."):
        return "No module named '.'"
    if package in sys.stdlib_module_names or package in PROVIDED:
        return f"No module named '{package}.{name[:-3]}'"
    return _find(each.files, f"{package}.{name[:-3]}", _path(directory))


def _path(directory: str) -> tuple[PurePosixPath, PurePosixPath]:
    """The directories that the server appends to Python's path."""
    return below(PurePosixPath(), directory), below(PurePosixPath(), directory.rpartition("/")[0])


def _find(files: Files, name: str, path: Sequence[PurePosixPath]) -> Module | str:
    """A module by its whole name, or what Python says where it finds none."""
    found: Module | None = None
    parts = name.split(".")
    for index, part in enumerate(parts):
        so_far = ".".join(parts[: index + 1])
        if found is not None and found.kind == "file":
            return f"No module named '{so_far}'; '{found.name}' is not a package"
        found = _look(files, so_far, part, path if found is None else found.directories)
        if found is None:
            return f"No module named '{so_far}'"
    assert found is not None
    return found


def _look(files: Files, name: str, last: str, path: Sequence[PurePosixPath]) -> Module | None:
    portions = []
    for directory in path:
        inner = directory / last if last else directory
        if last and files.has_directory(inner):
            init = _file(files, inner, "__init__")
            if init is not None:
                return Module(name, "package", init, (inner,))
            portions.append(inner)
        file = _file(files, directory, last)
        if file is not None:
            return Module(name, "file", file)
    return Module(name, "directory", None, tuple(portions)) if portions else None


def _file(files: Files, directory: PurePosixPath, stem: str) -> PurePosixPath | None:
    for each in files.names_in(directory):
        if each.startswith(f"{stem}.cpython-") and each.endswith(".so"):
            return directory / each
    return next((path for suffix in _SUFFIXES if files.has(path := directory / f"{stem}{suffix}")), None)


@per_check
def imported_modules(context: CheckContext) -> Iterator[ImportedModule]:
    """What the files of Python models import from the repository whatever happens, and what these files import."""
    read = python_source(python_version(context))
    for each, source in python_models(context):
        module = model_module(each)
        if not isinstance(module, Module) or not isinstance(source, PythonSource) or not source.imported:
            continue
        path = _path(f"{each.version}/{each.name}".rpartition("/")[0])
        pending, seen = [(module, source)], {each.path}
        for importer, its_source in pending:  # grows while we walk
            for imported in its_source.imported:
                for found in _imported(each.files, importer, imported, path, may_differ=source.changes_path):
                    if isinstance(found, str):
                        yield ImportedModule(each, _path_of(importer), imported.line, said=found)
                    elif found.path is not None and found.path not in seen and found.path.suffix == ".py":
                        seen.add(found.path)
                        file = each.files.file(found.path)
                        inner = None if file is None else context.contents(read, file)
                        yield ImportedModule(each, _path_of(importer), imported.line, found.path, inner)
                        if isinstance(inner, PythonSource):
                            pending.append((found, inner))


def _path_of(module: Module) -> PurePosixPath:
    assert module.path is not None
    return module.path


def _imported(
    files: Files, importer: Module, imported: Imported, path: Sequence[PurePosixPath], *, may_differ: bool
) -> Iterator[Module | str]:
    """The modules that an import brings, as far as they are in the repository, and what Python says of missing ones."""
    name = imported.module
    if imported.level:
        parts = importer.name.split(".")
        package = parts if importer.kind == "package" else parts[:-1]
        if not package:
            yield "attempted relative import with no known parent package"
            return
        if imported.level > len(package):
            yield "attempted relative import beyond top-level package"
            return
        name = ".".join([*package[: len(package) - imported.level + 1], *filter(None, [name])])
    elif may_differ or _is_elsewhere(files, name.partition(".")[0], path):
        return
    found: Module | str = ""
    for end in range(1, name.count(".") + 2):
        found = _find(files, ".".join(name.split(".")[:end]), path)
        yield found
        if isinstance(found, str):
            return
    if isinstance(found, Module) and found.kind == "directory" and imported.names:
        for each in imported.names:
            inner = _find(files, f"{name}.{each}", path)
            if each != "*":
                yield inner if isinstance(inner, Module) else f"cannot import name '{each}' from '{name}'"


def _is_elsewhere(files: Files, name: str, path: Sequence[PurePosixPath]) -> bool:
    """Whether a module comes from elsewhere, or may: from the standard library, the image or an environment."""
    found = _look(files, name, name, path)
    return name in sys.stdlib_module_names or name in PROVIDED or found is None or found.kind == "directory"
