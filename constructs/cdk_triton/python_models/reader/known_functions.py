"""The functions of Python and of libraries whose effect the readers know, by their whole names."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from cdk_triton.python_models.reader.backend_utils import MODULES

__all__ = ["BUILTINS", "LOADERS", "OPENERS", "PLAIN", "READS", "dotted", "is_loader", "keeps_files", "missing_file"]

PLAIN: Final = frozenset({"bool", "float", "int", "isinstance", "len", "print", "repr", "str"})
"""Builtin functions whose results hold nothing of what they get."""

BUILTINS: Final = PLAIN | {
    *("all", "any", "dict", "enumerate", "list", "max", "min", "range", "set", "sorted", "tuple", "zip"),
}
"""Builtin functions that change nothing that they get."""

READS: Final = frozenset({"open", "read_text", "read_bytes"})
"""The methods of a `Path` that read its file."""

OPENERS: Final = frozenset({"open", "io.open", "codecs.open"})
"""Functions that open the file of their first argument in the mode of the second one."""

LOADERS: Final = frozenset(
    {
        *("numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "torch.load", "torch.jit.load"),
        *("joblib.load", "pandas.read_csv", "pandas.read_json", "pandas.read_parquet", "pandas.read_pickle"),
        *("PIL.Image.open", "onnxruntime.InferenceSession", "os.listdir", "os.scandir"),
    }
)
"""Functions that read the file or the directory of their first argument, and fail if it is missing."""

# What functions raise for a missing file, if not the error of `open`: numpy/lib/_datasource.py,
# torch/jit/_serialization.py, and ONNX Runtime's own exception.
_NOT_FOUND = {
    **dict.fromkeys(("numpy.loadtxt", "numpy.genfromtxt"), "FileNotFoundError: {} not found."),
    "torch.jit.load": "ValueError: The provided filename {} does not exist",
    "onnxruntime.InferenceSession": (
        "NoSuchFile: [ONNXRuntimeError] : 3 : NO_SUCHFILE : Load model from {0} failed:Load model {0} failed. File "
        "doesn't exist"
    ),
}
# Functions of numpy that may make files; memmap and open_memmap have a mode.
_SAVING = ("numpy.save", "numpy.memmap", "numpy.lib.")
# Parts of transformers, tokenizers and other libraries; some of them download what is missing.
_PARTS = (".from_pretrained", ".from_file")

_READING = (
    *(f"{module}." for module in MODULES),
    *("json.", "logging.", "numpy.", "os.environ.", "os.path.", "time."),
    *("torch.cuda.", "torch.device", "torch.set_", "re.compile", "warnings.", "collections."),
)
_KEEPING = frozenset(
    {"os.fspath", "os.getenv", "pathlib.Path", "pathlib.PurePath", "sys.path.append", "sys.path.insert"}
)


def is_loader(name: str) -> bool:
    """Whether a function reads the file of its first argument, perhaps from elsewhere if the file is missing."""
    return name in LOADERS or name.endswith(_PARTS)


def missing_file(name: str, path: str) -> str:
    """What a function raises if the file is missing; "" for functions whose error depends on the library's version."""
    if name.endswith(_PARTS):  # transformers: OSError, or HFValidationError; tokenizers: Exception
        return ""
    return _NOT_FOUND.get(name, "FileNotFoundError: [Errno 2] No such file or directory: '{}'").format(path)


def keeps_files(name: str) -> bool:
    """Whether a function changes neither what it gets nor files."""
    return name in BUILTINS or name in _KEEPING or (name.startswith(_READING) and not name.startswith(_SAVING))


def dotted(node: ast.expr, imported: Mapping[str, str]) -> str:
    """The whole name of a function, such as `os.path.join`; "" for another expression.

    Args:
        node: the expression.
        imported: name → what an import binds it to.
    """
    match node:
        case ast.Name(id=name):
            return imported.get(name, name)
        case ast.Attribute(value=value, attr=name) if before := dotted(value, imported):
            return f"{before}.{name}"
    return ""
