"""Gives a directory another name if Triton cannot use its own."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from cdk_triton.artifacts import cache_directory
from cdk_triton.errors import LocalError

__all__ = ["shell_safe"]

_SAFE: Final = re.compile(r"[\w./+@%:,=-]+", re.ASCII)


def shell_safe(directory: Path) -> Path:
    """Another name for `directory` if its own has blanks or other characters that mean something to a shell.

    Triton starts a Python model through `bash -c` with unquoted paths; with a blank in one, the server waits for the
    model for ever. The other name is a link in the cache directory.

    Raises:
        LocalError: the cache directory has such a name too.
    """
    if _SAFE.fullmatch(str(directory)):
        return directory
    links = cache_directory() / "links"
    if not _SAFE.fullmatch(str(links)):
        raise LocalError(
            f"Triton cannot start Python models below {str(directory)!r}, because of the blanks or other special "
            "characters in that name; choose another directory, or set XDG_CACHE_HOME to a directory "
            "without such characters"
        )
    links.mkdir(parents=True, exist_ok=True)
    link = links / hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    link.unlink(missing_ok=True)
    link.symlink_to(directory, target_is_directory=True)
    return link
