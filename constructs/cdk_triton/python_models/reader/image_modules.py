"""The Python modules that a model finds in an image, by release: the standard library, and what is installed beside it.

The table of installed modules is `data/image_modules.json`; its sources stand in the file.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib.resources import files
from typing import Any, Final

from cdk_triton.triton.releases import is_at_least

__all__ = ["FOREIGN_MODULES", "installed_modules", "newest_modules", "standard_modules"]

# Module → the first Python that has it, and the first that does not have it any more; None where it always had it, or
# has it still. From "Removed" and "New Modules" of https://docs.python.org/3/whatsnew/, for Python 3.8 to 3.14.
_CHANGED: Final[dict[str, tuple[tuple[int, int] | None, tuple[int, int] | None]]] = {
    "_bootlocale": (None, (3, 10)),
    "_dummy_thread": (None, (3, 9)),
    "dummy_threading": (None, (3, 9)),
    "graphlib": ((3, 9), None),
    "zoneinfo": ((3, 9), None),
    "formatter": (None, (3, 10)),
    "parser": (None, (3, 10)),
    "symbol": (None, (3, 10)),
    "tomllib": ((3, 11), None),
    "binhex": (None, (3, 11)),
    **dict.fromkeys(("asynchat", "asyncore", "distutils", "imp", "smtpd"), (None, (3, 12))),
    **dict.fromkeys(("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3"), (None, (3, 13))),
    **dict.fromkeys(("mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr"), (None, (3, 13))),
    **dict.fromkeys(("spwd", "sunau", "telnetlib", "uu", "xdrlib"), (None, (3, 13))),
    "annotationlib": ((3, 14), None),
    "compression": ((3, 14), None),
}

FOREIGN_MODULES: Final = frozenset(
    {"_msi", "_overlapped", "_scproxy", "_winapi", "_wmi", "msilib", "msvcrt", "nt", "winreg", "winsound"}
)
"""Modules of the standard library on Windows and macOS that Python does not have on Linux.

Python lists them in `sys.stdlib_module_names` on every system. Sources: `WINDOWS_MODULES` of CPython's
https://github.com/python/cpython/blob/043805d85e1922f97c660a86fa0347540580b042/Tools/build/check_extension_modules.py,
its `Modules/Setup.stdlib.in` ("macOS specific modules") for `_scproxy`, and for `msilib` and `_msi` the stubs in
https://github.com/python/typeshed/tree/f2c917ff529f5477399244078e905c7cbb8aebf1/stdlib (`if sys.platform == "win32"`).
"""


@cache
def standard_modules(version: tuple[int, int] | None) -> frozenset[str]:
    """The top-level modules of the standard library of a Python, which need not be the running one.

    Args:
        version: the Python, 3.8 or newer: (3, 12). For None, those of any Python.
    """
    if version is None:
        return frozenset(sys.stdlib_module_names | _CHANGED.keys())
    there = {
        name
        for name, (first, end) in _CHANGED.items()
        if (first is None or version >= first) and (end is None or version < end)
    }
    return frozenset(sys.stdlib_module_names - _CHANGED.keys() | there)


@cache
def installed_modules(release: str | None) -> frozenset[str] | None:
    """The top-level modules that SageMaker's image of a release has, or may have, beside the standard library.

    Args:
        release: a release, known or not.

    Returns:
        The modules; None if the modules of the release were not read.

    Raises:
        ConfigurationError: the name is not two digits, a dot and two digits.
    """
    table = _table()
    if release is None or not is_at_least(table["read_through"], release):
        return None
    rows = [row for since, row in table["since"].items() if is_at_least(release, since)]
    return frozenset(name for row in rows for names in row.values() for name in names) if rows else None


def newest_modules() -> frozenset[str]:
    """The modules of the newest release that was read."""
    return installed_modules(_table()["read_through"]) or frozenset()


@cache
def _table() -> dict[str, Any]:
    path = files(__package__).joinpath("data", "image_modules.json")
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table
