"""`cdk-triton init`: a project with an app, its test and a whole ensemble."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from cdk_triton.cli.new_files import Content, require_free, write_new
from cdk_triton.errors import CdkTritonError

__all__ = ["init"]

_HINT = "DIR"
_FILES: Mapping[str, str] = {
    "README.md": "README.md",
    "app.py": "app.py",
    "ask.py": "ask.py",
    "cdk.json": "cdk.json",
    ".gitignore": ".gitignore",
    "package.json": "package.json",
    "package-lock.json": "package-lock.json",
    "requirements.txt": "requirements.txt",
    "requirements-dev.txt": "requirements-dev.txt",
    "test_stack.py": "test_stack.py",
    "models/letters/config.pbtxt": "models/letters/config.pbtxt",
    "models/letters/1/model.py": "models/letters/model.py",
    "models/network/config.pbtxt": "models/network/config.pbtxt",
    "models/label/config.pbtxt": "models/label/config.pbtxt",
    "models/label/1/model.py": "models/label/model.py",
    "models/language/config.pbtxt": "models/language/config.pbtxt",
    "models/language/1/README.md": "models/language/README.md",
}
"""A file of the project, and the one of `files/` that it is made of."""

_NETWORK = "models/network/1/model.onnx"
_STEPS = """python3 -m venv .venv
export PATH="$PWD/.venv/bin:$PWD/node_modules/.bin:$PATH"
pip install -r requirements-dev.txt
npm ci
pytest"""
"""The first commands of the project's README.md."""


Directory = Annotated[
    Path, typer.Argument(metavar="[DIR]", help="The directory of the project; it may be missing.", show_default=False)
]
Multi = Annotated[
    bool,
    typer.Option("--multi/--single", help="A multi-model endpoint, or one for a single model."),
]


def init(directory: Directory = Path(), multi: Multi = True) -> None:
    """Write a project: an app with its test, and a whole ensemble Python → ONNX → Python.

    It overwrites no file. Example: cdk-triton init my-endpoint
    """
    texts = _text_files(directory, multi)
    require_free(directory, {**texts, _NETWORK: ""}, _HINT)
    from cdk_triton.cli.init.network import network

    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary, "model.onnx")
        made.write_bytes(network())
        try:
            write_new(directory, {**texts, _NETWORK: made})
        except OSError as error:
            raise CdkTritonError(
                f"the project cannot be written to {directory.resolve()}: {error.strerror}; name another directory"
            ) from error
    where = "" if directory.resolve() == Path.cwd() else f"cd {shlex.quote(str(directory))}\n"
    typer.echo(f"{len(texts) + 1} files in {directory.resolve()}; README.md explains them.")
    typer.echo(f"\n{where}{_STEPS}")


def _text_files(directory: Path, multi: bool) -> dict[str, Content]:
    from cdk_triton.cli.init.network import LANGUAGES
    from cdk_triton.cli.init.requirement import requirement

    name = directory.resolve().name
    needed = requirement()
    values = {
        "PROJECT": re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "endpoint",
        "STACK": _stack_name(name),
        "KIND": "multi-model" if multi else "single-model",
        "MODE": "multi" if multi else "single",
        "ASK": "--target-model language " if multi else "",
        "VERSION": version("cdk-triton"),
        "REQUIREMENT": needed.lines,
        "INSTALLATION": needed.note,
        "LANGUAGES": str(len(LANGUAGES)),
        "NAMES": "[" + ", ".join(f'b"{each}"' for each in LANGUAGES) + "]",
    }
    sources = {**_FILES, "stack.py": f"stack.py.{'multi' if multi else 'single'}"}
    return {target: _filled(source, values) for target, source in sources.items()}


def _filled(source: str, values: Mapping[str, str]) -> str:
    text = files("cdk_triton.cli.init").joinpath("files", f"{source}.txt").read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], text)


def _stack_name(name: str) -> str:
    """Of the directory's name: letters and digits, a letter first, 100 at most."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    found = "".join(word[0].upper() + word[1:] for word in words)[:100]
    return found if found[:1].isalpha() else f"Language{found}"
