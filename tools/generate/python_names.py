"""The table of names that Pythons of the images have or lack, from a clone of python/typeshed: SOURCES/typeshed.

The stubs of typeshed describe the standard library of several Pythons, and its own tests compare them with each of
these Pythons. This reads the last commit that was tested with Python 3.8, the oldest Python of the images. The table is
checked by its hash where there is no clone.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from tools.generate import Files, GenerateError, Generator
from tools.generate._tables import canonical, checked_files, content_sha256, existing

COMMIT = "f2c917ff529f5477399244078e905c7cbb8aebf1"
TABLE = "constructs/cdk_triton/python_models/reader/data/python_names.json"
PYTHONS = ((3, 8), (3, 10), (3, 12))
# Names that the stubs do not describe enough, seen in CPython 3.8.18, 3.10.13 and 3.12.1.
WRONG = frozenset(
    {
        "distutils.command.install.WINDOWS_SCHEME",
        "distutils.sysconfig.get_python_version",
        "io.text_encoding",
        "sqlite3.OptimizedUnicode",
        "sqlite3.version",
    }
)
ABOUT = (
    "The public names of Python's standard library that some of the images' Pythons have and others do not have: "
    "module -> name -> the Pythons that have it. The table does not describe other names."
)


def table_of(clone: Path, committed: Mapping[str, Any]) -> dict[str, Any]:
    """Read the stubs of the standard library at the commit.

    Args:
        clone: the repository python/typeshed.
        committed: the table as it is. Its date is kept if the clone has the same input.

    Raises:
        GenerateError: the folder is not such a clone.
    """
    paths = [path for path in _git(clone, "ls-tree", "-r", "--name-only", COMMIT, "stdlib/").split() if _is_stub(path)]
    sources = {path: _git(clone, "show", f"{COMMIT}:{path}") for path in paths}
    versions = _git(clone, "show", f"{COMMIT}:stdlib/VERSIONS")
    read = hashlib.sha256(versions.encode())
    for path, source in sources.items():
        read.update(f"{path}\0{source}\0".encode())
    data = {"python": [_name(version) for version in PYTHONS], "names": _changed(sources, _spans(versions))}
    is_same = committed.get("input_sha256") == read.hexdigest()
    return {
        "about": ABOUT,
        "retrieved": committed["retrieved"] if is_same else datetime.now(UTC).date().isoformat(),
        "sources": [f"https://github.com/python/typeshed/tree/{COMMIT}/stdlib"],
        "generator": "tools/generate/python_names.py",
        "input_sha256": read.hexdigest(),
        "content_sha256": content_sha256(data),
        **data,
    }


def _git(clone: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", str(clone), *command], capture_output=True, text=True)  # noqa: S607
    if done.returncode != 0:
        raise GenerateError(f"{clone} cannot be read: {done.stderr.strip()}")
    return done.stdout


def _is_stub(path: str) -> bool:
    return path.endswith(".pyi") and "@" not in path


def _module(path: str) -> str:
    """The module of a stub: `concurrent.futures` for `stdlib/concurrent/futures/__init__.pyi`."""
    return path.removeprefix("stdlib/").removesuffix(".pyi").removesuffix("/__init__").replace("/", ".")


def _spans(versions: str) -> dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Module → the first and the last Python that has it, from the file VERSIONS."""
    spans = {}
    for line in versions.splitlines():
        module, separator, span = line.partition("#")[0].strip().partition(": ")
        if separator:
            first, _, last = span.partition("-")
            spans[module] = (_version(first), _version(last) if last else None)
    return spans


def _changed(
    sources: Mapping[str, str], spans: Mapping[str, tuple[tuple[int, ...], tuple[int, ...] | None]]
) -> dict[str, dict[str, list[str]]]:
    """Module → name → the Pythons that have it, where only some of those with the module do."""
    stubs = _Stubs({_module(path): ast.parse(source) for path, source in sources.items()}, spans)
    table: dict[str, dict[str, list[str]]] = {}
    for module in sorted(stubs.trees):
        pythons = [version for version in PYTHONS if _has_module(module, spans, version)]
        having = {version: stubs.names(module, version) for version in pythons}
        for name in sorted(set().union(*having.values())):
            found = [_name(version) for version in pythons if name in having[version]]
            is_public = not any(part.startswith("_") for part in (*module.split("."), name))
            if is_public and len(found) < len(pythons) and f"{module}.{name}" not in WRONG:
                table.setdefault(module, {})[name] = found
    return table


