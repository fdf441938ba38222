"""The contents of a repository's files, as far as the checks need them.

Each module has one reader: a pure function of a path that returns a small frozen value, or `Unreadable`. A reader never
executes anything and never loads weights. A rule calls `check.contents(reader, file)`.
"""

from __future__ import annotations

from cdk_triton.triton.contents.unreadable import Unreadable

__all__ = ["Unreadable"]
