"""A PyTorch 2 archive that AOTInductor compiled: its models, where they run, and how they are called.

The members are those of `torch/export/pt2_archive/constants.py` of pytorch/pytorch. The PyTorch backend reads the call
specification as `src/pt2/call_spec.cc` of pytorch_backend does, at 266fd386.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from zipfile import ZipFile

from cdk_triton.pytorch_models.reader.members import beginning_of

__all__ = ["CallSpec", "CompiledModel", "compiled_model"]

_FOLDER = "data/aotinductor/"
_NAME = "model"
# More than the call specification of any model has. Names repeat those of the structures around them.
_MOST_DEPTH = 50
_MOST_TENSORS = 1_000
_LONGEST_KEY = 200

# `in_spec_ = R"([1, {...}])"` in the source of the library, and the same text in the library.
_IN_SOURCE = b'R"([1, {"type": '
_IN_LIBRARY = re.compile(rb'\[1, \{"type": [^\x00]*')


@dataclass(frozen=True)
class CallSpec:
    """How a compiled model is called.

    Attributes:
        inputs: the names that the backend gives the inputs, in order: `ARGS[0]`, `KWARGSscale`.
        keywords: the inputs that are keyword arguments, by the name that the backend's README gives them:
            `KWARGS[scale]`.
        outputs: the names of the outputs, in order: `RESULT`, `RESULT[0]`.
        fault: what the backend does not accept about the structure, or "".
    """

    inputs: tuple[str, ...] = ()
    keywords: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class CompiledModel:
    """A compiled archive.

    Attributes:
        names: the names of the models in it; the backend takes `model`.
        metadata: what the compiler noted about the machine: `AOTI_DEVICE_KEY`, `AOTI_MACHINE`, ….
        call_spec: how `model` is called; None if it is not known.
    """

    names: tuple[str, ...]
    metadata: Mapping[str, str]
    call_spec: CallSpec | None


class _SpecError(Exception):
    """The backend rejects the structure of a call specification."""


def compiled_model(archive: ZipFile, top: str) -> CompiledModel:
    """Read a compiled archive; `top` is the directory that contains everything in it."""
    folder = top + _FOLDER
    members = [name for name in archive.namelist() if name.startswith(folder) and "/" in name.removeprefix(folder)]
    names = tuple(dict.fromkeys(name.removeprefix(folder).partition("/")[0] for name in members))
    own = [name for name in members if name.startswith(f"{folder}{_NAME}/")]
    return CompiledModel(names, _metadata(archive, own), _call_spec(archive, own))


def _metadata(archive: ZipFile, members: list[str]) -> Mapping[str, str]:
    for name in members:
        if name.endswith("wrapper_metadata.json"):
            try:
                read = json.loads(beginning_of(archive, name))
            except (ValueError, RecursionError):
                return {}
            return {str(key): str(value) for key, value in read.items()} if isinstance(read, dict) else {}
    return {}


def _call_spec(archive: ZipFile, members: list[str]) -> CallSpec | None:
    for ending, texts_in in ((".wrapper.cpp", _texts_in_source), (".wrapper.so", _IN_LIBRARY.findall)):
        for name in members:
            if PurePosixPath(name).name.endswith(ending):
                found = list(islice(texts_in(beginning_of(archive, name)), 3))
                if len(found) == 2:
                    return _of_texts(*(text.decode(errors="replace") for text in found))
    return None


def _texts_in_source(source: bytes) -> Iterator[bytes]:
    at = 0
    while (start := source.find(_IN_SOURCE, at)) >= 0 and (end := source.find(b')"', start)) >= 0:
        if source.endswith(b"}]", start, end):
            yield source[start + len(b'R"(') : end]
        at = end


def _of_texts(given: str, returned: str) -> CallSpec | None:
    try:
        inputs, outputs = json.loads(given)[1], json.loads(returned)[1]
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return None
    try:
        arguments, keywords = _children(inputs, 0)
        named = [f"ARGS{name}" for name in _names(arguments, 1)]
        keys = _keys(keywords)
        _names(keywords, 2)
        results = tuple(f"RESULT{name}" for name in _names(outputs, 2)) or ("RESULT",)
    except _SpecError as error:
        return CallSpec(fault=str(error))
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        return None
    by_name = {f"KWARGS{key}": f"KWARGS[{key}]" for key in keys}
    return CallSpec((*named, *by_name), by_name, results)


def _names(spec: dict[str, object], depth: int) -> list[str]:
    """The places of the tensors in a structure: `[0]`, `[key][1]`; none if it is a tensor itself."""
    if spec.get("type") is None:
        return []
    entries = [f"[{key}]" for key in _keys(spec)] if spec["type"] == "builtins.dict" else None
    names = []
    for index, child in enumerate(_children(spec, depth)):
        entry = f"[{index}]" if entries is None else entries[index]
        names += [entry + name for name in _names(child, depth + 1)] or [entry]
        if len(names) > _MOST_TENSORS:
            raise ValueError
    return names


def _children(spec: dict[str, object], depth: int) -> list[dict[str, object]]:
    kind, children = spec["type"], spec["children_spec"]
    if kind not in ("builtins.dict", "builtins.list", "builtins.tuple"):
        raise _SpecError(f"it has a value of the type {str(kind)[:_LONGEST_KEY]}")
    if not isinstance(children, list) or depth > _MOST_DEPTH:
        raise TypeError
    if not children and kind != "builtins.dict":
        raise _SpecError(
            "it has no positional argument" if depth == 1 else f"it has an empty {str(kind).removeprefix('builtins.')}"
        )
    return children


def _keys(spec: dict[str, object]) -> list[str]:
    keys = json.loads(str(spec["context"]))
    if not isinstance(keys, list):
        raise TypeError
    if not all(isinstance(key, str) for key in keys):
        raise _SpecError("it has a dictionary whose keys are not strings")
    if len(keys) > _MOST_TENSORS or any(len(key) > _LONGEST_KEY for key in keys):
        raise ValueError
    return keys
