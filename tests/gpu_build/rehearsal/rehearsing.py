"""Rehearsals in this process, of a Python model on the real server, or of a small program that plays `serve`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from build_program.log import Log
from build_program.rehearsal.document import document_of
from build_program.rehearsal.run import rehearse
from build_program.stop import Stop

Rehearse = Callable[..., dict[str, Any]]

CONFIG = """
backend: "python"
max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: 1 }
input { name: "text" data_type: TYPE_STRING dims: 1 optional: true }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
"""
MODEL = """
import ctypes, os, subprocess, sys, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.directory = args["model_repository"]
        INITIALIZE

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        text = pb_utils.get_input_tensor_by_name(request, "text")
        y = x * 2
        EXECUTE
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", y)])
"""


def asked(x: float = 1.0, text: str | None = None, outputs: Sequence[str] = (), **parameters: object) -> bytes:
    """The body of a request."""
    inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [x]}]
    if text is not None:
        inputs.append({"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [text]})
    wanted = {"outputs": [{"name": each} for each in outputs]} if outputs else {}
    return json.dumps({"inputs": inputs, **wanted, **({"parameters": parameters} if parameters else {})}).encode()


def answered(y: float) -> bytes:
    """The body of an answer."""
    return json.dumps({"outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": [y]}]}).encode()


def write_input(folder: Path, requests: Sequence[tuple[bytes, bytes | None]], **changed: Any) -> Mapping[str, Any]:
    """Write the bodies into a folder, and return the document; `changed` are its other members."""
    rows = []
    for number, (body, expected) in enumerate(requests):
        (folder / f"request{number}").write_bytes(body)
        (folder / f"expected{number}").write_bytes(expected or b"")
        rows.append(
            {
                "name": f"golden/{number}.json",
                "body": f"request{number}",
                "content_type": "application/json",
                "comparison": {"how": "tolerance", "absolute": 0.001, "relative": 0.0} if expected else {"how": "any"},
                "expected": f"expected{number}" if expected else None,
                "expected_type": "application/json",
            }
        )
    return {
        "schema": 1,
        "repository": "search",
        "mode": "single",
        "environment": {},
        "load_timeout_seconds": 60.0,
        "requests": rows,
        "keep_answers": False,
        **changed,
    }


def run_in(
    directory: Path,
    requests: Sequence[tuple[bytes, bytes | None]],
    printed: StringIO | None = None,
    options: Mapping[str, Any] | None = None,
    **changed: Any,
) -> dict[str, Any]:
    """Rehearse `in/repository` of a directory.

    Args:
        directory: the directory.
        requests: the bodies, each with the expected answer.
        printed: gets the log.
        options: arguments of `rehearse`.
        changed: other members of the document.
    """
    for name in ("in", "out", "root"):
        (directory / name).mkdir(exist_ok=True)
    document = document_of(write_input(directory / "in", requests, **changed), directory / "in")
    log, stop = Log(printed or StringIO()), Stop(time.monotonic() + 120)
    return rehearse(document, directory / "in", directory / "out", directory / "root", log, stop, **(options or {}))
