"""How bash reads a path that stands in a command without quotes.

Through 25.07, the Python backend puts paths and names so into the command that starts a model's process
(python_backend r25.07: src/stub_launcher.cc, StubLauncher::Launch).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

__all__ = ["misread"]

_HARMLESS = re.compile(r"[\w./-]*")

# What ends a word, or disappears from it.
_SPECIAL = re.compile(r"""[ \t\n;|&<>()`\\"']|\$(?=[A-Za-z0-9_{(\[*@#?!$-])""")
_INNER = r"(?:[^{}]|\{[^{}]*\})*"
_BRACES = re.compile(rf"\{{{_INNER},{_INNER}\}}|\{{(?:-?\d+\.\.-?\d+|[A-Za-z]\.\.[A-Za-z])(?:\.\.-?\d+)?\}}")
_PATTERN = re.compile(r"[*?\[]")


def misread(word: str, others: Callable[[], Iterable[str]] = tuple) -> str | None:
    """The character that gives a word another meaning in bash; None if bash takes the word as it is.

    Args:
        word: the word.
        others: makes the paths that the word may match as a pattern, where it is a path.
    """
    if _HARMLESS.fullmatch(word):
        return None
    if word.startswith("#"):
        return "#"
    found = _SPECIAL.search(word) or _BRACES.search(word)
    if found is None and (found := _PATTERN.search(word)) is not None:
        depth = word.count("/")
        matches = [each for each in others() if each.count("/") == depth and fnmatchcase(each, word)]
        if not set(matches) - {word}:
            return None
    return None if found is None else found[0][0]
