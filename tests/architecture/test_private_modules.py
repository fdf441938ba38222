"""A module, package or name that begins with `_` belongs to the package or module that contains it."""

from __future__ import annotations

from typing import Any


def test_private_modules_and_names_stay_in_their_package(library_source: Any, package: Any) -> None:
    importer = (*library_source.path.relative_to(package.parent).with_suffix("").parts, "")
    for name in library_source.imported():
        parts = name.split(".")
        private = [index for index, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
        if parts[0] == "cdk_triton" and private:
            owner = tuple(parts[: private[0]])
            assert importer[: len(owner)] == owner, f"{library_source} imports {name}"
