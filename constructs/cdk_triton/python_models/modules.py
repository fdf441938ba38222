"""The Python modules that the server imports for a model: the model's file, and what it imports from the repository.

The process of a model appends two directories to Python's path, that of the file and the one above, and imports the
file as `1.model` (python_backend: src/pb_stub.cc, ModelContext::StubSetup).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile, Files, backend_files, below
from cdk_triton.checks.derived.releases import known_release
from cdk_triton.checks.registry import rules_about
from cdk_triton.python_models.reader.image_modules import installed_modules, newest_modules, standard_modules
from cdk_triton.python_models.reader.imports import Imported
from cdk_triton.python_models.reader.source import PythonSource, SyntaxFault, python_source
from cdk_triton.triton.releases import releases
from cdk_triton.triton.unreadable import Unreadable

__all__ = [
    "PROVIDED",
    "Module",
    "Read",
    "has_compiled_file",
    "has_module",
    "imported_modules",
    "is_loaded_by_model",
    "is_named_by_model",
    "model_modules",
    "needed_modules",
    "needed_sources",
    "own_module",
    "provided_modules",
    "python_models",
    "python_version",
]

PROVIDED = frozenset({"numpy", "triton_python_backend_utils", "c_python_backend_utils"})
"""The modules of every image, beyond Python's standard library."""

Read = PythonSource | SyntaxFault | Unreadable

# In the order in which Python looks for them.
_SUFFIXES = (".abi3.so", ".so", ".py", ".pyc")
_COMPILED = "-linux-gnu.so"  # the images' Python does not look for the files of another system


@dataclass(frozen=True)
class Module:
    """A module that Python finds in the repository.

    Attributes:
        name: its name, `1.model`.
        kind: a file, a package with `__init__.py`, or a directory without.
        path: its file; None where it is a directory without `__init__.py`.
        directories: the directories in which Python looks for its modules, if it is a package.
    """

    name: str
    kind: Literal["file", "package", "directory"]
    path: PurePosixPath | None
    directories: tuple[PurePosixPath, ...] = ()


@dataclass(frozen=True)
class ImportedModule:
    """An import of a model, and its result.

    Attributes:
        owner: the model's file.
        importer: the file that imports.
        line: the line of the import.
        path: the file that is imported; None if the module has no file here.
        source: the content of that file; None if it is missing or is not a source.
        said: Python's message if it is missing.
    """

    owner: BackendFile
    importer: PurePosixPath
    line: int
    path: PurePosixPath | None = None
    source: Read | None = None
    said: str = ""


class PythonModel(NamedTuple):
    """A Python model whose file can be judged.

    Attributes:
        file: the file.
        source: the content of the file.
    """

    file: BackendFile
    source: PythonSource


def python_version(context: CheckContext) -> tuple[int, int]:
    """The Python of the release that serves; the newest one where no release is given."""
    release = known_release(context.platform) or releases()[-1]
    major, _, minor = release.python.partition(".")
    return int(major), int(minor)


def provided_modules(context: CheckContext) -> frozenset[str] | None:
    """The top-level modules that Python finds in the image, those of the standard library too; None if not known."""
    platform, declared = context.platform, context.repository.image_modules
    release = known_release(platform)
    if platform is None or (platform.image is not None and declared is None):
        return None
    installed = installed_modules(platform.release)
    if installed is None:
        installed = newest_modules()  # an image of one's own, whose modules are declared
    version = None
    if release is not None and "python" not in release.assumed:
        major, _, minor = release.python.partition(".")
        version = int(major), int(minor)
    return standard_modules(version) | PROVIDED | installed | frozenset(declared or ())


@per_check
def python_models(context: CheckContext) -> Iterator[tuple[BackendFile, Read]]:
    """The source of every Python model that the server would load, read for the Python of the release."""
    read = python_source(python_version(context))
    for each in backend_files(context):
        if each.backend == "python" and each.file is not None:
            module = model_modules(context)[each.version]
            file = each.files.file(module.path) if isinstance(module, Module) and module.path is not None else None
            if file is not None and file.path.suffix not in (".so", ".pyc"):
                other = each if file.path == each.path else replace(each, path=file.path, alternatives=())
                yield other, context.contents(read, file)


@per_check
def python_sources(context: CheckContext) -> Iterator[PythonModel]:
    """The models among these whose source Python can parse."""
    for each, source in python_models(context):
        if isinstance(source, PythonSource):
            yield PythonModel(each, source)


