"""What is inside the files of a repository, as far as the checks want to know.

Each module has one reader: a pure function of a path that returns a small frozen value, or `Unreadable`. A reader never
executes anything and never loads weights. A rule asks with `check.contents(reader, file)`.
"""

from __future__ import annotations

from cdk_triton.triton.contents.unreadable import Unreadable

__all__ = ["Unreadable"]
