"""Writes what is generated: `python -m tools.generate`, or `make generate`; `--help` shows the options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.generate._generator import ROOT, generators
from tools.generate._writing import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 if something could not be generated, or differs under `--check`."""
    known = generators()
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description="Writes what is generated.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default; of {', '.join(known)}")
    parser.add_argument("--check", action="store_true", help="write nothing, print differences, exit with 1 if any")
    parser.add_argument("--no-tests", action="store_true", help="leave out what tests record, and `make test` compares")
    folders = ", ".join(sorted(each.source for each in known.values() if each.source))
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help=f"rewrite from outside sources too: {folders}")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(known):
        parser.error(f"there is no generator {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    if given.sources is not None and not given.sources.is_dir():
        parser.error(f"the folder {given.sources} does not exist")
    chosen = {
        name: generator
        for name, generator in known.items()
        if (not given.names or name in given.names) and not (given.no_tests and generator.tests)
    }
    return run(chosen, ROOT, sources=given.sources, check=given.check)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