source_rule = rules_about(python_sources)
"""Register a rule about the source of each of these models; the parameters are those of `rule`."""


@per_check
def model_modules(context: CheckContext) -> Mapping[PurePosixPath, Module | str]:
    """The module that the server imports for each version of a Python model, or its error."""
    return {each.version: _model_module(each) for each in backend_files(context) if each.backend == "python"}


def _model_module(each: BackendFile) -> Module | str:
    if each.name == f"{each.path.stem}.py" and each.path.stem.isidentifier() and _is_alone(each):
        return Module(f"{each.version.name}.{each.path.stem}", "file", each.path)
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


def _is_alone(each: BackendFile) -> bool:
    """Whether Python can find no other module of the model in place of the file, as usual."""
    deepest = len(each.path.parts)
    others = (path for path in each.files if path != each.path)
    return each.is_there and not any(len(other.parts) > deepest or other.suffix in _SUFFIXES for other in others)


def _path_of_model(owner: BackendFile) -> tuple[PurePosixPath, PurePosixPath]:
    if "/" not in owner.name:
        return owner.version, owner.version.parent
    return _path(f"{owner.version}/{owner.name}".rpartition("/")[0])


def _path(directory: str) -> tuple[PurePosixPath, PurePosixPath]:
    """The directories that the server appends to Python's path."""
    return below(PurePosixPath(), directory), below(PurePosixPath(), directory.rpartition("/")[0])


def _find(files: Files, name: str, path: Sequence[PurePosixPath]) -> Module | str:
    """A module by its whole name, or Python's message if it finds none."""
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
    names = files.names_of(directory, stem)
    binary = [name for name in names if name.startswith(f"{stem}.cpython-") and name.endswith(_COMPILED)]
    expected = (*binary, *(f"{stem}{suffix}" for suffix in _SUFFIXES)) if names else ()
    return next((directory / name for name in expected if name in names and files.has(directory / name)), None)


@per_check
def imported_modules(context: CheckContext) -> Iterator[ImportedModule]:
    """The modules of the repository that Python models import unconditionally, and those that these modules import."""
    for each, source in python_sources(context):
        yield from _Imports(context, each, source).found()


@per_check
def needed_modules(context: CheckContext) -> Iterator[ImportedModule]:
    """The modules that Python models certainly import when they are loaded or called, directly or indirectly."""
    for each, source in python_sources(context):
        yield from _Imports(context, each, source, is_needed=True).found()


@per_check
def needed_sources(context: CheckContext) -> Iterator[tuple[BackendFile, Mapping[PurePosixPath, PythonSource]]]:
    """Each Python model, with the sources that certainly run: its own, and those of the modules that they import."""
    imported: dict[PurePosixPath, dict[PurePosixPath, PythonSource]] = {}
    for one in needed_modules(context):
        if one.path is not None and isinstance(one.source, PythonSource):
            imported.setdefault(one.owner.path, {})[one.path] = one.source
    for each, source in python_sources(context):
        yield each, {each.path: source, **imported.get(each.path, {})}


def is_loaded_by_model(context: CheckContext, name: str) -> bool:
    """Whether a Python model that the server loads may in turn load a model of this name (`load_model`)."""
    loads = _loads(context)
    return None in loads or any(name in names for names in loads if names is not None)


@per_check
def _loads(context: CheckContext) -> frozenset[frozenset[str] | None]:
    return frozenset(source.references.loads for _, sources in needed_sources(context) for source in sources.values())


def is_named_by_model(context: CheckContext, name: str) -> bool:
    """Whether a Python model that the server loads has a text with a directory of this name, so that it may use it."""
    return any(
        name in source.references.directories for _, sources in needed_sources(context) for source in sources.values()
    )


def has_module(owner: BackendFile, name: str) -> bool:
    """Whether a model finds a top-level module in the directories that the server appends to Python's path."""
    return own_module(owner, name) is not None


def has_compiled_file(owner: BackendFile, name: str) -> bool:
    """Whether these directories have a compiled module of this name, for whatever machine and Python."""
    files = (file for directory in _path_of_model(owner) for file in owner.files.names_of(directory, name))
    return any(file.endswith((".so", ".pyd")) for file in files)


def own_module(owner: BackendFile, name: str) -> Module | None:
    """The top-level module of this name in the directories that the server appends to Python's path, or None."""
    return _look(owner.files, name, name, _path_of_model(owner))


