"""Follows a repository from `TritonMultiModel(…)` to the L1, and prints the files on its way.

It synthesises the stack `TwoEnsembles` with an empty cache and notes each call that passes a repository on, or a value
that carries one. A stay is a file in which such calls stay for a while; a return is a stay in a file that was left
before. A call that stands in one place counts once, as a reader reads it once. An attribute of a value is no call. What
rules and recipes do with a repository are ways of their own, and the private modules beside the packages are plumbing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "constructs" / "cdk_triton"
OTHER_WAYS = (
    "artifacts/recipes/",
    "checks/",
    "python_models/",
    "onnx_models/",
    "tensorrt_models/",
    "tree_models/",
    "pytorch_models/",
    "dali_models/",
)
ELSEWHERE = tuple(str(LIBRARY / way) for way in OTHER_WAYS)
DEPTH = 3  # a mapping of artifacts that carry a repository


def carries(value: object, depth: int = DEPTH) -> bool:
    """Whether a value is a repository, or contains one."""
    from cdk_triton import ModelRepository

    if isinstance(value, ModelRepository):
        return True
    if depth == 0:
        return False
    inside: Iterable[object] = ()
    if isinstance(value, Mapping):
        inside = list(value.values())[:4]
    elif isinstance(value, list | tuple):
        inside = value[:8]
    elif is_dataclass(value) and not isinstance(value, type):
        inside = [getattr(value, each.name, None) for each in fields(value)]
    return any(carries(each, depth - 1) for each in inside)


class Way:
    """The files that calls enter, in the order in which a reader meets them."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._read: set[tuple[CodeType, CodeType, int]] = set()
        self._is_on = False
        self._begin: CodeType | None = None

    def trace(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note a call, for `sys.setprofile`."""
        code = frame.f_code
        if event == "return" and self._is_on and code is self._begin:
            self._is_on = False
        if event != "call" or not (self._is_on or self._begins(code)):
            return
        file = place(code)
        caller = calling(frame)
        if file is None or (caller is None and code is not self._begin):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if code.co_name.startswith("<") or is_attribute(frame):
            return
        if not any(carries(frame.f_locals.get(name)) for name in (*names, *code.co_freevars)):
            return
        call = (caller.f_code, code, caller.f_lineno) if caller is not None else (code, code, 0)
        if call not in self._read:
            self._read.add(call)
            if caller is not None:
                self.files.append(str(place(caller.f_code)))
            self.files.append(file)

    def _begins(self, code: CodeType) -> bool:
        self._is_on = code.co_qualname == "TritonMultiModel.__init__"
        if self._is_on:
            self._begin = code
        return self._is_on

    @property
    def stays(self) -> list[str]:
        """The files, each once for every stay."""
        return [file for file, _ in groupby(self.files)]


def is_attribute(frame: FrameType) -> bool:
    """Whether a call computes an attribute of its first argument."""
    owner = frame.f_locals.get("self")
    found = getattr(type(owner), frame.f_code.co_name, None)
    return isinstance(found, property | cached_property)


def place(code: CodeType) -> str | None:
    """The file of a function of the library; None for plumbing and for other ways."""
    path = Path(code.co_filename)
    if not path.is_relative_to(LIBRARY):
        return None
    file = path.relative_to(LIBRARY).as_posix()
    return None if "/" not in file or file.startswith(OTHER_WAYS) else file


def calling(frame: FrameType) -> FrameType | None:
    """The nearest caller in a file of the library; None if it is on another way."""
    caller = frame.f_back
    while caller is not None and place(caller.f_code) is None:
        if caller.f_code.co_filename.startswith(ELSEWHERE):
            return None
        caller = caller.f_back
    return caller


def main(_arguments: Sequence[str]) -> None:
    """Synthesise, and print the way."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ.update(CDK_OUTDIR=directory, XDG_CACHE_HOME=directory)
        sys.path[:0] = [str(ROOT)]
        os.chdir(ROOT)
        from aws_cdk import App

        from examples.reference_systems.artifacts import Artifacts
        from examples.reference_systems.two_ensembles import TwoEnsembles, text_repository

        app = App(outdir=directory)
        way = Way()
        store = Artifacts(app, "TritonArtifacts").store
        sys.setprofile(way.trace)
        TwoEnsembles(app, "TwoEnsembles", store=store, text=text_repository())
        sys.setprofile(None)
    seen: set[str] = set()
    for file in way.stays:
        print(f"{'  again ' if file in seen else ''}{file}")
        seen.add(file)
    print(f"{len(way.stays)} stays in {len(seen)} files, {len(way.stays) - len(seen)} returns")


if __name__ == "__main__":
    main(sys.argv[1:])
