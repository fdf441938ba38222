"""Writes the build program as one file that any Python from 3.8 on runs."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path
from typing import Final

from cdk_triton._shipped import shipped_directory

__all__ = ["PROGRAM_VERSION", "REHEARSAL_VERSION", "write_program"]

PROGRAM_VERSION: Final = 1
"""Maintainers raise the number only when the build program gives different artifacts for the same `plan.json`.

It is part of the key of every built artifact, so raising it rebuilds all of them.
"""

REHEARSAL_VERSION: Final = 1
"""Maintainers raise the number when a pass of the program before does not count, because it missed a failure.

It is part of the key of every rehearsal, so raising it repeats all of them, and builds nothing.
"""

_MAIN: Final = b"import sys\n\nfrom build_program.main import main\n\nsys.exit(main(sys.argv[1:]))\n"
_TIME: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP archive


def write_program(target: Path) -> None:
    """Write `program.pyz`: the package `build_program` of `gpu_build/` and a `__main__.py`.

    The same sources give the same bytes: files in order, no times, not compressed.
    """
    root = shipped_directory("gpu_build")
    files = {"__main__.py": _MAIN}
    for file in sorted((root / "build_program").rglob("*")):
        if file.suffix in (".py", ".txt"):  # not an editor's backup, which would change the hash
            files[file.relative_to(root).as_posix()] = file.read_bytes()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.create_system = 3  # Unix, so that the mode counts
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content)
