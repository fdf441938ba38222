"""`cdk-triton init`: a project with an app, its test and a whole ensemble."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from cdk_triton.cli.new_files import Content, require_free, write_new
from cdk_triton.errors import CdkTritonError

if TYPE_CHECKING:
    from cdk_triton.cli.init.own import Own

__all__ = ["InitCommand", "init"]

_HINT = "DIR"
_FILES: Mapping[str, str] = {
    "README.md": "README.md",
    "app.py": "app.py",
    "cdk.json": "cdk.json",
    ".gitignore": ".gitignore",
    "package.json": "package.json",
    "package-lock.json": "package-lock.json",
    "pytest.ini": "pytest.ini",
    "requirements.txt": "requirements.txt",
    "requirements-dev.txt": "requirements-dev.txt",
    "test_stack.py": "test_stack.py",
}
"""A file of each project, and the one of `files/` that it is made of."""

_EXAMPLE: Mapping[str, str] = {
    "ask.py": "ask.py",
    "models/letters/config.pbtxt": "models/letters/config.pbtxt",
    "models/letters/1/model.py": "models/letters/model.py",
    "models/network/config.pbtxt": "models/network/config.pbtxt",
    "models/label/config.pbtxt": "models/label/config.pbtxt",
    "models/label/1/model.py": "models/label/model.py",
    "models/language/config.pbtxt": "models/language/config.pbtxt",
    "models/language/1/README.md": "models/language/README.md",
    "models/golden/german.json": "models/golden/german.json",
    "models/cdk-triton.toml": "models/cdk-triton.toml",
}
"""Those of a project without models of the user's."""

_NETWORK = "models/network/1/model.onnx"

Directory = Annotated[
    Path, typer.Argument(metavar="[DIR]", help="The directory of the project; it may be missing.", show_default=False)
]
Multi = Annotated[
    bool,
    typer.Option("--multi/--single", help="A multi-model endpoint, or one for a single model."),
]
From = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="MODEL ...",
        help="Your models instead of the example: networks (.onnx), Python models (.py) or models' directories, in the "
        "order of a request.",
        show_default=False,
    ),
]


class InitCommand(TyperCommand):
    """Takes several values after one `--from`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write `--from` before each of its values, as click reads it."""
        return super().parse_args(ctx, list(_spread(args)))


def _spread(arguments: Sequence[str]) -> Iterator[str]:
    values: int | None = None  # after --from
    for each in arguments:
        if each.startswith("-"):
            values = {"--from": 0, "--from=": 1}.get(each[: len("--from=")])
        elif values is not None:
            if values:
                yield "--from"
            values += 1
        yield each


def init(directory: Directory = Path(), multi: Multi = True, models: From = None) -> None:
    """Write a project: an app with its test, and an ensemble, of an example or of your models.

    It overwrites no file. Example: cdk-triton init my-endpoint --from tokenizer.py bert.onnx
    """
    from cdk_triton.cli.init.own import own_models

    own = own_models(models, _project_name(directory)) if models else None
    contents = _contents(directory, multi, own)
    require_free(directory, contents, _HINT)
    try:
        write_new(directory, contents)
    except OSError as error:
        raise CdkTritonError(
            f"the project cannot be written to {directory.resolve()}: {error.strerror}; name another directory"
        ) from error
    typer.echo(f"{len(contents)} files in {directory.resolve()}; README.md explains them.")
    if own is not None:
        from cdk_triton.cli.config.command import report

        typer.echo()
        report(Path("models"), own.draft)
    typer.echo("\n" + "\n".join(_steps(directory)))


def _steps(directory: Path) -> Iterator[str]:
    """The first commands of the project's README.md, without those that are done already."""
    if directory.resolve() != Path.cwd():
        yield f"cd {shlex.quote(str(directory))}"
    path = os.environ.get("PATH", "").split(os.pathsep)
    programs = directory.resolve() / "node_modules" / ".bin"
    is_active = sys.prefix != sys.base_prefix and str(Path(sys.prefix, "bin")) in path
    if not is_active:
        yield "python3 -m venv .venv"
        yield 'export PATH="$PWD/.venv/bin:$PWD/node_modules/.bin:$PATH"'
    elif str(programs) not in path:
        yield 'export PATH="$PWD/node_modules/.bin:$PATH"'
    if not (is_active and find_spec("cdk_triton_local") and find_spec("pytriton")):
        yield "pip install -r requirements-dev.txt"
    elif not find_spec("pytest"):
        yield "pip install pytest"
    if not (programs / "cdk").exists():
        yield "npm ci"
    yield "pytest"


def _contents(directory: Path, multi: bool, own: Own | None) -> dict[str, Content]:
    from cdk_triton.cli.init.requirement import requirement

    name = directory.resolve().name
    needed = requirement()
    values = {
        "PROJECT": _project_name(directory),
        "STACK": _stack_name(name),
        "KIND": "multi-model" if multi else "single-model",
        "MODE": "multi" if multi else "single",
        "VERSION": version("cdk-triton"),
        "REQUIREMENT": needed.lines,
        "INSTALLATION": needed.note,
        **(_example_values() if own is None else own.values),
    }
    values["ASK"] = f"--target-model {values['ENSEMBLE']} " if multi else ""
    values["ABOUT"] = _filled("about.md" if own is None else "about.own.md", values).rstrip("\n")
    sources = {**_FILES, "stack.py": f"stack.py.{values['MODE']}"}
    sources |= _EXAMPLE if own is None else {"ask.py": "ask.py.own"}
    contents: dict[str, Content] = {target: _filled(source, values) for target, source in sources.items()}
    if own is None:
        from cdk_triton.cli.init.network import network

        return {**contents, _NETWORK: network()}
    return contents | {f"models/{path}": each for path, each in own.draft.new_files(directory / "models").items()}


def _example_values() -> dict[str, str]:
    from cdk_triton.cli.init.network import LANGUAGES

    texts = ("The children play in the garden with the neighbours.", "Der Himmel ist blau und die Sonne scheint.")
    return {
        "ENSEMBLE": "language",
        "LANGUAGES": str(len(LANGUAGES)),
        "NAMES": "[" + ", ".join(f'b"{each}"' for each in LANGUAGES) + "]",
        "QUESTIONS": "".join(f' "{text}"' for text in texts),
        "INPUT": '--input "TEXT=Guten Morgen"',
    }


def _filled(source: str, values: Mapping[str, str]) -> str:
    text = files("cdk_triton.cli.init").joinpath("files", f"{source}.txt").read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], text)


def _project_name(directory: Path) -> str:
    """Of the directory's name: what npm, Triton and SageMaker take as a name."""
    return re.sub(r"[^a-z0-9._-]+", "-", directory.resolve().name.lower())[:100].strip("-._") or "endpoint"


def _stack_name(name: str) -> str:
    """Of the directory's name: letters and digits, a letter first, 100 at most."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    found = "".join(word[0].upper() + word[1:] for word in words)[:100]
    return found if found[:1].isalpha() else f"Endpoint{found}"
