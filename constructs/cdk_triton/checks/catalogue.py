"""All rules: those of this library, and those of other distributions.

Every module below `cdk_triton.checks` and below the package `rules` of a kind of model (`cdk_triton.onnx_models`) is
imported. So a rule is part of the catalogue as soon as its file exists.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from cdk_triton import checks
from cdk_triton._wording import did_you_mean
from cdk_triton.checks.own_rules import import_own_rules
from cdk_triton.checks.registry import CRASH, UNREADABLE, Rule, registered_rules
from cdk_triton.errors import ConfigurationError, RuleError

__all__ = ["documented_rules", "rule_of", "rules"]


def rules() -> tuple[Rule, ...]:
    """Every rule, by code.

    Raises:
        RuleError: a module of another distribution cannot be imported, or declares a rule wrongly.
    """
    if (error := _import_all()) is not None:
        raise error
    return registered_rules()


def documented_rules() -> tuple[Rule, ...]:
    """Every rule, plus `CRASH` and `UNREADABLE`: every code that a finding can have.

    Raises:
        RuleError: a module of another distribution cannot be imported, or declares a rule wrongly.
    """
    return (CRASH, UNREADABLE, *rules())


def rule_of(code: str) -> Rule:
    """The rule of a code.

    Raises:
        ConfigurationError: no rule has the code.
        RuleError: a module of another distribution cannot be imported, or declares a rule wrongly.
    """
    known = {each.code: each for each in documented_rules()}
    if code not in known:
        meant = did_you_mean(code.upper(), known)
        raise ConfigurationError(f"there is no rule {code!r}{meant}; `cdk-triton explain` lists all rules")
    return known[code]


def _rules_of_models() -> Iterator[ModuleType]:
    library = Path(checks.__path__[0]).parent
    for package in pkgutil.iter_modules([str(library)], "cdk_triton."):
        if package.ispkg and package.name.endswith("_models"):
            yield import_module(f"{package.name}.rules")


@cache
def _import_all() -> RuleError | None:
    """Import all rules once. A module that failed halfway has registered rules, so the first error is the only one."""
    for package in (checks, *_rules_of_models()):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    try:
        import_own_rules()
    except RuleError as error:
        return error
    return None