def _has_module(
    module: str, spans: Mapping[str, tuple[tuple[int, ...], tuple[int, ...] | None]], version: tuple[int, ...]
) -> bool:
    """Whether a Python has a module and the packages that it is in."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        first, last = spans.get(".".join(parts[:end]), ((3, 0), None))
        if version < first or (last is not None and version > last):
            return False
    return True


@dataclass(frozen=True)
class _Stubs:
    """The stubs of all modules.

    Attributes:
        trees: module → its stub.
        spans: module → the first and the last Python that has it.
    """

    trees: Mapping[str, ast.Module]
    spans: Mapping[str, tuple[tuple[int, ...], tuple[int, ...] | None]]

    def names(self, module: str, version: tuple[int, int]) -> set[str]:
        """The names that a module has in a Python on Linux, its modules included."""
        body = self.trees[module].body
        inner = {name for name in self.trees if name.rpartition(".")[0] == module}
        modules = {name.rpartition(".")[2] for name in inner if _has_module(name, self.spans, version)}
        return {*self._bound(module, body, version), *_exported(body, version), *modules}

    def _bound(self, module: str, body: list[ast.stmt], version: tuple[int, int]) -> Iterator[str]:
        """The names that a stub binds; an import counts if it exports its name, as in `from a import b as b`."""
        for statement in _decided(body, version):
            match statement:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    yield name
                case ast.Assign(targets=targets):
                    yield from (node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    yield name
                case ast.ImportFrom(names=[ast.alias(name="*")]):
                    yield from self._starred(self._source(module, statement), version)
                case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                    yield from (alias.name for alias in aliases if alias.asname == alias.name)

    def _source(self, module: str, statement: ast.ImportFrom) -> str:
        """The module that an import is from."""
        if not statement.level:
            return statement.module or ""
        is_package = any(name.startswith(f"{module}.") for name in self.trees)
        parts = [*module.split("."), *([""] if is_package else [])]
        return ".".join([*parts[: -statement.level], statement.module or ""])

    def _starred(self, module: str, version: tuple[int, int]) -> set[str]:
        names = _exported(self.trees[module].body, version)
        return names or {name for name in self.names(module, version) if not name.startswith("_")}


def _decided(body: list[ast.stmt], version: tuple[int, int]) -> Iterator[ast.stmt]:
    """The statements of a stub that count for a Python on Linux."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _decided(statement.body if _holds(statement.test, version) else statement.orelse, version)
        elif isinstance(statement, ast.Try):
            yield from _decided(statement.body, version)
        else:
            yield statement


def _exported(body: list[ast.stmt], version: tuple[int, int]) -> set[str]:
    """The names in the stub's `__all__`."""
    names: set[str] = set()
    for statement in _decided(body, version):
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() | ast.Tuple() as value):
                names = set(ast.literal_eval(value))
            case ast.AugAssign(target=ast.Name(id="__all__"), value=ast.List() | ast.Tuple() as value):
                names |= set(ast.literal_eval(value))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="__all__")), args=[removed])):
                names.discard(ast.literal_eval(removed))
    return names


def _holds(test: ast.expr, version: tuple[int, int]) -> bool:
    """Whether a condition of a stub is true for a Python on Linux.

    Raises:
        GenerateError: the condition has a form that no stub had before.
    """
    names: dict[str, object] = {"sys": _Sys(version), "TYPE_CHECKING": True}
    try:
        return bool(eval(compile(ast.Expression(test), "stub", "eval"), {"__builtins__": {}}, names))  # noqa: S307
    except Exception as error:
        raise GenerateError(f"the condition {ast.unparse(test)} of a stub cannot be read: {error}") from error


class _Sys:
    """The parts of `sys` that conditions of stubs use."""

    platform = "linux"
    maxsize = 2**63 - 1

    def __init__(self, version: tuple[int, int]) -> None:
        self.version_info = version


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _name(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _from_clone(clone: Path) -> Files:
    return {TABLE: canonical(table_of(clone, existing(TABLE)))}


GENERATOR = Generator(partial(checked_files, TABLE), source="typeshed", from_source=_from_clone)
