"""The data tables that people write: their header is checked, and they are written in their canonical form."""

from __future__ import annotations

from tools.generate import Files, Generator
from tools.generate._tables import BY_HAND, checked, table_paths


def _files() -> Files:
    tables = {path: checked(path) for path in table_paths()}
    return {path: text for path, (table, text) in tables.items() if table["generator"] == BY_HAND}


GENERATOR = Generator(_files)
