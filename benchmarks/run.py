"""Runs the benchmarks and exits 1 if a figure does not hold: `python benchmarks/run.py [--long] [name ...]`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent


LONG = ("publish", "serving_many")
"""The benchmarks that `--long` measures with more ensembles, for the better part of an hour."""


def main(names: list[str], *, long: bool = False) -> int:
    """Run the named benchmarks, or all, each in a process of its own; pass their lines on as they come."""
    known = sorted(path.stem for path in DIRECTORY.glob("[!_]*.py") if path.stem != Path(__file__).stem)
    if unknown := [name for name in names if name not in known]:
        print(f"there is no benchmark {', '.join(unknown)}: choose from {', '.join(known)}", file=sys.stderr)
        return 2
    failed = [name for name in names or known if not holds(name, *(["--long"] if long and name in LONG else []))]
    if failed:
        print(f"does not hold: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def holds(name: str, *options: str) -> bool:
    """Run one benchmark; whether it printed figures, all of them hold, and it ended well."""
    command = [sys.executable, str(DIRECTORY / f"{name}.py"), *options]
    figures: list[bool] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            figures.append(bool(json.loads(line)["holds"]))
    return process.returncode == 0 and bool(figures) and all(figures)


if __name__ == "__main__":
    sys.exit(main([each for each in sys.argv[1:] if each != "--long"], long="--long" in sys.argv))
