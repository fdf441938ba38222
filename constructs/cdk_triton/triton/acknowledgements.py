"""Warnings that a repository's owner knows of, each with the reason why they are right as they are.

They stand in the call that reads the repository, or in `cdk-triton.toml` beside the models, for everybody who reads it:

    [acknowledge]
    CT111 = "the placeholder is written by our build"

An error cannot be acknowledged: the server would refuse the repository all the same.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from cdk_triton.errors import ConfigurationError, RepositoryError
from cdk_triton.triton.findings import Severity

__all__ = ["SETTINGS_NAME", "acknowledgements_of"]

SETTINGS_NAME = "cdk-triton.toml"
"""The file at the top of a repository that is about it and not in its archive."""

_TABLE = "acknowledge"


def acknowledgements_of(root: Path, given: Mapping[str, str]) -> Mapping[str, str]:
    """Code → reason: those of the repository's file, and those given, which win.

    Raises:
        RepositoryError: the file cannot be read, or one of either names no rule, an error, or no reason.
    """
    file = root / SETTINGS_NAME
    written = _read(file)
    for where, entries in ((str(file), written), (f"{_TABLE}=", given)):
        for code, reason in entries.items():
            _check(where, code, reason)
    return {**written, **given}


def _read(file: Path) -> Mapping[str, str]:
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise RepositoryError(f"{file} cannot be read: {error.strerror}; make it a readable file") from error
    except UnicodeDecodeError as error:
        raise RepositoryError(f"{file} is not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise RepositoryError(f"{file} is not TOML: {error}; correct it, or remove the file") from error
    for key in settings:
        if key != _TABLE:
            if re.fullmatch(r"CT\d{3}", key):
                raise RepositoryError(f"{file} has {key} outside a table; write it below [{_TABLE}]")
            meant = f" (did you mean {_TABLE!r}?)" if get_close_matches(key, [_TABLE]) else ""
            raise RepositoryError(f"{file} has an unknown key {key!r}{meant}; it knows the table [{_TABLE}] only")
    table = settings.get(_TABLE, {})
    if not isinstance(table, dict):
        raise RepositoryError(
            f'{file} has {_TABLE} = {table!r}, which is no table; write [{_TABLE}] and below it CODE = "reason"'
        )
    return table


def _check(where: str, code: str, reason: object) -> None:
    from cdk_triton.triton.checks import rule_of  # the rules know the repository, which knows this module

    try:
        rule = rule_of(code)
    except ConfigurationError as error:
        raise RepositoryError(f"{where} acknowledges {code!r}, but {error}") from error
    if rule.severity is Severity.ERROR:
        raise RepositoryError(
            f"{where} acknowledges {code} ({rule.title}), which is an error: the server really refuses it, and it "
            "cannot be acknowledged; mend it and remove the acknowledgement"
        )
    if not isinstance(reason, str) or not reason.strip():
        raise RepositoryError(
            f"{where} acknowledges {code} with {reason!r}, which is no reason; say in a few words why the warning is "
            f'right as it is, as {code} = "…"'
        )
