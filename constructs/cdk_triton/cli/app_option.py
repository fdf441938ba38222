"""The option `--app`, a cloud assembly."""

from __future__ import annotations

from pathlib import Path

import typer

__all__ = ["require_assembly"]


def require_assembly(app: Path) -> Path:
    """The directory, if it is a cloud assembly.

    Raises:
        BadParameter: it is not.
    """
    if not (app / "manifest.json").is_file():
        raise typer.BadParameter(
            f"{app} is not a cloud assembly, because it has no manifest.json: run `cdk synth` first.",
            param_hint="'--app'",
        )
    return app
