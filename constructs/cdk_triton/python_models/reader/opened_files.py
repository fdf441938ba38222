"""The files that a Python source opens by literal paths. It is parsed, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import join
from typing import Final, NamedTuple

from cdk_triton.python_models.reader.known_functions import OPENERS, READS, dotted, is_loader, missing_file

__all__ = ["SOURCE", "OpenedFile", "OpenedFiles", "opened_files"]

SOURCE: Final = "{source}"
"""What the path of the source itself begins with: `{source}/../words.txt` is beside the source."""

_WRITES = frozenset("wax")
_NO_NAMES = ("/", "./", "../")
"""What begins a path, but no name of a model of Hugging Face."""
_PATHS = (
    *("pathlib.Path", "pathlib.PurePath", "os.path.join", "os.path.abspath", "os.path.realpath", "os.fspath", "str"),
)
# Parts of the names of functions that may make files.
_MAKING = (
    *(
        "cache",
        "convert",
        "copy",
        "dump",
        "download",
        "export",
        "extract",
        "fetch",
        "generate",
        "import",
        "link",
        "make",
        "mkdir",
    ),
    *("move", "rename", "replace", "retrieve", "save", "subprocess", "system", "touch", "train", "unpack", "write"),
)
# Names that contain such a part, and make no files.
_HARMLESS = frozenset({"deepcopy", "dumps", "empty_cache", "from_pretrained", "lru_cache"})


class OpenedFile(NamedTuple):
    """A file that a source reads.

    Attributes:
        line: where, counted from 1.
        path: the file's path.
        error: what the line raises if the file is missing; "" if that is not known.
    """

    line: int
    path: str
    error: str


@dataclass(frozen=True)
class OpenedFiles:
    """The files that a source reads by literal paths, and those that it may make, also in code that may not run.

    Attributes:
        read: the files that it reads and whose errors it does not handle.
        paths: the absolute paths among the arguments of other calls, which may test for a file or make it.
        texts: the texts outside of the calls that read files.
        makes: whether any of its code may make files.
    """

    read: frozenset[OpenedFile] = frozenset()
    paths: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    makes: bool = False

    def may_make(self, path: str) -> bool:
        """Whether the source may make, or test for, a file that this or another source of the model reads."""
        if path.startswith("/"):
            return any(path == text or path.startswith(f"{text.rstrip('/')}/") for text in self.paths)
        if path.startswith(SOURCE):
            return self.makes or path.rpartition("/")[2] in self.texts
        return path in self.texts


def opened_files(nodes: Sequence[ast.AST], names: frozenset[str], imported: Mapping[str, str]) -> OpenedFiles:
    """Read which files a source opens.

    Args:
        nodes: the nodes of the module.
        names: the names that the module defines.
        imported: what its names are imported as.
    """
    attempted = {inner for node in nodes if isinstance(node, ast.Try) for inner in _attempted(node)}
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    read = {call: path for call in calls if call not in attempted and (path := _path_of(call, names, imported))}
    inner = {node for call in read for node in ast.walk(call)}
    others = [call for call in calls if call not in inner and not dotted(call.func, imported).startswith("sys.path.")]
    constants = (node.value for node in nodes if isinstance(node, ast.Constant) and node not in inner)
    return OpenedFiles(
        frozenset(
            OpenedFile(call.lineno, path, missing_file(dotted(call.func, imported), path))
            for call, path in read.items()
        ),
        frozenset(text for call in others for text in _literals(call)),
        frozenset(value for value in constants if isinstance(value, str)),
        makes=any(_may_make(name) for node in nodes for name in _names(node)),
    )


def _may_make(name: str) -> bool:
    """Whether a function of this name may make files."""
    return name not in _HARMLESS and any(part in name.lower() for part in _MAKING)


def _attempted(node: ast.Try) -> Iterator[ast.AST]:
    """The nodes of a `try` whose errors are caught."""
    for statement in node.body if node.handlers else ():
        yield from ast.walk(statement)


def _path_of(call: ast.Call, names: frozenset[str], imported: Mapping[str, str]) -> str | None:
    """The literal path of a file that a call reads; None if there is none."""
    path: str | None = None
    modes = [keyword.value for keyword in call.keywords if keyword.arg in ("mode", None)]
    name = dotted(call.func, imported)
    match call.func:
        case ast.Attribute(value=ast.Call() | ast.BinOp() as value, attr=method) if method in READS:
            path, modes = _text(value, imported), [*call.args[:1], *modes] if method == "open" else []
        case _ if call.args and name in OPENERS and name not in names:
            path, modes = _text(call.args[0], imported), [*call.args[1:2], *modes]
        case _ if call.args and is_loader(name):
            path, modes = _text(call.args[0], imported), []
            if path is not None and name.endswith("from_pretrained") and not path.startswith(_NO_NAMES):
                return None  # it may be the name of a model of Hugging Face
    is_reading = all(isinstance(mode, ast.Constant) and not _WRITES & set(str(mode.value)) for mode in modes)
    return path if path and is_reading and not path.startswith("~") else None


def _text(node: ast.expr, imported: Mapping[str, str]) -> str | None:
    """A path that consists of literals: `Path("/models") / "m"`, `os.path.join("/models", "m")`."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(func=function, args=[_, *_] as given, keywords=[]) if dotted(function, imported) in _PATHS:
            parts = given
        case ast.BinOp(left=ast.Call() | ast.BinOp() | ast.Attribute() as left, op=ast.Div(), right=right):
            parts = [left, right]
        case ast.Name(id="__file__"):
            return SOURCE
        case ast.Call(func=ast.Attribute(value=value, attr="resolve" | "absolute"), args=[]):
            return _text(value, imported)
        case ast.Attribute(value=value, attr="parent"):
            return _above(_text(value, imported))
        case ast.Call(func=function, args=[value]) if dotted(function, imported) == "os.path.dirname":
            return _above(_text(value, imported))
        case _:
            return None
    texts = [_text(part, imported) for part in parts]
    return join("", *(text for text in texts if text is not None)) if None not in texts else None


def _above(path: str | None) -> str | None:
    """The directory of a path that is relative to the source; None for another path."""
    return f"{path}/.." if path is not None and path.startswith(SOURCE) else None


def _names(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.keyword(arg=str(name)):
            return (name,)
    return ()


def _literals(call: ast.Call) -> Iterator[str]:
    """The absolute paths among the arguments of a call."""
    pending: list[ast.AST] = [*call.args, *(keyword.value for keyword in call.keywords)]
    while pending:
        node = pending.pop()
        match node:
            case ast.Constant(value=str(text)) if len(text) > 1 and text.startswith("/"):
                yield text
            case ast.Call():
                continue
        pending += ast.iter_child_nodes(node)