class _Imports:
    """The imports of one model: those at the top of its modules, or all that certainly run."""

    def __init__(
        self, context: CheckContext, owner: BackendFile, source: PythonSource, *, is_needed: bool = False
    ) -> None:
        self._is_needed = is_needed
        self._standard = standard_modules(python_version(context))
        self._context = context
        self._owner = owner
        self._source = source
        self._files = owner.files
        self._path = _path_of_model(owner)

    def found(self) -> Iterator[ImportedModule]:
        """The modules that are imported, and the missing ones."""
        own = model_modules(self._context)[self._owner.version]
        if not isinstance(own, Module):
            return
        pending = [
            (own, imported)
            for imported in self._imports_of(self._source)
            if imported.level or not self._is_provided(imported)
        ]
        if self._is_package():  # the package is imported before the module
            pending.insert(0, (own, Imported(0, 0, own.name.rpartition(".")[0])))
        seen = {self._owner.path}
        for importer, imported in pending:  # grows while we walk
            for found in self._imported(importer, imported):
                if isinstance(found, str):
                    if self._is_needed and self._source.changes_path and not imported.level:
                        continue
                    yield ImportedModule(self._owner, _path_of(importer), imported.line, said=found)
                elif found.path is not None and found.path not in seen and found.path.suffix == ".py":
                    seen.add(found.path)
                    source = self._read(found)
                    yield ImportedModule(self._owner, _path_of(importer), imported.line, found.path, source)
                    if isinstance(source, PythonSource):
                        pending += [(found, inner) for inner in self._imports_of(source)]

    def _is_package(self) -> bool:
        """Whether the directory of the model's file is a package with code of its own."""
        return _file(self._files, self._path[0], "__init__") is not None

    def _imports_of(self, source: PythonSource) -> tuple[Imported, ...]:
        return source.needed if self._is_needed else source.imported

    def _is_provided(self, imported: Imported) -> bool:
        name = imported.module.partition(".")[0]
        return name in self._standard or name in PROVIDED

    def _read(self, module: Module) -> Read | None:
        file = None if module.path is None or module.path.suffix != ".py" else self._files.file(module.path)
        return None if file is None else self._context.contents(python_source(python_version(self._context)), file)

    def _imported(self, importer: Module, imported: Imported) -> Iterator[Module | str]:
        """The modules of the repository that an import brings, and the messages about missing ones."""
        name, is_own = imported.module, imported.level > 0 or not imported.line
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
        elif not is_own and (self._is_provided(imported) or (self._source.changes_path and not self._is_needed)):
            return
        if not is_own and _look(self._files, name, name.partition(".")[0], self._path) is None:
            return  # an environment brings it
        before: Module | None = None
        for end in range(1, name.count(".") + 2):
            found = _find(self._files, ".".join(name.split(".")[:end]), self._path)
            if isinstance(found, Module) or self._is_closed(before, is_own=is_own):
                yield found
            if isinstance(found, str):
                return
            before = found
        if before is not None:
            yield from self._names(before, imported.names, is_own=is_own)

    def _names(self, module: Module, names: Sequence[str], *, is_own: bool) -> Iterator[Module | str]:
        """The modules behind the names of `from module import names`, and the error for a missing name."""
        source = self._read(module)
        defined = source.names if isinstance(source, PythonSource) else None
        for name in names:
            is_defined = defined is None or name in defined
            if name == "*" or (module.kind != "directory" and is_defined):
                continue
            inner = _find(self._files, f"{module.name}.{name}", self._path)
            if isinstance(inner, Module):
                yield inner
            elif self._is_closed(module, is_own=is_own) and not name.startswith("__") and not self._is_set(name):
                yield f"cannot import name '{name}' from '{module.name}'"

    def _is_set(self, name: str) -> bool:
        """Whether a file of the model sets an attribute of this name on any object, which may be a module."""
        files = (self._files.file(path) for path in self._files if path.suffix == ".py")
        read = python_source(python_version(self._context))
        sources = (self._context.contents(read, file) for file in files if file is not None)
        return any(isinstance(source, PythonSource) and name in source.attributes for source in sources)

    def _is_closed(self, package: Module | None, *, is_own: bool) -> bool:
        """Whether a name that a package lacks is missing, because no other place can have the package."""
        if package is None or package.kind == "directory":
            return is_own
        source = self._read(package)
        return isinstance(source, PythonSource) and not source.changes_path


def _path_of(module: Module) -> PurePosixPath:
    assert module.path is not None
    return module.path
