"""`--from`: the parts of a project that depend on the models that it is made around."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from cdk_triton.cli.config.drafting import Draft
    from cdk_triton.cli.requests.signature import InputSpec

__all__ = ["Own", "own_models"]

_HINT = "--from"
_RUNS_ON = {"onnxruntime": "ONNX Runtime", "python": "Python"}
_TEXT = "A man is eating food."
_REPOSITORY = Path("models")


@dataclass(frozen=True)
class Own:
    """The user's models.

    Attributes:
        draft: their model repository.
        values: placeholder → its text in the files of the project.
    """

    draft: Draft
    values: Mapping[str, str]


def own_models(models: Sequence[Path], name: str) -> Own:
    """Read the models, and connect them into an ensemble.

    Args:
        models: the networks, Python models and models' directories, in the order of a request.
        name: the name of the project, which becomes that of the ensemble unless a model has it.

    Raises:
        BadParameter: a model cannot be read or connected.
    """
    from cdk_triton.cli.config.drafting import draft

    for path in models:
        if not path.exists() and not path.suffix:
            raise typer.BadParameter(
                f"{path} does not exist; if it is the project's directory, write it before {_HINT}", param_hint=_HINT
            )
    try:
        drafted = draft(models, name if name not in map(_name, models) else f"{name}-ensemble")
    except typer.BadParameter as error:
        error.param_hint = _HINT
        raise
    inputs = _inputs(drafted)
    return Own(
        drafted,
        {
            "ENSEMBLE": str(drafted.ensemble),
            "AGAIN": drafted.again(_REPOSITORY),
            "TABLE": "\n".join(
                f"| `{face.name}` | {_RUNS_ON.get(face.backend, face.backend)} | `{os.path.normpath(path)}` |"
                for face, path in zip(drafted.faces, models, strict=True)
            ),
            "INPUTS": "\n".join(map(_placeholder, inputs)),
            "IMPORTS": "import numpy as np\n" if any(each.datatype != "BYTES" for each in inputs) else "",
            "QUESTIONS": "",
            "INPUT": "--random",
        },
    )


def _name(path: Path) -> str:
    return path.resolve().stem


def _inputs(drafted: Draft) -> Sequence[InputSpec]:
    from cdk_triton.cli.requests.signature import of_config
    from cdk_triton.triton.model_config import parse_model_config

    written = drafted.written[f"{drafted.ensemble}/config.pbtxt"].text
    return of_config(parse_model_config(written.encode(), path="config.pbtxt"), "config.pbtxt").inputs


def _placeholder(spec: InputSpec) -> str:
    """A line of a dictionary: an example of an input, in which a dimension of any size is 1."""
    shape = tuple(1 if size < 0 else size for size in spec.dims or (1,))
    if spec.datatype == "BYTES":
        value = json.dumps(_TEXT)
        for size in reversed(shape):
            value = f"[{value}]" if size == 1 else f"[{value}] * {size}"
    else:
        kind = spec.datatype.lower().replace("bf16", "fp32").replace("fp", "float")
        value = f"np.zeros({shape}, np.{'bool_' if kind == 'bool' else kind})"
    return f"    {json.dumps(spec.name)}: {value},  # {spec.datatype} {list(spec.dims or ())}"
